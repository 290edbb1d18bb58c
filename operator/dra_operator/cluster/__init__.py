"""Placeholder docstring of cluster; its engineer writes it."""
