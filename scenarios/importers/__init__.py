"""Recordings of others as ordinary session directories."""
