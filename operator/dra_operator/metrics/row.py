"""What a metric is: one row of the table. Nothing is defined here but the form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PREFIX = "dra_operator"

Series = tuple[str, ...]
"""Values of the labels, in the order of the row."""

UPSTREAM = "dynamic_resource_allocation"
"""Prefix of kube-controller-manager's metrics of claims since Kubernetes 1.37 (cp M-1, M-2): ours where that part of it is switched off (cp M-21)."""


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
        name: without the prefix; counters get `_total` from the library.
        text: the HELP line.
        labels: label names, in the order in which values are passed; `LABELS` says what they hold.
        buckets: upper bounds of a histogram, in the unit of the name.
        initial: label values of the series that are there from the start with 0, so that a rate or an alert has something to begin with.
        alert: what to alert on, for people; empty if the metric is there to look at.
        prefix: of the name; upstream's own for what upstream has a name for.
        only: the setting that makes it appear, for people; empty if it is always there.
    """

    kind: Kind
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    initial: tuple[tuple[str, ...], ...] = ()
    alert: str = ""
    prefix: str = PREFIX
    only: str = ""

    @property
    def family(self) -> str:
        """The name as the HELP line has it, without `_total`."""
        return f"{self.prefix}_{self.name}"

    @property
    def full_name(self) -> str:
        """As Prometheus stores it; for histograms without `_bucket`, `_sum`, `_count`."""
        return self.family + ("_total" if self.kind is Kind.COUNTER else "")
