"""Placeholder docstring of cli; its engineer writes it."""
