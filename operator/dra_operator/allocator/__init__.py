"""Placeholder docstring of allocator; its engineer writes it."""
