"""Models in a worker process of their own, stamped on the same clock."""
