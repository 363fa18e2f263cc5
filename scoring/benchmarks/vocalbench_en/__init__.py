"""VocalBench (English): its rules, tables and prompts."""
