"""Placeholder docstring of explain; its engineer writes it."""
