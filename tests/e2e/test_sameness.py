"""With order FirstFit, the operator chooses what kube-scheduler would choose, device for device (architecture, section 8).

Two nodes publish the same devices under one driver. The pool of the first is ours, that of the second kube-scheduler's. The same
pods come and go on both sides, one after the other, and the allocations are compared: kube-scheduler is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import PCIE_ROOT, Fleet, claims_of, is_settled, nics, training_gpus
from tests.e2e.harness.objects import (
    claim_template,
    device_class,
    exactly,
    node,
    pod,
    policy,
    resource_slice,
)

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two equal 8-GPU nodes; the policy names the pools of the first."""
    made = Fleet.of(managed)
    gpu, net = made.name("gpu"), made.name("net")
    managed.apply(
        policy(made.name("policy"), *({"driver": driver, "pool": made.node(0)} for driver in (gpu, net))),
        device_class(gpu, driver=gpu) | {"spec": gpu_class(gpu)},
        device_class(made.name("efa"), f'device.attributes["{net}"].rdma', driver=net),
    )
    for name in (made.node(0), made.node(1)):
        managed.apply(
            node(name, cpu="96"), resource_slice(gpu, name, gpus()), resource_slice(net, name, nics(net))
        )
    managed.nodes_ready(made.node(0), made.node(1))
    managed.kubectl.until("allocationpolicy", made.name("policy"), is_settled, "settled")
    return made


def gpu_class(driver: str) -> Object:
    return {
        "selectors": [
            {
                "cel": {
                    "expression": f'device.driver == "{driver}" && device.attributes["{driver}"].type == "gpu"'
                }
            }
        ],
        "config": [{"opaque": {"driver": driver, "parameters": {"from": "class"}}}],
    }


def gpus() -> list[Object]:
    """One of them is tainted, another has half the memory."""
    found = training_gpus()
    found[1]["taints"] = [{"key": "example.com/degraded", "effect": "NoSchedule"}]
    found[4]["capacity"]["memory"]["value"] = "40Gi"
    return found


def cel(expression: str) -> Object:
    return {"selectors": [{"cel": {"expression": expression}}]}


def templates(fleet: Fleet) -> dict[str, Object]:
    """Claims of many kinds, by the name of the template."""
    gpu, efa = fleet.name("gpu"), fleet.name("efa")
    attribute, capacity = f'device.attributes["{gpu}"]', f'device.capacity["{gpu}"]'
    tolerant = {"tolerations": [{"key": "example.com/degraded", "operator": "Exists"}]}
    aligned = {"requests": ["gpu", "efa"], "matchAttribute": PCIE_ROOT}
    small = {
        "name": "small",
        "deviceClassName": gpu,
        **cel(f'{capacity}.memory.isLessThan(quantity("64Gi"))'),
    }
    none = {"name": "none", "deviceClassName": gpu, **cel(f'{attribute}.architecture == "Hopper"')}
    several = {"name": "several", "deviceClassName": gpu, "count": 3}
    made = [
        claim_template("one", exactly("gpu", gpu)),
        claim_template("three", exactly("gpu", gpu, count=3)),
        claim_template("tolerant", exactly("gpu", gpu, **tolerant)),
        claim_template("aligned", exactly("gpu", gpu, count=2), exactly("efa", efa), constraints=[aligned]),
        claim_template("efa-first", exactly("efa", efa), exactly("gpu", gpu), constraints=[aligned]),
        claim_template("odd", exactly("gpu", gpu, **cel(f"{attribute}.index % 2 == 1"))),
        claim_template(
            "big", exactly("gpu", gpu, **cel(f'{capacity}.memory.compareTo(quantity("80Gi")) >= 0'))
        ),
        claim_template(
            "bus",
            exactly("gpu", gpu, **cel('device.attributes["resource.kubernetes.io"].pcieRoot.endsWith("a0")')),
        ),
        claim_template("listed", {"name": "gpu", "firstAvailable": [none, small, several]}),
        claim_template("rest", exactly("efa", efa, allocationMode="All")),
        claim_template("two-requests", exactly("a", gpu, count=2), exactly("b", gpu)),
        claim_template(
            "configured",
            exactly("gpu", gpu),
            config=[{"opaque": {"driver": gpu, "parameters": {"from": "claim"}}}],
        ),
    ]
    return {found["metadata"]["name"]: found for found in made}


ROUNDS = (
    ("aligned", "efa-first", "odd", "configured"),
    ("listed", "tolerant", "bus", "big"),
    ("two-requests", "aligned", "bus"),
    ("listed", "aligned", "two-requests"),
    ("listed", "listed", "one"),
    ("rest", "odd", "three", "one"),
)
"""What comes in each round, on free nodes; chosen so that everything in a round fits, and later ones meet gaps."""


@pytest.mark.parametrize("names", ROUNDS, ids="+".join)
def test_same_devices_as_kube_scheduler(fleet: Fleet, ungated: Workspace, names: tuple[str, ...]) -> None:
    theirs = Fleet(ungated, fleet.suffix)
    known = templates(fleet)
    for side in (fleet, theirs):
        side.workspace.apply(*(known[name] for name in dict.fromkeys(names)))
    for number, name in enumerate(names):
        bring(fleet, f"p{number}-{name}", name, fleet.node(0))
        bring(theirs, f"p{number}-{name}", name, fleet.node(1))
    pods = [f"p{number}-{name}" for number, name in enumerate(names)]

    assert {name: got(fleet, name) for name in pods} == {name: got(theirs, name) for name in pods}


def bring(side: Fleet, pod_name: str, template: str, node_name: str) -> None:
    """One pod on one of the nodes, and wait until it runs."""
    side.workspace.apply(
        pod(pod_name, templates={"c": template}, nodeSelector={"kubernetes.io/hostname": node_name})
    )
    side.running(pod_name)


def got(side: Fleet, pod_name: str) -> list[Any]:
    """The allocations of a pod, without what names the node or the time."""
    found = []
    for claim in claims_of(side.workspace.kubectl, pod_name):
        allocation = claim["status"]["allocation"]
        for result in allocation["devices"]["results"]:
            del result["pool"]
        selector = allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]
        found.append([allocation["devices"], len(selector["values"]), sorted(allocation)])
    return found
