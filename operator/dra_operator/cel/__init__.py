"""Placeholder docstring of cel; its engineer writes it."""
