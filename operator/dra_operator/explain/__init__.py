"""For users: why a pod is not served, and what to do about it.

`explain` makes the sentence of an event out of what placement found; `why_pod` and `why_claim` answer who asks for more: figures, the smallest change that
would work. Pure, and deterministic for equal findings, so that repeated events fold.
"""

from .codes import CODES
from .reasons import CONDITIONS, EVENTS, SILENT, severity_of
from .sentences import MAX_BYTES, Explanation, explain
from .told import Asked, Change, Fact, Held, Row, Why
from .why import user_of, why_claim, why_pod

__all__ = [
    "CODES",
    "CONDITIONS",
    "EVENTS",
    "MAX_BYTES",
    "SILENT",
    "Asked",
    "Change",
    "Explanation",
    "Fact",
    "Held",
    "Row",
    "Why",
    "explain",
    "severity_of",
    "user_of",
    "why_claim",
    "why_pod",
]
