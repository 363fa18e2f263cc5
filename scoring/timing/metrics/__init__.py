"""One module a metric: its declaration, its formula, its edge cases."""
