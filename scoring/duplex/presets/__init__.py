"""Definitions of others over our recordings: one preset a module, each with its source."""
