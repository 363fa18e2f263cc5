"""From recorded sessions to a benchmark's rows: answers, the stages that work on them side by side, the result."""
