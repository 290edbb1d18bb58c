"""Sentences for users out of what placement found: why a pod is not served, and what to do about it.

Called by the allocation controller for events. Pure, and deterministic for equal findings, so that repeated events fold.
"""

from .reasons import CONDITIONS, EVENTS, SILENT, severity_of
from .sentences import MAX_BYTES, Explanation, explain

__all__ = ["CONDITIONS", "EVENTS", "MAX_BYTES", "SILENT", "Explanation", "explain", "severity_of"]
