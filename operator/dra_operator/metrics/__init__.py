"""Every metric of the operator, in one table.

Controllers and `kube` observers count here; `/metrics` renders. Nothing in here speaks HTTP, and nothing registers itself in
prometheus-client's global registry, so that two operators can live in one process (tests do that).
"""

from .registry import CONTENT_TYPE, Metrics
from .table import (
    ALLOCATIONS,
    CLAIMS_GENERATED,
    DEVICES_HELD_TWICE,
    EVENTS_DROPPED,
    FEED_AGE,
    LATENCY,
    QUEUE_DEPTH,
    RECONCILE_ERRORS,
    RECONCILES,
    REJECTED_OBJECTS,
    TABLE,
    WAITING_PODS,
    WATCH_RESTARTS,
    WRITES,
    Row,
)

__all__ = [
    "ALLOCATIONS",
    "CLAIMS_GENERATED",
    "CONTENT_TYPE",
    "DEVICES_HELD_TWICE",
    "EVENTS_DROPPED",
    "FEED_AGE",
    "LATENCY",
    "QUEUE_DEPTH",
    "RECONCILES",
    "RECONCILE_ERRORS",
    "REJECTED_OBJECTS",
    "TABLE",
    "WAITING_PODS",
    "WATCH_RESTARTS",
    "WRITES",
    "Metrics",
    "Row",
]
