"""Sentences for users out of what placement found: why a pod is not served, and what to do about it.

Called by the allocation controller for events. Pure, and deterministic for equal findings, so that repeated events fold.
"""

from .sentences import MAX_BYTES, Explanation, explain

__all__ = ["MAX_BYTES", "Explanation", "explain"]
