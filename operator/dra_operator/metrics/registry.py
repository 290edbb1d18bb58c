"""The metrics of one operator: builds the table's rows in a registry of its own, counts, renders.

Called by controllers, by the write observer and by the HTTP server. Must not start a server nor touch the global registry.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from .row import Kind, Row
from .table import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTENT_TYPE = CONTENT_TYPE_LATEST

# Else each counter and histogram has a second series, a gauge that nobody reads. The switch is the library's, one for the process.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """All metrics of one operator, and those of its process (memory, CPU, files, garbage collection).

    Methods take the row of the table and the values of its labels in the row's order.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters: dict[Row, Counter] = {}
        self._gauges: dict[Row, Gauge] = {}
        self._histograms: dict[Row, Histogram] = {}
        self._before_render: list[Callable[[], None]] = []
        for row in TABLE:
            self._build(row)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def count(self, row: Row, *values: str, by: float = 1) -> None:
        """Add to a counter."""
        counter = self._counters[row]
        (counter.labels(*values) if values else counter).inc(by)

    def count_to(self, row: Row, total: float, *values: str) -> None:
        """Bring a counter up to a total that is kept elsewhere and never goes down."""
        self.count(row, *values, by=max(0.0, total - self.value(row, *values)))

    def set(self, row: Row, value: float, *values: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[row]
        (gauge.labels(*values) if values else gauge).set(value)

    def set_all(self, row: Row, found: Mapping[tuple[str, ...], float]) -> None:
        """Set all series of a gauge: those that are not among the found ones go, but for the row's initial ones, which become 0."""
        self._gauges[row].clear()
        for values, value in {**dict.fromkeys(row.initial, 0.0), **found}.items():
            self.set(row, value, *values)

    def observe(self, row: Row, value: float, *values: str) -> None:
        """Add an observation to a histogram."""
        histogram = self._histograms[row]
        (histogram.labels(*values) if values else histogram).observe(value)

    def before_render(self, refresh: Callable[[], None]) -> None:
        """Call that each time before rendering: for gauges that are cheaper to read than to keep."""
        self._before_render.append(refresh)

    def render(self) -> bytes:
        """The exposition text; its type is `CONTENT_TYPE`."""
        self._refresh()
        return generate_latest(self.registry)

    async def render_aside(self) -> bytes:
        """As `render`, with the text made in a thread: a thousand lines take some milliseconds, which the event loop has better uses for."""
        self._refresh()
        return await asyncio.to_thread(generate_latest, self.registry)

    def _refresh(self) -> None:
        for refresh in self._before_render:
            refresh()

    def value(self, row: Row, *values: str, suffix: str = "") -> float:
        """The current value of one series, 0 if it has none yet; `suffix` picks `_count` or `_sum` of a histogram."""
        metric = self._counters.get(row) or self._gauges.get(row) or self._histograms[row]
        wanted = dict(zip(row.labels, values, strict=True))
        samples = (sample for family in metric.collect() for sample in family.samples)
        name = row.full_name + suffix
        return next((found.value for found in samples if (found.name, found.labels) == (name, wanted)), 0.0)

    def _build(self, row: Row) -> None:
        """Register a row, with the series that are there from the start."""
        family: Counter | Gauge | Histogram
        name, registry = row.family, self.registry
        if row.kind is Kind.COUNTER:
            family = self._counters[row] = Counter(name, row.text, row.labels, registry=registry)
        elif row.kind is Kind.GAUGE:
            family = self._gauges[row] = Gauge(name, row.text, row.labels, registry=registry)
        else:
            family = self._histograms[row] = Histogram(
                name, row.text, row.labels, registry=registry, buckets=row.buckets
            )
        for values in filter(None, row.initial):
            family.labels(*values)
