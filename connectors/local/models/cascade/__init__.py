"""A cascade as a local model: hears the end of a turn, recognizes it, asks a language model, speaks by clauses."""
