"""Runs beside each other: which of their turns belong together, how far apart they are, and what may be said of it."""
