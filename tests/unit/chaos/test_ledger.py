"""The checker of the storm sees what may not be, and nothing else: each rule by the smallest story that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.ledger import FINALIZER, OVERTAKEN, Ledger

Object = dict[str, Any]


def claim(
    version: int,
    name: str = "c",
    *,
    device: str = "",
    users: tuple[str, ...] = (),
    guarded: bool = True,
    going: bool = False,
) -> Object:
    results = [{"driver": "d", "pool": "p", "device": device}]
    allocation = {"allocation": {"devices": {"results": results}}} if device else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "finalizers": [FINALIZER] if guarded else [],
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}),
        },
        "status": {**allocation, "reservedFor": [{"uid": user} for user in users]},
    }


def pod(version: int, name: str = "p", *, node: str = "", phase: str = "Pending", of: str = "c") -> Object:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)},
        "spec": {"nodeName": node, "resourceClaims": [{"name": "r", "resourceClaimName": of}]},
        "status": {"phase": phase},
    }


def told(*events: tuple[str, Object], finish: bool = True) -> Ledger:
    ledger = Ledger()
    for event, obj in events:
        ledger.take("pods" if "phase" in obj["status"] else "claims", event, obj)
    if finish:
        ledger.finish()
    return ledger


def texts(ledger: Ledger) -> list[str]:
    return [violation.text for violation in ledger.violations]


A_LIFE = (
    ("ADDED", claim(1)),
    ("ADDED", pod(2)),
    ("MODIFIED", claim(3, device="x", users=("p",))),
    ("MODIFIED", pod(4, node="n")),
    ("MODIFIED", pod(5, node="n", phase="Succeeded")),
    ("MODIFIED", claim(6, device="x")),
    ("MODIFIED", claim(7)),
    ("DELETED", claim(8, guarded=False)),
)


def test_the_life_of_a_claim_breaks_no_rule_and_all_of_it_is_looked_at() -> None:
    ledger = told(*A_LIFE)
    assert texts(ledger) == []
    assert ledger.checked == {
        "claim versions": 5,
        "devices given": 1,
        "consumers removed": 1,
        "pods bound": 1,
    }


def test_a_device_in_two_claims() -> None:
    ledger = told(
        ("ADDED", claim(1, "a", device="x", users=("p",))), ("ADDED", claim(2, "b", device="x", users=("q",)))
    )
    assert texts(ledger) == ["device d/p/x is given to ns/b while ns/a holds it"]
    story = "\n".join(ledger.violations[0].story)
    assert "1 ADDED: holds d/p/x, reserved for p" in story
    assert "2 ADDED: holds d/p/x, reserved for q" in story


def test_a_device_in_one_claim_after_another() -> None:
    freed, deleted = ("MODIFIED", claim(2, "a")), ("DELETED", claim(2, "a", guarded=False))
    first, second = ("ADDED", claim(1, "a", device="x")), ("ADDED", claim(3, "b", device="x"))
    assert texts(told(first, freed, second)) == []
    assert texts(told(("ADDED", claim(1, "a")), deleted, second)) == []


@pytest.mark.parametrize("special", [{"adminAccess": True}, {"shareID": "s"}])
def test_what_is_not_exclusive_may_be_in_two_claims(special: Object) -> None:
    both = [claim(1, "a", device="x"), claim(2, "b", device="x")]
    for each in both:
        each["status"]["allocation"]["devices"]["results"][0].update(special)
    assert texts(told(*(("ADDED", each) for each in both))) == []


def test_half_of_an_allocation() -> None:
    assert texts(told(("ADDED", claim(1, users=("p",))))) == ["claim ns/c is reserved without an allocation"]
    assert texts(told(("ADDED", claim(1, device="x", guarded=False)))) == [
        "claim ns/c is allocated without the finalizer"
    ]


def test_another_allocation_in_the_place_of_one() -> None:
    changed = told(("ADDED", claim(1, device="x")), ("MODIFIED", claim(2, device="y")))
    assert texts(changed) == ["claim ns/c had its allocation changed"]


def test_end_of_a_claim_that_is_allocated() -> None:
    going = ("MODIFIED", claim(2, device="x", going=True))
    ended = told(("ADDED", claim(1, device="x")), going, ("DELETED", claim(3, device="x", going=True)))
    assert texts(ended) == ["claim ns/c was removed while it was allocated"]


def test_end_of_a_claim_that_was_allocated_without_its_finalizer() -> None:
    ended = told(("ADDED", claim(1, device="x", guarded=False)), ("DELETED", claim(2, device="x")))
    assert texts(ended) == [
        "claim ns/c is allocated without the finalizer",
        "claim ns/c was removed while it was allocated",
    ]


def test_deletion_that_a_finalizer_and_an_allocation_have_overtaken_is_of_kube_apiserver() -> None:
    """It never had a deletionTimestamp; what its pod does now, and who gets the device, is looked at as ever."""
    held = ("ADDED", claim(1, device="x", users=("p",)))
    gone, bound = ("DELETED", claim(3, device="x", users=("p",))), ("ADDED", pod(4, node="n"))
    ledger = told(held, gone, bound, ("ADDED", claim(5, "d", device="x")))
    assert texts(ledger) == []
    assert ledger.noticed == {OVERTAKEN: 1}
    assert texts(told(held, gone, ("ADDED", pod(4, "q", node="n")))) == [
        "pod ns/q (q) was bound at 4 while ns/c was not allocated"
    ]


@pytest.mark.parametrize("order", ["claims first", "pods first"])
def test_removal_of_a_consumer_that_lives(order: str) -> None:
    """Whichever watch is ahead: versions tell what was when."""
    claims = [("ADDED", claim(1, device="x", users=("p",))), ("MODIFIED", claim(4, device="x"))]
    pods = [("ADDED", pod(2, node="n")), ("MODIFIED", pod(6, node="n", phase="Succeeded"))]
    events = claims + pods if order == "claims first" else pods + claims
    assert texts(told(*events)) == ["claim ns/c lost its consumer ns/p at 4: bound since 2 and alive"]


def test_removal_of_a_consumer_that_was_over_or_not_bound_yet() -> None:
    taken, freed = ("ADDED", claim(1, device="x", users=("p",))), ("MODIFIED", claim(4, device="x"))
    assert texts(told(taken, freed, ("ADDED", pod(2)))) == []
    assert texts(told(taken, freed, ("ADDED", pod(2, node="n")), ("DELETED", pod(3, node="n")))) == []


@pytest.mark.parametrize(
    ("state", "what"),
    [({}, "not allocated"), ({"device": "x", "users": ("q",)}, "not reserved for it")],
)
def test_pod_bound_before_its_claim_was_its_own(state: Object, what: str) -> None:
    ledger = told(
        ("ADDED", claim(1, **state)),
        ("ADDED", pod(2, node="n")),
        ("MODIFIED", claim(3, device="x", users=("p",))),
    )
    assert texts(ledger) == [f"pod ns/p (p) was bound at 2 while ns/c was {what}"]


def test_pod_that_was_over_before_it_was_bound_needs_no_claim() -> None:
    """Its reservation was rightly taken away while the binding was under way."""
    held, freed = ("ADDED", claim(1, device="x", users=("p",))), ("MODIFIED", claim(3))
    over, bound = ("MODIFIED", pod(2, phase="Succeeded")), ("MODIFIED", pod(4, node="n", phase="Succeeded"))
    assert texts(told(held, over, freed, bound)) == []
    later = ("MODIFIED", pod(5, node="n", phase="Succeeded"))
    assert texts(told(held, freed, ("MODIFIED", pod(4, node="n")), later)) == [
        "pod ns/p (p) was bound at 4 while ns/c was not allocated"
    ]


def test_what_needs_both_watches_waits_for_the_one_that_is_behind() -> None:
    ledger = told(("ADDED", pod(5, node="n")), finish=False)
    assert texts(ledger) == []
    ledger.take("claims", "ADDED", claim(3, device="x", users=("p",)))
    ledger.advance("claims", 9)
    assert (texts(ledger), ledger.checked["pods bound"]) == ([], 1)
