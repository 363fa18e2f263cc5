"""Our recordings in the layouts of others."""
