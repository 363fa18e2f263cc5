"""Pure functions of recorded sessions."""
