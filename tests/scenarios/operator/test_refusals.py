"""Writes that the server refuses, again and again: rights that are missing, admission policies (architecture, section 6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from dra_operator.app import operator as wiring
from dra_operator.controllers.clock import SystemClock
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault

from .objects import by_name, claim, device_class, node, pod, policy, slice_
from .world import World

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy())
WRITES = frozenset({"create", "patch", "delete"})
SPEED = 50.0
ALWAYS = 1_000_000


class FastClock(SystemClock):
    """Time passes faster by `SPEED`."""

    def monotonic(self) -> float:
        return super().monotonic() * SPEED

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay / SPEED, callback)


@pytest.fixture
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "SystemClock", FastClock)


def refusal(code: int = 403) -> StatusError:
    reason = "Forbidden" if code == 403 else "Invalid"
    return StatusError(code, reason, "scripted refusal: rights are missing")


def writes_of(here: World, resource: str) -> int:
    """The operator's writes of one resource."""
    return sum(
        1
        for call, _ in here.server.calls
        if call.resource == resource and call.verb in WRITES and call.user_agent.startswith("dra-operator")
    )


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(
    ("resource", "code"),
    [("resourceclaims/status", 422), ("resourceclaims/status", 403), ("pods", 403), ("pods", 422)],
)
async def test_a_write_that_is_refused_is_not_repeated_faster_than_its_back_off(
    resource: str, code: int
) -> None:
    """12 to 13 tries in a minute by the back-off; each has one write of the resource. The pod has waited before, in vain."""
    async with World("claims") as here:
        here.add(*CLUSTER)
        await here.start()
        here.server.faults.add(Fault(refusal(code), verbs=WRITES, resource=resource, times=ALWAYS))
        here.add(pod("web", by_name("mine"), by_name("both", "b")))
        await here.until(lambda: here.messages("ClaimNotReady", "web"))
        here.add(claim("mine"), claim("both"), pod("peer", by_name("both")))
        await here.until(lambda: here.messages("WriteRefused", "web"))
        await asyncio.sleep(60.0 / SPEED)
        tries = [name for name in ("web", "peer") if here.is_gated(name)]
        assert tries == ["web", "peer"]
        assert 2 <= writes_of(here, resource) <= 2 * 16


async def test_a_pod_whose_writes_are_refused_does_not_stop_the_others_and_goes_on_when_they_no_longer_are() -> (
    None
):
    async with World("claims") as here:
        here.add(*CLUSTER, claim("mine"), claim("also"))
        await here.start()
        here.server.faults.add(Fault(refusal(), verbs=WRITES, resource="pods", name="web", times=ALWAYS))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.messages("WriteRefused", "web"))
        here.add(pod("next", by_name("also")))
        await here.until(lambda: not here.is_gated("next"))
        here.server.faults.clear()
        await here.until(lambda: not here.is_gated("web"))


async def test_a_policy_whose_rule_is_refused_is_not_ready_and_its_pods_are_told_why() -> None:
    async with World("claims") as here:
        here.add(*CLUSTER, claim("mine"))
        await here.start()
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        here.server.faults.add(
            Fault(refusal(), verbs=frozenset({"create"}), resource="devicetaintrules", times=ALWAYS)
        )
        await here.delete("rule", next(iter(here.rules)))
        await here.until(lambda: here.condition("Enforced") == ("False", "RulesRefused"))
        await here.until(lambda: here.condition("Ready") == ("False", "RulesRefused"))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.messages("PolicyNotEnforced", "web"))
        assert "rights are missing" in here.messages("PolicyNotEnforced", "web")[0]
        assert here.devices() == {}
        here.server.faults.clear()
        await here.until(lambda: not here.is_gated("web"))
        await here.until(lambda: here.condition("Enforced") == ("True", "RulesInPlace"))
