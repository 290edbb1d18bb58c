"""Counting, setting and rendering."""

from __future__ import annotations

from dra_operator.metrics import (
    ALLOCATIONS,
    LATENCY,
    QUEUE_DEPTH,
    WAITING_PODS,
    WATCH_RESTARTS,
    WRITES,
    Metrics,
)


def test_counting_by_labels() -> None:
    metrics = Metrics()
    metrics.count(WRITES, "patch", "pods", "200")
    metrics.count(WRITES, "patch", "pods", "200")
    metrics.count(WRITES, "patch", "pods", "409")
    assert [metrics.value(WRITES, "patch", "pods", code) for code in ("200", "409", "500")] == [2, 1, 0]


def test_a_total_that_is_kept_elsewhere_never_goes_down() -> None:
    metrics = Metrics()
    for total in (3, 5, 5, 4):
        metrics.count_to(WATCH_RESTARTS, total, "Pod", "ended")
    assert metrics.value(WATCH_RESTARTS, "Pod", "ended") == 5


def test_operators_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.count(ALLOCATIONS, "committed")
    assert (one.value(ALLOCATIONS, "committed"), other.value(ALLOCATIONS, "committed")) == (1, 0)


def test_gauges_are_read_when_rendered() -> None:
    metrics = Metrics()
    metrics.before_render(lambda: metrics.set(QUEUE_DEPTH, 7, "allocation"))
    assert 'dra_operator_queue_depth{controller="allocation"} 7.0' in metrics.render().decode()


def test_series_that_are_no_more_go_and_initial_ones_become_0() -> None:
    metrics = Metrics()
    metrics.set_all(WAITING_PODS, {("AllocationFailed",): 2, ("Settling",): 1})
    metrics.set_all(WAITING_PODS, {("MixedClaim",): 4})
    lines = [
        line
        for line in metrics.render().decode().splitlines()
        if line.startswith("dra_operator_waiting_pods{")
    ]
    assert lines == [
        'dra_operator_waiting_pods{reason="AllocationFailed"} 0.0',
        'dra_operator_waiting_pods{reason="MixedClaim"} 4.0',
    ]


def test_latencies_are_a_histogram() -> None:
    metrics = Metrics()
    metrics.observe(LATENCY, 0.3)
    assert (metrics.value(LATENCY, suffix="_count"), metrics.value(LATENCY, suffix="_sum")) == (1, 0.3)
