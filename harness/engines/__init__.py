"""Speech engines (VAD, ASR, TTS) and the model store; everything heavy is imported on use."""
