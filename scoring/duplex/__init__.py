"""Duplex: who spoke when, and what each did while the other spoke; definitions in DUPLEX.md."""
