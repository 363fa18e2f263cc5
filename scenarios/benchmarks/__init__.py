"""Published benchmarks as data sets: what their queries are, and where the sound of each comes from."""
