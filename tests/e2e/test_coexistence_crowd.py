"""Two allocators at work at once: kube-scheduler for ungated pods from its pools, the operator for gated ones from its own (cp I-13).

Each version of each claim is seen. The second test takes the fence between the two away, by a toleration that users could write.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.crowd import TEMPLATE, until_running
from tests.e2e.fleet import Fleet, is_running, messages
from tests.e2e.harness.audit import holders, problems
from tests.e2e.harness.objects import claim, claim_template, device, exactly, pod
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from tests.e2e.harness.workspace import Workspace

PODS = int(os.environ.get("DRA_E2E_CROWD", "100"))
"""Pods of each allocator; 500 by hand."""

TOGETHER = 50
"""Pods that one `kubectl create` makes."""

LONGEST = 150 + PODS
"""Seconds that a crowd may take to run."""

pytestmark = pytest.mark.timeout(2 * LONGEST + 120)

NODES = 10
LOG_MAY_HOLD = ("DeviceHeldTwice", "is allocated to several claims", "several claims")
TOLERATION = {"key": "dra-operator.io/owned", "operator": "Exists"}


def crowd(count: int, prefix: str) -> list[dict[str, object]]:
    return [
        pod(f"{prefix}-{number:03}", templates={"gpu": TEMPLATE}, schedulerName="default-scheduler")
        for number in range(count)
    ]


def test_two_allocators_side_by_side_give_no_device_twice(managed: Workspace, ungated: Workspace) -> None:
    """On the same nodes, from pools of different owners, at the same time."""
    fleet = Fleet.of(managed)
    each = -(-PODS // NODES)
    fleet.plain(each, nodes=NODES)
    for number in range(NODES):
        fleet.publish("nic", fleet.node(number), [device(f"nic-{index}") for index in range(each)])
    fleet.own("gpu")
    managed.apply(claim_template(TEMPLATE, exactly("gpu", fleet.name("gpu"))))
    ungated.apply(claim_template(TEMPLATE, exactly("gpu", fleet.name("nic"))))
    theirs = Fleet(ungated, fleet.suffix)
    begin = time.monotonic()
    with ClaimHistory(managed) as history:
        for begins in range(0, PODS, TOGETHER):
            managed.kubectl.create(crowd(PODS, "ours")[begins : begins + TOGETHER])
            ungated.kubectl.create(crowd(PODS, "theirs")[begins : begins + TOGETHER])
        until_running(fleet, PODS, timeout=LONGEST)
        until_running(theirs, PODS, timeout=LONGEST)
    print(f"2 x {PODS} pods by two allocators in {time.monotonic() - begin:.1f} s")

    assert history.doubles == []
    assert problems(managed.kubectl, managed.namespace) == []
    assert problems(ungated.kubectl, ungated.namespace) == []
    ours = holders(managed.kubectl.get_all("resourceclaims"))
    assert {pool_device[0] for pool_device in ours} == {fleet.name("gpu")}
    assert {pool_device[0] for pool_device in holders(ungated.kubectl.get_all("resourceclaims"))} == {
        fleet.name("nic")
    }


def tolerating(fleet: Fleet) -> dict[str, object]:
    """A template whose claims pass the operator's taint: kube-scheduler serves them from the operator's own pool."""
    return claim_template(TEMPLATE, exactly("gpu", fleet.name("gpu"), tolerations=[TOLERATION]))


def results(found: dict[str, Any]) -> list[dict[str, str]]:
    """What a claim holds."""
    allocation = found.get("status", {}).get("allocation") or {"devices": {"results": []}}
    return list(allocation["devices"]["results"])


def held_twice(*workspaces: Workspace) -> dict[str, list[str]]:
    """Devices that several claims hold, with the keys of those claims."""
    found = [item for space in workspaces for item in space.kubectl.get_all("resourceclaims")]
    return {"/".join(found_device): keys for found_device, keys in holders(found).items() if len(keys) > 1}


def test_two_allocators_at_one_pool_are_found_out(managed: Workspace, ungated: Workspace) -> None:
    """Nothing keeps them apart but that each sees what the other has written: what they give twice is told, on both claims."""
    fleet, theirs = Fleet.of(managed), Fleet(ungated, Fleet.of(managed).suffix)
    fleet.plain(4, nodes=NODES)
    fleet.own("gpu")
    for space in (managed, ungated):
        space.apply(tolerating(fleet))
    with ClaimHistory(managed) as history:
        managed.kubectl.create(crowd(2 * NODES, "ours"))
        ungated.kubectl.create(crowd(2 * NODES, "theirs"))
        until_running(fleet, 2 * NODES)
        until_running(theirs, 2 * NODES)
    twice = held_twice(managed, ungated)
    print(f"{len(history.doubles)} devices were given twice, {len(twice)} of them for good")

    wait_until(
        lambda: {
            f"{space.namespace}/{event['involvedObject']['name']}"
            for space in (managed, ungated)
            for event in space.kubectl.get_all("events", "--field-selector=reason=DeviceHeldTwice")
        },
        "each claim that shares a device is told",
        accept=lambda seen: {key for keys in twice.values() for key in keys} <= seen,
    )


def test_what_another_allocator_takes_is_given_up_while_the_pod_waits(managed: Workspace) -> None:
    """The pod is at its gate yet, as its device is being made ready: it gets another one."""
    fleet, kubectl = Fleet.of(managed), managed.kubectl
    fleet.plain(0)
    conditions = {"bindingConditions": ["example.com/up"], "bindingFailureConditions": ["example.com/down"]}
    fleet.publish("gpu", fleet.node(), [device(f"gpu-{number}") | conditions for number in range(2)])
    fleet.own("gpu")
    managed.apply(
        claim_template(TEMPLATE, exactly("gpu", fleet.name("gpu"))),
        claim("foreign", exactly("gpu", fleet.name("gpu"))),
        *crowd(1, "ours"),
    )
    fleet.told("ours-000", "BindingConditionsPending")
    assert fleet.devices("ours-000") == {"gpu": ["gpu-0"]}
    (ours,) = (item for item in kubectl.get_all("resourceclaims") if item["metadata"]["name"] != "foreign")
    kubectl.patch(
        "resourceclaim",
        "foreign",
        {"status": {"allocation": ours["status"]["allocation"]}},
        "--subresource=status",
    )
    kubectl.until(
        "resourceclaim",
        ours["metadata"]["name"],
        lambda found: [result["device"] for result in results(found)] == ["gpu-1"],
        "another device",
    )
    (told,) = wait_until(lambda: messages(kubectl, "foreign", "ForeignAllocator"), "the claim is told of")
    assert "and kubectl-patch allocated it, by the field managers" in told
    assert held_twice(managed) == {}
    assert kubectl.get("resourceclaim", "foreign")["status"]["allocation"] == ours["status"]["allocation"]
    assert not any(is_running(item) for item in kubectl.get_all("pods"))
