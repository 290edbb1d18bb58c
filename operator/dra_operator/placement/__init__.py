"""Placeholder docstring of placement; its engineer writes it."""
