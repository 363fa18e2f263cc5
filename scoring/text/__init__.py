"""Rules over text: number readers, syllables, error rates. No audio and no model."""
