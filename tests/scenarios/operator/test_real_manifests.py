"""Manifests such as real drivers' users write, on the embedded server: each gets what its writer meant, or a reason.

What a simulation over the same objects says is what the operator does. The table is `tests/inputs/cases.py`; `tests/e2e/test_real_manifests.py` feeds the same one to a real control plane.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from dra_operator.simulation import Given, simulate
from tests.inputs.cases import CASES, Case, drivers
from tests.inputs.manifests import CLUSTER_SCOPED, expanded, workload_of
from tests.inputs.outcomes import Snapshot, problems

from .objects import policy
from .world import DRA, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from .objects import Obj

NAMESPACE = "inputs"
STANDINS = ("claims", "binding", "kubelet", "gate")


def namespace(labels: dict[str, str]) -> Obj:
    """One whose pods get the gate."""
    metadata = {"name": NAMESPACE, "labels": {"dra-operator.io/enabled": "true", **labels}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def snapshot(here: World) -> Snapshot:
    """All that the server holds."""
    return Snapshot(
        here.server.objects("pods"),
        here.server.objects("resourceclaims", DRA),
        here.server.objects("events"),
        here.server.objects("resourceslices", DRA),
    )


def ready(obj: Obj) -> Obj:
    """A node as its kubelet reports it; anything else as it is."""
    if obj["kind"] != "Node":
        return obj
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {**obj, "status": {**obj["status"], "conditions": [condition]}}


def is_published(obj: Obj) -> bool:
    """Whether an admin made it long before."""
    return obj["kind"] in CLUSTER_SCOPED


@pytest.mark.parametrize("case", [case for case in CASES if case.embedded], ids=lambda case: case.id)
async def test_manifest_gets_what_its_writer_meant(case: Case) -> None:
    async with World(*STANDINS) as here:
        here.add(namespace(case.labels), *map(ready, case.fleet()), policy("all", *drivers(case.fleet())))
        objects = expanded(case.objects())
        for obj in filter(is_published, objects):
            here.server.create(obj)
        await here.start()
        for obj in objects:
            if not is_published(obj):
                here.server.create(obj, NAMESPACE)
        await here.until(lambda: not problems(case.demands, snapshot(here)), case.id)
        await here.settle_but_timers()
        assert problems(case.demands, snapshot(here)) == []
        assert here.held_twice() == []
        seen = snapshot(here)
        assert simulated(case, sorted(objects, key=turns(seen))) == allocated(seen)


Served = Counter[tuple[str, str, str]]
"""Workload, request, device; how many."""


def turns(seen: Snapshot) -> Callable[[Obj], int]:
    """By when the operator came to a pod: all are as old as each other, to the second."""
    order = {
        pod["metadata"]["name"]: min(
            int(claim["metadata"]["resourceVersion"]) for claim in seen.claims_of(pod)
        )
        for pod in seen.pods
        if seen.devices(pod)
    }
    last = max(order.values(), default=0) + 1
    return lambda obj: order.get(obj["metadata"].get("name", ""), last) if obj["kind"] == "Pod" else -1


def allocated(seen: Snapshot) -> Served:
    """What the operator gave."""
    return Counter(
        (workload_of(pod), request, device.id)
        for pod in seen.pods
        for request, found in seen.devices(pod).items()
        for device in found
    )


def simulated(case: Case, objects: list[Obj]) -> Served:
    """What a simulation over the same objects gives."""
    given = Given(NAMESPACE)
    fleet = map(ready, case.fleet())
    for obj in (namespace(case.labels), *fleet, policy("all", *drivers(case.fleet())), *objects):
        given.take(obj)
    pods = {f"{NAMESPACE}/{pod['metadata']['name']}": pod for pod in objects if pod["kind"] == "Pod"}
    return Counter(
        (workload_of(pods[outcome.key]), result.request, str(result.device_id))
        for outcome in simulate(given).outcomes
        if outcome.key in pods
        for claim in outcome.claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
