"""Thousands of pods may become ours at once, without the gate: they are told in rounds, so that events are neither a storm nor lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.controllers.bystanders import GATHER, LOOKS, REMIND, ROUND, TELLS, BystanderWatch
from dra_operator.controllers.parts import Parts
from dra_operator.features import DEFAULT_1_37
from dra_operator.metrics import Metrics
from tests.unit.placement.build import NIC, claim, cluster_of, gpu_class, node, placer, pod, policy, slice_

from .clocks import HandClock

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.kube.eventlog import Metadata
    from dra_operator.model import Value

PODS = 3 * TELLS
SETTLE = 15.0


class Told:
    """A recorder that remembers who was told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def record(self, _kind: str, about: Metadata, reason: str, _message: str) -> None:
        """One event."""
        assert reason == "NotGated"
        self.names.append(about.name)

    def relieve(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """Nothing is taken back."""
        raise AssertionError(kind, about, reason, message)


def watched(*objects: Value, count: int = PODS, settle: float = 0.0) -> tuple[Cluster, Told, HandClock]:
    """Pods past the gate, and a watch that has begun."""
    waiting = [
        item
        for number in range(count)
        for item in (claim(f"c{number}"), pod(f"p{number}", f"c{number}", gates=()))
    ]
    cluster = cluster_of(node("n1"), gpu_class(), slice_("gpus", ["gpu-0:a100"], on="n1"), *waiting, *objects)
    told, clock, no_access = Told(), HandClock(), None
    access: Any = no_access
    watch = BystanderWatch(
        Parts(cluster, access, told, Metrics(), clock, DEFAULT_1_37), placer(cluster), settle
    )
    watch.start()
    cluster.on_change(watch.changed)
    return cluster, told, clock


def rounds(clock: HandClock) -> int:
    """Rounds that are due; not the reminder, which always is."""
    return sum(timer.callback.__name__ != "_remind" for timer in clock.timers)


def test_each_round_tells_some_and_each_pod_is_told_once() -> None:
    cluster, told, clock = watched()
    clock.advance(GATHER)
    assert told.names == []

    cluster.apply("ADDED", policy())
    counts = []
    for seconds in (GATHER, ROUND, ROUND, ROUND):
        clock.advance(seconds)
        counts.append(len(told.names))

    assert counts == [TELLS, 2 * TELLS, PODS, PODS]
    assert len(set(told.names)) == PODS
    assert rounds(clock) == 0


def test_a_pod_that_still_waits_is_told_again_before_its_event_expires() -> None:
    _, told, clock = watched(policy(), count=1)
    clock.advance(GATHER)
    assert told.names == ["p0"]
    clock.advance(REMIND - GATHER - 1)
    assert told.names == ["p0"]
    for _ in range(2):
        clock.advance(1)
        clock.advance(GATHER)
    assert told.names == ["p0", "p0"]


def test_pods_that_were_there_at_the_start_are_told_in_rounds_too() -> None:
    _, told, clock = watched(policy())

    clock.advance(GATHER)

    assert len(told.names) == TELLS


def test_changes_while_a_round_is_due_bring_no_other_rounds() -> None:
    """A driver publishes its slices anew: the pods keep their turn."""
    cluster, told, clock = watched(policy())
    for number in range(20):
        cluster.apply("MODIFIED", slice_("gpus", [f"gpu-{number}:a100"], on="n1"))
        assert rounds(clock) == 1

    clock.advance(GATHER)
    assert len(told.names) == TELLS
    assert rounds(clock) == 1


def test_a_round_looks_at_a_bounded_number_of_pods() -> None:
    """They are kube-scheduler's: nobody is told, and the last one, which is ours by then, is in the second round."""
    cluster, told, clock = watched(policy("nics", {"driver": NIC}), count=LOOKS + 1)
    clock.advance(GATHER)
    assert rounds(clock) == 1

    cluster.apply("ADDED", policy())
    clock.advance(ROUND)

    assert told.names[0] == f"p{LOOKS}"


def test_nobody_is_told_as_long_as_kube_scheduler_may_still_serve_pods_from_the_pool() -> None:
    cluster, told, clock = watched(count=1, settle=SETTLE)
    clock.advance(SETTLE)
    cluster.apply("ADDED", policy())

    clock.advance(SETTLE - 1)
    assert told.names == []
    clock.advance(1)
    assert told.names == ["p0"]


def test_a_pod_that_becomes_ours_again_is_told_again() -> None:
    cluster, told, clock = watched(policy(), count=1)
    clock.advance(GATHER)
    cluster.apply("DELETED", policy())
    clock.advance(GATHER)
    cluster.apply("ADDED", policy("again"))
    clock.advance(GATHER)

    assert told.names == ["p0", "p0"]
