"""The session directory: the seam between measuring and scoring."""
