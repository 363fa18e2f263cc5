"""What is computed from an answer's words and sound: transcripts, normal forms, error rates, quality, emotion."""
