"""The table of metrics and its rendering."""

from __future__ import annotations

from dra_operator.metrics import ALLOCATIONS, LATENCY, QUEUE_DEPTH, TABLE, WRITES, Metrics


def test_every_row_is_rendered_with_our_prefix() -> None:
    text = Metrics().render().decode()
    assert [row.name for row in TABLE if f"# HELP dra_operator_{row.name}" not in text] == []


def test_counting_by_labels() -> None:
    metrics = Metrics()
    metrics.count(WRITES, "patch", "pods", "200")
    metrics.count(WRITES, "patch", "pods", "200")
    metrics.count(WRITES, "patch", "pods", "409")
    assert [metrics.value(WRITES, "patch", "pods", code) for code in ("200", "409", "500")] == [2, 1, 0]


def test_operators_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.count(ALLOCATIONS, "committed")
    assert (one.value(ALLOCATIONS, "committed"), other.value(ALLOCATIONS, "committed")) == (1, 0)


def test_gauges_are_read_when_rendered() -> None:
    metrics = Metrics()
    metrics.before_render(lambda: metrics.set(QUEUE_DEPTH, 7, "allocation"))
    assert 'dra_operator_queue_depth{controller="allocation"} 7.0' in metrics.render().decode()


def test_latencies_are_a_histogram() -> None:
    metrics = Metrics()
    metrics.observe(LATENCY, 0.3)
    assert (metrics.value(LATENCY, suffix="_count"), metrics.value(LATENCY, suffix="_sum")) == (1, 0.3)
