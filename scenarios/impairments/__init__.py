"""What makes speech hard to hear: seeded transforms of a clip, named by short specs such as `noise:white:snr=5`."""
