"""The table of metrics: name, kind, labels, help. One row a metric, nothing else defines one.

`registry.Metrics` builds them; users pass the row itself, so that a misspelt metric is a NameError and not a new series.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric is to Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Row:
    """One metric.

    Attributes:
        kind: counter, gauge or histogram.
        name: without the prefix `dra_operator_`; counters get `_total` from the library.
        text: the HELP line.
        labels: label names, in the order in which values are passed.
        buckets: upper bounds of a histogram, in the unit of the name.
    """

    kind: Kind
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


ALLOCATIONS = Row(
    Kind.COUNTER,
    "allocations",
    "Attempts to serve a pod by result: committed, released, conflict, error, rolled_back, unsatisfied, refused, waiting.",
    ("result",),
)
CLAIMS_GENERATED = Row(
    Kind.COUNTER,
    "claims_generated",
    "Claims created from templates, by status success or failure.",
    ("status",),
)
WRITES = Row(
    Kind.COUNTER,
    "writes",
    "Writes to the API server by verb, resource and HTTP code.",
    ("verb", "resource", "code"),
)
LATENCY = Row(
    Kind.HISTOGRAM,
    "pod_release_duration_seconds",
    "Seconds from the first sight of a gated pod to its release.",
    # From one event-loop turn to the placement time-out that an admin would still call normal; the bounds are arbitrary.
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0),
)
QUEUE_DEPTH = Row(Kind.GAUGE, "queue_depth", "Keys that wait for a pass, by controller.", ("controller",))
WAITING_PODS = Row(Kind.GAUGE, "waiting_pods", "Gated pods that cannot be served now.")
RECONCILES = Row(Kind.COUNTER, "reconciles", "Passes over one key, by controller.", ("controller",))
RECONCILE_ERRORS = Row(
    Kind.COUNTER,
    "reconcile_errors",
    "Passes that failed and are retried, by controller and error.",
    ("controller", "error"),
)
DEVICES_HELD_TWICE = Row(
    Kind.GAUGE,
    "devices_held_twice",
    "Devices that the allocations of two claims hold; anything but 0 is an accident.",
)
WATCH_RESTARTS = Row(
    Kind.GAUGE, "watch_restarts", "Times that a watch began anew since the start, by kind.", ("kind",)
)
FEED_AGE = Row(
    Kind.GAUGE,
    "feed_age_seconds",
    "Seconds since the last event or bookmark of a stream, by kind.",
    ("kind",),
)
REJECTED_OBJECTS = Row(
    Kind.COUNTER,
    "rejected_objects",
    "Objects that could not be decoded and were left out, by kind.",
    ("kind",),
)
EVENTS_DROPPED = Row(
    Kind.GAUGE,
    "events_lost",
    "Events (the API kind) that were not written since the start: too many, or refused.",
)

TABLE: tuple[Row, ...] = (
    ALLOCATIONS,
    CLAIMS_GENERATED,
    WRITES,
    LATENCY,
    QUEUE_DEPTH,
    WAITING_PODS,
    RECONCILES,
    RECONCILE_ERRORS,
    DEVICES_HELD_TWICE,
    WATCH_RESTARTS,
    FEED_AGE,
    REJECTED_OBJECTS,
    EVENTS_DROPPED,
)
