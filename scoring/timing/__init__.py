"""Latency and delivery metrics."""
