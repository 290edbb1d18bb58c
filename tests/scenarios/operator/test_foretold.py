"""What a simulation on a snapshot says is what the operator then does: pod for pod, node for node, device for device.

A cluster in use and many pods that wait, taken by `kubectl dra snapshot` before an operator is there; then one starts on it.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.cli.source import given
from dra_operator.cli.where import Where
from dra_operator.controllers import lineup
from dra_operator.placement import NodeScore
from dra_operator.simulation import simulate
from dra_operator.testing.builders import (
    alternative,
    device,
    first_available,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    template,
)

from .objects import DRIVER, device_class, policy
from .world import World

if TYPE_CHECKING:
    from pathlib import Path

    from .objects import Obj

NODES = 40
RUNNING = 30
WAITING = 200
LARGE = f'device.attributes["{DRIVER}"].model == "large"'

TEMPLATES = (
    template("any", request("gpu", "gpu")),
    template("pair", request("gpu", "gpu", count=2), match=[f"{DRIVER}/numa"]),
    template(
        "rather-large",
        first_available("gpu", alternative("large", "gpu", LARGE), alternative("any", "gpu")),
    ),
    template("part", request("gpu", "gpu", capacity={"requests": {"memory": "10Gi"}})),
    template("tolerant", request("gpu", "gpu", tolerations=[{"key": "worn", "operator": "Exists"}])),
    template("look", request("gpu", "gpu", LARGE, count=1), request("nic", "nic")),
)


def fleet() -> list[Obj]:
    """Nodes of three kinds: whole devices of two models, some of them tainted; devices that are shared; parts of one that draw on its counters."""
    found: list[Obj] = []
    for number in range(NODES):
        name = f"n{number:02}"
        found.append(node(name, allocatable={"cpu": str(8 + number % 3 * 8)}))
        found += KINDS[number % len(KINDS)](name, number)
        nics = [device(f"nic-{one}") for one in range(2)]
        found.append(resource_slice(f"{name}-nic", "nic.test", nics, node=name))
    return found


def whole(name: str, number: int) -> list[Obj]:
    worn = [{"key": "worn", "effect": "NoSchedule"}]
    found = [
        device(
            f"dev-{one}",
            attributes={"model": "large" if one % 2 else "small", "numa": one // 2},
            taints=worn if (number + one) % 7 == 0 else (),
        )
        for one in range(4)
    ]
    return [resource_slice(f"{name}-{DRIVER}", DRIVER, found, node=name)]


def shared(name: str, _: int) -> list[Obj]:
    found = [
        device(
            f"dev-{one}",
            attributes={"model": "large", "numa": one},
            capacity={"memory": "40Gi"},
            allowMultipleAllocations=True,
        )
        for one in range(2)
    ]
    return [resource_slice(f"{name}-{DRIVER}", DRIVER, found, node=name)]


def partitions(name: str, _: int) -> list[Obj]:
    sizes = {"all": 40, "half-0": 20, "half-1": 20, **{f"quarter-{one}": 10 for one in range(4)}}
    found = [
        device(
            part,
            attributes={"model": "small", "numa": 0},
            consumesCounters=[{"counterSet": "board", "counters": {"memory": {"value": f"{size}Gi"}}}],
        )
        for part, size in sizes.items()
    ]
    board = [{"name": "board", "counters": {"memory": {"value": "40Gi"}}}]
    slices = [
        resource_slice(f"{name}-board", DRIVER, [], node=name, sharedCounters=board, resourceSliceCount=2),
        resource_slice(f"{name}-parts", DRIVER, found, node=name, resourceSliceCount=2),
    ]
    del slices[0]["spec"]["devices"]
    return slices


KINDS = (whole, shared, partitions, whole)


def crowd(count: int, dice: random.Random, prefix: str) -> list[Obj]:
    """Pods in an order that is not that of their names, of several priorities."""
    names = [f"{prefix}-{number:03}" for number in range(count)]
    dice.shuffle(names)
    found = []
    for name in names:
        chosen = dice.choice(TEMPLATES)["metadata"]["name"]
        found.append(
            pod(
                name,
                pod_claim("gpu", template=chosen),
                requests={"cpu": f"{dice.choice((100, 500, 2000))}m"},
                gates=["dra-operator.io/allocate"],
                priority=dice.choice((0, 0, 0, 100)),
            )
        )
    return found


@pytest.mark.parametrize("score", [NodeScore.SPREAD, NodeScore.PACK], ids=str)
async def test_the_operator_does_what_was_foretold_device_for_device(
    score: NodeScore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine that is busy, pods would wait for so long that turns go to those that have waited longest, which no snapshot can tell.
    monkeypatch.setattr(lineup, "LONG", 3600.0)
    dice = random.Random(f"foretold {score}")
    async with World("claims", "binding", "kubelet", node_score=str(score)) as here:
        here.add(
            device_class(),
            device_class("nic", "nic.test"),
            policy("all", DRIVER, "nic.test"),
            *fleet(),
            *TEMPLATES,
        )
        await here.start()
        here.add(*crowd(RUNNING, dice, "old"))
        await here.settle_but_timers()
        assert await here.stop() == 0
        here.add(*crowd(WAITING, dice, "new"))
        await here.until(lambda: all(is_made(one) for one in here.pods.values()), "claims are made")

        told = await foretold(here, tmp_path, score)
        await here.start()
        await here.settle_but_timers()

        assert here.held_twice() == []
        assert done(here, told) == told
        placed = [where for where, _ in told.values() if where]
        assert WAITING // 4 < len(placed) < WAITING


def is_made(raw: Obj) -> bool:
    return bool(raw.get("status", {}).get("resourceClaimStatuses"))


Served = dict[str, tuple[str, list[str]]]
"""Pod → its node, and request, device and amounts of each result."""


async def foretold(here: World, folder: Path, score: NodeScore) -> Served:
    kubeconfig, path = here.server.write_kubeconfig(folder / "kubeconfig"), str(folder / "snapshot.json.gz")
    arguments = ["snapshot", f"--kubeconfig={kubeconfig}", "-o", path]
    shown = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert shown.exit_code == 0, shown.output
    report = simulate(given(Where(None, None, None, path)).given, score)
    return {
        one.name: (
            one.node,
            [
                text(
                    found.request,
                    str(found.device_id),
                    {name: str(part) for name, part in found.consumed_capacity.items()},
                )
                for claim in one.claims
                for found in (claim.status.allocation.devices.results if claim.status.allocation else ())
            ],
        )
        for one in report.outcomes
    }


def text(request: str, device: str, amounts: dict[str, str]) -> str:
    return f"{request}={device} {sorted(amounts.items())}"


def done(here: World, told: Served) -> Served:
    found = {}
    claims = here.claims
    for name in told:
        raw = here.pods[name]
        results = [
            one
            for status in raw["status"]["resourceClaimStatuses"]
            for one in claims[status["resourceClaimName"]]
            .get("status", {})
            .get("allocation", {"devices": {"results": []}})["devices"]["results"]
        ]
        found[name] = (
            raw["spec"].get("nodeName", ""),
            [
                text(
                    one["request"],
                    f"{one['driver']}/{one['pool']}/{one['device']}",
                    one.get("consumedCapacity", {}),
                )
                for one in results
            ],
        )
    return found
