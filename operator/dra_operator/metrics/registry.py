"""The metrics of one operator: builds the table's rows in a registry of its own, counts, renders.

Called by controllers, by the write observer and by the HTTP server. Must not start a server nor touch the global registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from .table import TABLE, Kind, Row

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "dra_operator"
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """All metrics of one operator.

    Methods take the row of the table and the values of its labels in the row's order.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters = {row: _counter(row, self.registry) for row in TABLE if row.kind is Kind.COUNTER}
        self._gauges = {row: _gauge(row, self.registry) for row in TABLE if row.kind is Kind.GAUGE}
        self._histograms = {
            row: _histogram(row, self.registry) for row in TABLE if row.kind is Kind.HISTOGRAM
        }
        self._before_render: list[Callable[[], None]] = []

    def count(self, row: Row, *values: str, by: float = 1) -> None:
        """Add to a counter."""
        counter = self._counters[row]
        (counter.labels(*values) if values else counter).inc(by)

    def set(self, row: Row, value: float, *values: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[row]
        (gauge.labels(*values) if values else gauge).set(value)

    def observe(self, row: Row, value: float, *values: str) -> None:
        """Add an observation to a histogram."""
        histogram = self._histograms[row]
        (histogram.labels(*values) if values else histogram).observe(value)

    def before_render(self, refresh: Callable[[], None]) -> None:
        """Call that each time before rendering: for gauges that are cheaper to read than to keep."""
        self._before_render.append(refresh)

    def render(self) -> bytes:
        """The exposition text; its type is `CONTENT_TYPE`."""
        for refresh in self._before_render:
            refresh()
        return generate_latest(self.registry)

    def value(self, row: Row, *values: str, suffix: str = "") -> float:
        """The current value of one series, 0 if it has none yet; `suffix` picks `_count` or `_sum` of a histogram."""
        name = f"{PREFIX}_{row.name}" + ("_total" if row.kind is Kind.COUNTER else suffix)
        found = self.registry.get_sample_value(name, dict(zip(row.labels, values, strict=True)))
        return found or 0.0


def _counter(row: Row, registry: CollectorRegistry) -> Counter:
    return Counter(row.name, row.text, row.labels, namespace=PREFIX, registry=registry)


def _gauge(row: Row, registry: CollectorRegistry) -> Gauge:
    return Gauge(row.name, row.text, row.labels, namespace=PREFIX, registry=registry)


def _histogram(row: Row, registry: CollectorRegistry) -> Histogram:
    return Histogram(row.name, row.text, row.labels, namespace=PREFIX, registry=registry, buckets=row.buckets)
