"""Placeholder docstring of kube; its engineer writes it."""
