"""Speech-to-speech models that come with the harness; each is looked up by name in `firstpacket.local_models`."""
