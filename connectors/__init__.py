"""Peers: one codec, one transport and one short connector each."""
