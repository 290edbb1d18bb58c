"""Placeholder docstring of metrics; its engineer writes it."""
