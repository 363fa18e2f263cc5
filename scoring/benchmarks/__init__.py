"""The rules of published benchmarks: which judge tasks an item asks for, its row, the tables and the overall score."""
