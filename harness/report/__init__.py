"""Showing: terminal tables and the HTML page. Computes no metric."""
