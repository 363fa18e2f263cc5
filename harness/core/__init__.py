"""Shared nouns of every room; imports no other room, does no I/O but the session directory."""
