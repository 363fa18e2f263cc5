"""The stopwatch: `core` (nouns), `engines` (VAD, ASR, TTS), `run` (measure), `report` (show), `cli` (commands)."""

__version__ = "0.1.0"
