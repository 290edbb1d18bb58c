"""Who waits, and why: news, and counts by reason."""

from __future__ import annotations

from dra_operator.controllers.waiting import Waiting

from .clocks import HandClock


def test_only_another_state_is_news() -> None:
    waiting = Waiting(HandClock())
    told = [
        waiting.put("ns/a", reason, state, ()) for reason, state in (("A", "A x"), ("A", "A x"), ("B", "B x"))
    ]
    assert told == [True, False, True]
    assert (len(waiting), "ns/a" in waiting, list(waiting)) == (1, True, ["ns/a"])


def test_a_pod_counts_once_for_its_last_reason_and_not_at_all_when_it_goes() -> None:
    waiting = Waiting(HandClock())
    waiting.put("ns/a", "A", "A", ["ns/1"])
    waiting.put("ns/b", "A", "A", [])
    waiting.put("ns/a", "B", "B", ["ns/1", "ns/2"])
    assert waiting.pods_by_reason() == {"A": 1, "B": 1}
    assert waiting.claims_by_reason() == {"B": 2}
    waiting.drop("ns/a")
    waiting.drop("ns/a")
    assert (waiting.pods_by_reason(), waiting.claims_by_reason()) == ({"A": 1}, {})


def test_a_shared_claim_counts_once() -> None:
    waiting = Waiting(HandClock())
    for name in ("ns/a", "ns/b"):
        waiting.put(name, "AllocationFailed", "", ["ns/shared"])
    assert waiting.claims_by_reason() == {"AllocationFailed": 1}


def test_a_pod_minds_its_neighbours_until_it_waits_for_something_else() -> None:
    waiting = Waiting(HandClock())
    waiting.put("ns/a", "A", "A", ())
    waiting.put("ns/b", "A", "A", ())
    waiting.mind_neighbours("ns/a")
    assert waiting.minding_neighbours() == ("ns/a",)

    waiting.put("ns/a", "B", "B", ())
    assert waiting.minding_neighbours() == ()


def test_the_longest_wait_counts_on_when_only_the_reason_changes() -> None:
    clock = HandClock()
    waiting = Waiting(clock)
    waiting.put("ns/a", "Settling", "A", ())
    clock.advance(5)
    waiting.put("ns/b", "AllocationFailed", "A", ())
    clock.advance(10)
    waiting.put("ns/a", "AllocationFailed", "A", ())
    assert waiting.longest_by_reason() == {"AllocationFailed": 15.0}
    waiting.drop("ns/a")
    assert waiting.longest_by_reason() == {"AllocationFailed": 10.0}
    waiting.drop("ns/b")
    assert waiting.longest_by_reason() == {}
