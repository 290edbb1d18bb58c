"""Failed searches speak for pods alike, and costly ones rest."""

from __future__ import annotations

from dra_operator.controllers.failures import Failures
from dra_operator.placement import Cause, NodeFinding, Unplaced

from .clocks import HandClock

OUTCOME = Unplaced(1, ())


def test_a_failure_speaks_for_pods_alike_until_something_changes() -> None:
    failures = Failures(HandClock())
    failures.put(b"a", OUTCOME, took=0.001)
    assert (failures.find(b"a"), failures.find(b"b")) == ((OUTCOME, 0.0), None)
    failures.something_changed()
    assert failures.find(b"a") is None


def test_a_costly_search_rests_although_something_changed_and_is_looked_at_again_then() -> None:
    clock = HandClock()
    failures = Failures(clock)
    failures.put(b"a", OUTCOME, took=2.0)
    clock.advance(1.0)
    failures.something_changed()
    failures.something_changed()
    assert failures.find(b"a") == (OUTCOME, 7.0)
    clock.advance(7.0)
    assert failures.find(b"a") is None


def test_a_costly_search_that_has_rested_and_nothing_changed_is_not_repeated() -> None:
    clock = HandClock()
    failures = Failures(clock)
    failures.put(b"a", OUTCOME, took=2.0)
    clock.advance(100.0)
    assert failures.find(b"a") == (OUTCOME, 0.0)


def test_pods_that_are_like_no_other_leave_nothing() -> None:
    failures = Failures(HandClock())
    failures.put(b"", OUTCOME, took=2.0)
    assert failures.find(b"") is None


def test_a_pod_that_comes_to_a_node_ends_only_the_failures_that_it_may_turn() -> None:
    lonely = Unplaced(1, (NodeFinding("n1", Cause.NEIGHBOURS, "node(s) didn't match pod affinity rules"),))
    clock = HandClock()
    failures = Failures(clock)
    failures.put(b"full", OUTCOME, took=0.001)
    failures.put(b"lonely", lonely, took=0.001)
    failures.put(b"slow", lonely, took=2.0)

    failures.neighbours_changed()

    assert failures.find(b"full") == (OUTCOME, 0.0)
    assert failures.find(b"lonely") is None
    assert failures.find(b"slow") == (lonely, 8.0)
