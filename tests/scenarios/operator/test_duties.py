"""Mode cooperate without anybody who does kube-controller-manager's claim duties: each is missed, told, and over when it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dra_operator.metrics import OVERDUE_DUTIES

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .test_release import consumer, taken, uid_of
from .world import PATIENCE, World, world

if TYPE_CHECKING:
    import pytest

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"))
OTHER = "example.com/hold"
FAST = {"report_seconds": 0.1}
REASON = "ClaimDutyNeglected"


def overdue(here: World) -> dict[str, float]:
    assert here.operator is not None
    metrics = here.operator.metrics
    duties = ("generate", "reserve", "release", "delete")
    return {duty: value for duty in duties if (value := metrics.value(OVERDUE_DUTIES, duty))}


async def until(here: World, **wanted: int) -> None:
    """Counted so. Timers of the operator make no change that could be waited for, so it is asked."""
    async with asyncio.timeout(PATIENCE):
        while overdue(here) != wanted:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)


async def test_a_claim_that_nobody_makes_is_counted_and_told_once_c20(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world(objects=CLUSTER, **FAST) as here:
        here.add(pod("a", by_template("gpu"), gates=(OTHER,)), pod("b", by_template("gpu"), gates=()))
        await until(here, generate=2)
        told = [record.getMessage() for record in caplog.records if "claim controller" in record.getMessage()]
        assert len(told) == 1
        assert "no claim has been made from ResourceClaimTemplate default/gpu" in told[0]
        assert "--generate-claims=always" in told[0]
        entries = [{"name": "gpu", "resourceClaimName": "mine"}]
        for name in ("a", "b"):
            await here.patch("pod", name, {"status": {"resourceClaimStatuses": entries}}, "status")
        await until(here)


async def test_a_template_that_is_missing_is_nobodys_neglect_c24() -> None:
    async with world(objects=CLUSTER, **FAST) as here:
        here.add(pod("a", by_template("none"), gates=()), pod("b", by_template("gpu"), gates=()))
        await until(here, generate=1)


async def test_a_bound_pod_that_nobody_reserves_for_is_told_c50() -> None:
    async with world(objects=CLUSTER, **FAST) as here:
        here.add(pod("first", gates=(), nodeName="n1"), pod("web", by_name("mine"), gates=(), nodeName="n1"))
        status = taken(consumer("first", uid_of(here, "first")))
        await here.patch("claim", "mine", {"status": status}, "status")
        await until(here, reserve=1)
        await here.until(lambda: here.messages(REASON, "web"))
        (text,) = here.messages(REASON, "web")
        assert text.startswith(
            "spec.resourceClaims[0]: ResourceClaim default/mine is allocated and not reserved for the pod"
        )
        assert "resourceclaim-controller" in text


async def test_a_consumer_that_is_gone_is_counted_until_it_is_struck_off_c61() -> None:
    async with world(objects=CLUSTER, **FAST) as here:
        await here.patch("claim", "mine", {"status": taken(consumer("web", "gone"))}, "status")
        await until(here, release=1)
        await here.patch("claim", "mine", {"status": {"allocation": None, "reservedFor": None}}, "status")
        await until(here)


async def test_a_generated_claim_of_a_done_pod_that_nobody_deletes_c65() -> None:
    async with world(objects=CLUSTER, **FAST) as here:
        here.add(pod("web", by_template("gpu"), gates=()))
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web",
            "uid": uid_of(here, "web"),
            "controller": True,
        }
        left = claim("left")
        left["metadata"] |= {
            "ownerReferences": [owner],
            "annotations": {"dra-operator.io/allocated": "generated"},
        }
        here.add(left)
        await here.patch("claim", "left", {"status": taken()}, "status")
        await here.finish("web")
        await until(here, delete=1)
        await here.until(lambda: here.messages(REASON, "left"))
        assert here.messages(REASON, "left")[0].startswith("metadata.ownerReferences: Pod web, for which")
        await here.delete("claim", "left")
        await until(here)


async def test_where_the_operator_does_it_nobody_is_watched() -> None:
    async with world(objects=CLUSTER, generate_claims="always", **FAST) as here:
        assert here.operator is not None
        assert "duties" not in [loop.name for loop in here.operator.brain.loops]
