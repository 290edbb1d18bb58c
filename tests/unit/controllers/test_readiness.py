"""Binding conditions: when devices are ready, failed or timed out, and what is told of it (cp S-60…S-68)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dra_operator.controllers import readiness
from dra_operator.controllers.clock import to_rfc3339
from dra_operator.controllers.readiness import AVOIDED, READY, Readiness, State, Verdict
from dra_operator.metrics import Metrics
from dra_operator.model import DeviceId, ResourceClaim, from_object

from .clocks import START, HandClock

DRIVER = "gpu.example.com"
TIMEOUT = 600.0

Obj = dict[str, Any]


def result(name: str, ups: tuple[str, ...] = ("Attached",), downs: tuple[str, ...] = ("Failed",)) -> Obj:
    found: Obj = {"request": "r", "driver": DRIVER, "pool": "p", "device": name}
    return found | ({"bindingConditions": list(ups), "bindingFailureConditions": list(downs)} if ups else {})


def report(name: str, share: str | None = None, **conditions: str) -> Obj:
    listed = [
        {"type": kind, "status": status, "reason": f"{kind}Reason", "message": f"about {kind}"}
        for kind, status in conditions.items()
    ]
    found: Obj = {"driver": DRIVER, "pool": "p", "device": name, "conditions": listed}
    return found | ({"shareID": share} if share else {})


def claim(
    results: list[Obj], reports: list[Obj] | None = None, stamp: str | None = None, name: str = "c"
) -> ResourceClaim:
    allocation: Obj = {"devices": {"results": results}}
    if stamp is not None:
        allocation["allocationTimestamp"] = stamp
    return from_object(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "status": {"allocation": allocation, "devices": reports or []},
        },
    )


def judged(given: ResourceClaim, seconds: float = 0.0) -> Verdict:
    return readiness.judge(given, TIMEOUT, START + timedelta(seconds=seconds))


TWO = [result("a"), result("b")]
CASES: list[tuple[str, list[Obj], list[Obj], State]] = [
    ("nothing declared", [result("a", ())], [], State.READY),
    ("nothing reported", [result("a")], [], State.PENDING),
    ("reported without the condition", [result("a")], [report("a")], State.PENDING),
    ("false", [result("a")], [report("a", Attached="False")], State.PENDING),
    ("unknown", [result("a")], [report("a", Attached="Unknown")], State.PENDING),
    ("true", [result("a")], [report("a", Attached="True")], State.READY),
    ("true on a share of it", [result("a")], [report("a", share="s", Attached="True")], State.READY),
    ("true on another device", [result("a")], [report("b", Attached="True")], State.PENDING),
    ("one of two", [result("a", ("Attached", "Booted"))], [report("a", Attached="True")], State.PENDING),
    (
        "both",
        [result("a", ("Attached", "Booted"))],
        [report("a", Attached="True", Booted="True")],
        State.READY,
    ),
    ("one of two devices", TWO, [report("a", Attached="True")], State.PENDING),
    ("both devices", TWO, [report("a", Attached="True"), report("b", Attached="True")], State.READY),
    ("failed", [result("a")], [report("a", Failed="True")], State.FAILED),
    ("failed, though ready", [result("a")], [report("a", Attached="True", Failed="True")], State.FAILED),
    ("not failed", [result("a")], [report("a", Attached="True", Failed="False")], State.READY),
    ("the second failed while the first waits", TWO, [report("b", Failed="True")], State.FAILED),
    (
        "a failure that nobody declared",
        [result("a")],
        [report("a", Attached="True", Broken="True")],
        State.READY,
    ),
]


@pytest.mark.parametrize(
    ("results", "reports", "state"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_reported_decides(results: list[Obj], reports: list[Obj], state: State) -> None:
    assert judged(claim(results, reports)).state is state


def test_a_claim_without_allocation_is_waited_for_by_nobody() -> None:
    bare = from_object(ResourceClaim, {"metadata": {"name": "c", "namespace": "default", "uid": "u"}})
    assert judged(bare) == READY


def test_the_time_counts_from_the_allocation_on() -> None:
    given = claim([result("a")], stamp=to_rfc3339(START))
    assert judged(given, TIMEOUT).state is State.PENDING
    assert judged(given, TIMEOUT + 1).state is State.TIMED_OUT
    assert (
        judged(claim([result("a")], [report("a", Attached="True")], to_rfc3339(START)), TIMEOUT + 1) == READY
    )
    assert (
        judged(claim([result("a")], [report("a", Failed="True")], to_rfc3339(START)), TIMEOUT + 1).state
        is State.FAILED
    )


@pytest.mark.parametrize("stamp", [None, "yesterday", "9999-12-31T23:59:59Z"])
def test_without_a_time_nothing_times_out(stamp: str | None) -> None:
    found = judged(claim([result("a")], stamp=stamp), 1e6)
    assert (found.state, found.deadline) == (State.PENDING, None)


def test_upstreams_words() -> None:
    failed = judged(claim([result("a")], [report("a", Failed="True")]))
    late = judged(claim([result("a")], stamp=to_rfc3339(START)), TIMEOUT + 1)
    waits = judged(
        claim([result("a", ("Attached", "Booted"))], [report("a", Booted="True")], to_rfc3339(START))
    )

    assert failed.text.startswith(
        'device binding failed: claim=c, reason=FailedReason, message="about Failed"'
    )
    assert late.text.startswith("device binding timeout: claim=c")
    assert Readiness(HandClock(), TIMEOUT, Metrics()).pending_text(waits, "n1") == (
        "waiting for binding conditions for device on node n1: ResourceClaim default/c: device gpu.example.com/p/a lacks Attached. If it is "
        "not ready at 2026-11-01T12:10:00Z, 600 s after its allocation, other devices are chosen"
    )


def test_of_several_claims_the_worst_tells_and_the_first_deadline() -> None:
    clock = HandClock()
    judge = Readiness(clock, TIMEOUT, Metrics())
    ready = claim([result("a")], [report("a", Attached="True")], name="ready")
    late = claim([result("a")], stamp=to_rfc3339(START), name="late")
    later = claim([result("a")], stamp=to_rfc3339(START + timedelta(seconds=60)), name="later")
    ever = claim([result("a")], name="ever")
    failed = claim([result("a")], [report("a", Failed="True")], name="failed")

    assert judge.judge([ready]) == READY
    assert judge.judge([ready, ever, later, late]).claim == late
    assert judge.judge([ready, ever]).claim == ever
    assert judge.judge([late, failed, ready]).claim == failed
    clock.advance(TIMEOUT + 1)
    assert judge.judge([later, late, ever]).state is State.TIMED_OUT


def test_a_device_that_failed_is_avoided_for_its_claim_and_for_a_while() -> None:
    clock, again = HandClock(), []
    judge = Readiness(clock, TIMEOUT, Metrics())
    given, other = claim([result("a"), result("b")], [report("a", Failed="True")]), claim([], name="other")
    judge.avoid(judge.judge([given]), lambda: again.append(clock.elapsed))

    assert judge.avoided([other, given]) == {DeviceId(DRIVER, "p", "a")}
    assert judge.avoided([other]) == frozenset()
    clock.advance(AVOIDED)
    assert judge.avoided([given]) == frozenset()
    clock.advance(1)
    assert len(again) == 1


def test_a_time_out_blames_the_devices_that_are_not_ready() -> None:
    clock = HandClock()
    judge = Readiness(clock, TIMEOUT, Metrics())
    given = claim(TWO, [report("a", Attached="True")], to_rfc3339(START))
    clock.advance(TIMEOUT + 1)
    judge.avoid(judge.judge([given]), lambda: None)

    assert judge.avoided([given]) == {DeviceId(DRIVER, "p", "b")}


def test_a_claim_that_is_gone_is_forgotten() -> None:
    clock = HandClock()
    judge = Readiness(clock, TIMEOUT, Metrics())
    given = claim([result("a")], [report("a", Failed="True")])
    judge.avoid(judge.judge([given]), lambda: None)
    judge.forget(given.metadata.uid)

    assert judge.avoided([given]) == frozenset()


def test_an_allocation_is_counted_once_however_many_pods_waited_for_it() -> None:
    clock, metrics = HandClock(), Metrics()
    judge = Readiness(clock, TIMEOUT, metrics)
    given = claim([result("a")], [report("a", Attached="True")], to_rfc3339(START))
    clock.advance(7)
    for _ in range(3):
        judge.count([given, claim([result("a", ())], name="plain")], State.READY)
    again = claim([result("a")], stamp=to_rfc3339(START + timedelta(seconds=5)))
    judge.count([again], State.TIMED_OUT)

    text = metrics.render().decode()
    assert 'dra_operator_binding_conditions_allocations_total{result="success"} 1.0' in text
    assert 'dra_operator_binding_conditions_allocations_total{result="timeout"} 1.0' in text
    assert 'dra_operator_binding_conditions_wait_duration_seconds_sum{result="success"} 7.0' in text
