"""Bundled packs (a folder each, with its manifest) and the script that made them."""
