"""Placeholder docstring of controllers; its engineer writes it."""
