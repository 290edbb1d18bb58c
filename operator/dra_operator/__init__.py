"""A Kopf-based operator and control-plane allocator for Kubernetes Dynamic Resource Allocation (DRA)."""

__version__ = "0.3.0"
