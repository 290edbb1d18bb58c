"""The end of pods at every stage: devices come free each time, whoever releases claims."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.metrics import WRITES
from dra_operator.placement import entries

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import world

CLUSTER = (node("n1"), slice_("n1", 1), device_class(), policy(), template(), claim("mine"))
BOTH = pytest.mark.parametrize(
    ("standins", "generate"),
    [
        pytest.param(("binding", "kubelet"), "always", id="we release"),
        pytest.param(("claims", "binding", "kubelet"), "never", id="the stock controller releases"),
    ],
)


@BOTH
async def test_a_pod_deleted_while_running_frees_its_device_and_its_claim_goes(
    standins: tuple[str, ...], generate: str
) -> None:
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.delete("pod", "web")
        await here.until(lambda: "web" not in here.pods and list(here.claims) == ["mine"])


async def test_the_last_finalizer_of_a_claim_is_taken_off_once() -> None:
    """The claim is gone with that write; its answer says so by nothing but a missing finalizer."""
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.delete("pod", "web")
        await here.until(lambda: list(here.claims) == ["mine"])
        await here.settle()
        assert here.operator is not None
        assert here.operator.metrics.value(WRITES, "patch", "resourceclaims", "404") == 0


@BOTH
async def test_a_finished_pod_frees_its_devices_c67(standins: tuple[str, ...], generate: str) -> None:
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.pods["web"]["status"].get("phase") == "Running")
        await here.finish("web")
        await here.until(lambda: list(here.claims) == ["mine"])
        here.add(pod("next", by_name("mine")))
        await here.until(lambda: here.node_of("next"))


@BOTH
async def test_a_claim_made_by_the_user_stays_and_is_free_again(
    standins: tuple[str, ...], generate: str
) -> None:
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.delete("pod", "web")
        await here.until(lambda: "web" not in here.pods and not here.devices())
        await here.until(lambda: not here.claims["mine"]["metadata"].get("finalizers"))
        assert not here.claims["mine"]["status"].get("reservedFor")


@BOTH
async def test_a_pod_deleted_while_gated_leaves_nothing(standins: tuple[str, ...], generate: str) -> None:
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("holder", by_name("mine")))
        await here.until(lambda: here.node_of("holder"))
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        await here.delete("pod", "web")
        await here.until(lambda: list(here.claims) == ["mine"])


@BOTH
async def test_a_pod_deleted_after_allocation_and_before_binding_frees_its_device(
    standins: tuple[str, ...], generate: str
) -> None:
    stock = tuple(name for name in standins if name != "binding")
    async with world(*stock, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: not here.is_gated("web"))
        assert len(here.devices_of("web")) == 1
        await here.delete("pod", "web")
        await here.until(lambda: list(here.claims) == ["mine"] and not here.devices())


async def test_a_consumer_that_vanished_while_nobody_looked_is_dropped_at_start_c69_c88() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.kill()
        await here.delete("pod", "web")
        await here.until(lambda: "web" not in here.pods)
        assert len(here.devices()) == 1
        await here.start()
        await here.until(lambda: not here.devices())


async def test_one_of_two_consumers_done_leaves_the_allocation_c86() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("a", by_name("mine")), pod("b", by_name("mine")))
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        await here.delete("pod", "a")
        await here.until(lambda: len(here.claims["mine"]["status"]["reservedFor"]) == 1)
        await here.settle()
        assert here.devices_of("b") == ["gpu.example.com/n1/dev-0"]


async def test_a_consumer_of_a_kind_that_we_do_not_know_stays_c87() -> None:
    stranger = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "job-1"}
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        reserved = here.claims["mine"]["status"]["reservedFor"]
        await here.patch("claim", "mine", {"status": {"reservedFor": [*reserved, stranger]}}, "status")
        await here.delete("pod", "web")
        await here.until(lambda: here.claims["mine"]["status"]["reservedFor"] == [stranger])
        await here.settle()
        assert len(here.devices()) == 1


async def test_a_claim_deleted_while_unused_goes_c63() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_template("gpu"), gates=("example.com/other", "dra-operator.io/allocate")))
        await here.until(lambda: len(here.claims) == 2)
        generated = next(name for name in here.claims if name != "mine")
        await here.delete("claim", generated)
        await here.until(lambda: generated not in here.claims)


async def test_a_leaked_allocation_of_ours_is_taken_back_i45() -> None:
    async with world("binding", objects=CLUSTER, sweep_seconds=0.2) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.patch(
            "claim", "mine", {"status": {"reservedFor": None}}, "status"
        )  # kube-scheduler's Unreserve
        await here.patch("pod", "web", {"status": {"phase": "Failed"}}, "status")
        await here.until(lambda: not here.devices())
        await here.until(lambda: not here.claims["mine"]["metadata"].get("finalizers"))


async def test_an_allocation_that_is_not_ours_is_never_swept_c64() -> None:
    foreign: dict[str, Any] = {
        "devices": {
            "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}]
        }
    }
    async with world("binding", objects=CLUSTER, sweep_seconds=0.1) as here:
        await here.patch("claim", "mine", {"status": {"allocation": foreign}}, "status")
        await here.settle()
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}


async def test_a_pod_whose_generated_claim_was_deleted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody makes another claim, as the stock controller has no reason to look at the pod again."""
    monkeypatch.setattr(entries, "LAG", 0.2)
    async with world(objects=(*CLUSTER, pod("web", by_template("gpu")))) as here:
        statuses = [{"name": "gpu", "resourceClaimName": "web-gpu-lost"}]
        await here.patch("pod", "web", {"status": {"resourceClaimStatuses": statuses}}, "status")
        await here.until(lambda: here.messages("ClaimMissing", "web"))
        assert '"web-gpu-lost" not found' in here.messages("ClaimMissing", "web")[0]
        assert here.is_gated("web")
