"""Who waits, and why: news, and counts by reason."""

from __future__ import annotations

from dra_operator.controllers.waiting import Waiting


def test_only_another_state_is_news() -> None:
    waiting = Waiting()
    told = [
        waiting.put("ns/a", reason, state, ()) for reason, state in (("A", "A x"), ("A", "A x"), ("B", "B x"))
    ]
    assert told == [True, False, True]
    assert (len(waiting), "ns/a" in waiting, list(waiting)) == (1, True, ["ns/a"])


def test_a_pod_counts_once_for_its_last_reason_and_not_at_all_when_it_goes() -> None:
    waiting = Waiting()
    waiting.put("ns/a", "A", "A", ["ns/1"])
    waiting.put("ns/b", "A", "A", [])
    waiting.put("ns/a", "B", "B", ["ns/1", "ns/2"])
    assert waiting.pods_by_reason() == {"A": 1, "B": 1}
    assert waiting.claims_by_reason() == {"B": 2}
    waiting.drop("ns/a")
    waiting.drop("ns/a")
    assert (waiting.pods_by_reason(), waiting.claims_by_reason()) == ({"A": 1}, {})


def test_a_shared_claim_counts_once() -> None:
    waiting = Waiting()
    for name in ("ns/a", "ns/b"):
        waiting.put(name, "AllocationFailed", "", ["ns/shared"])
    assert waiting.claims_by_reason() == {"AllocationFailed": 1}


def test_a_pod_minds_its_neighbours_until_it_waits_for_something_else() -> None:
    waiting = Waiting()
    waiting.put("ns/a", "A", "A", ())
    waiting.put("ns/b", "A", "A", ())
    waiting.mind_neighbours("ns/a")
    assert waiting.minding_neighbours() == ("ns/a",)

    waiting.put("ns/a", "B", "B", ())
    assert waiting.minding_neighbours() == ()
