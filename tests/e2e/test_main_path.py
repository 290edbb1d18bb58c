"""The main job on a real control plane: each kind of claim that users write gets its devices, and its pod runs on their node.

Gates come from the shipped admission policy, claims from kube-controller-manager, binding from kube-scheduler. What a test
says of devices is what kube-scheduler's own allocator would choose (architecture, section 8).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from dra_operator.controllers.names import digest
from dra_operator.model import ResourceClaim, from_object
from tests.e2e.fleet import PCIE_ROOT, Fleet, claims_of, gates
from tests.e2e.harness.objects import claim_template, device, exactly, node, pod
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
MARK = "dra-operator.io/allocated"


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    return Fleet.of(managed)


def here(node_name: str) -> Object:
    """The canonical selector of node-local allocations (cp V-80)."""
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def test_template_pod_gets_its_device(fleet: Fleet) -> None:
    """Claim and pod afterwards as after kube-scheduler's own work (cp I-50), but for our mark and the pin."""
    fleet.plain(2)
    fleet.own("gpu")
    fleet.workspace.apply(
        claim_template("one-gpu", exactly("gpu", fleet.name("gpu"))),
        pod("train", templates={"gpu": "one-gpu"}),
    )

    (served,) = fleet.running("train")
    (claim,) = claims_of(fleet.workspace.kubectl, "train")

    assert (served["spec"]["nodeName"], gates(served)) == (fleet.node(), [])
    assert served["spec"]["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": here(fleet.node())}
    }
    assert_as_stock_would_write_it(claim, served, fleet)
    assert list(claim["metadata"]["annotations"]) == [MARK, POD_CLAIM_NAME]


def assert_as_stock_would_write_it(claim: Object, served: Object, fleet: Fleet) -> None:
    """Section 5 of the facts about the real control plane: nothing is missing, and nothing else is there."""
    timestamp = claim["status"]["allocation"].pop("allocationTimestamp")
    metadata, uid = claim["metadata"], served["metadata"]["uid"]
    result = {"request": "gpu", "driver": fleet.name("gpu"), "pool": fleet.node(), "device": "gpu-0"}

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", timestamp)
    assert claim["status"] == {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": here(fleet.node())},
        "reservedFor": [{"resource": "pods", "name": "train", "uid": uid}],
    }
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["annotations"][POD_CLAIM_NAME] == "gpu"
    assert [(owner["kind"], owner["uid"]) for owner in metadata["ownerReferences"]] == [("Pod", uid)]


def test_the_mark_still_names_what_the_server_stored(fleet: Fleet) -> None:
    """Take-back and the sweeper go by it: nothing that the server fills in or prints anew may change the digest."""
    fleet.plain(1)
    fleet.own("gpu")
    odd = {"text": "é", "number": 1.50, "large": 10**17, "nested": {"b": [], "a": None}}
    config = [{"requests": ["gpu"], "opaque": {"driver": fleet.name("gpu"), "parameters": odd}}]
    tolerations = [{"key": "example.com/worn", "effect": "NoSchedule"}]
    request = exactly("gpu", fleet.name("gpu"), tolerations=tolerations)
    fleet.workspace.apply(
        claim_template("one-gpu", request, config=config), pod("train", templates={"gpu": "one-gpu"})
    )

    fleet.running("train")
    (stored,) = claims_of(fleet.workspace.kubectl, "train")
    claim = from_object(ResourceClaim, stored)

    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.config != ()
    assert claim.status.allocation.devices.results[0].tolerations[0].operator == "Equal"
    assert claim.metadata.annotations[MARK] == digest(claim.status.allocation)


def test_describe_tells_how_a_served_pod_came_to_its_node(fleet: Fleet) -> None:
    """No warning of ours on a pod that was served at once; kube-scheduler tells of the binding.

    The pod that comes after it has to wait: what is told of it is told after all that there was to tell of the first one.
    """
    fleet.plain(1)
    fleet.own("gpu")
    fleet.workspace.apply(
        claim_template("one-gpu", exactly("gpu", fleet.name("gpu"))),
        pod("train", templates={"gpu": "one-gpu"}),
    )
    fleet.running("train")
    fleet.workspace.apply(pod("late", templates={"gpu": "one-gpu"}))
    fleet.told("late", "AllocationFailed")
    assigned = f"Successfully assigned {fleet.workspace.namespace}/train to {fleet.node()}"
    events = wait_until(
        lambda: fleet.workspace.kubectl.run("describe", "pod", "train").partition("\nEvents:")[2],
        "kube-scheduler tells",
        accept=lambda text: assigned in text,
    )

    assert [line for line in events.splitlines() if "Warning" in line and "dra-operator" in line] == []


def test_pod_with_two_claims_and_three_requests(fleet: Fleet) -> None:
    """All claims of a pod are placed together, on one node that has everything; the first node has too few."""
    fleet.plain(1, nodes=2)
    more = fleet.node(2)
    fleet.plain_node(2, 3)
    fleet.publish("nic", more, [{"name": "nic-0"}])
    fleet.own("gpu", "nic")
    gpu, nic = fleet.name("gpu"), fleet.name("nic")
    fleet.workspace.apply(
        claim_template("pair", exactly("a", gpu, count=2), exactly("nic", nic)),
        claim_template("single", exactly("b", gpu)),
        pod("train", templates={"pair": "pair", "single": "single"}),
    )

    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == more
    assert fleet.devices("train") == {"a": ["gpu-0", "gpu-1"], "nic": ["nic-0"], "b": ["gpu-2"]}


def test_i8_prioritized_list_falls_to_its_second_choice(fleet: Fleet) -> None:
    """The result names the chosen alternative; the first one asks for what no device has (alloc R, KEP-4816)."""
    fleet.plain(1)
    fleet.own("gpu")
    gpu = fleet.name("gpu")
    huge = f'device.capacity["{gpu}"].memory.compareTo(quantity("1Ti")) >= 0'
    first = {"name": "huge", "deviceClassName": gpu, "selectors": [{"cel": {"expression": huge}}]}
    fleet.workspace.apply(
        claim_template(
            "any", {"name": "gpu", "firstAvailable": [first, {"name": "plain", "deviceClassName": gpu}]}
        ),
        pod("train", templates={"gpu": "any"}),
    )

    fleet.running("train")

    assert fleet.devices("train") == {"gpu/plain": ["gpu-0"]}


def test_prioritized_list_takes_its_second_choice_when_the_first_is_in_use(fleet: Fleet) -> None:
    """Two pods, two alternatives that exist once each: the first pod has the better one."""
    driver = fleet.name("gpu")
    fleet.workspace.apply(node(fleet.node()))
    fleet.publish("gpu", fleet.node(), [of_model("big"), of_model("small")])
    fleet.workspace.nodes_ready(fleet.node())
    fleet.own("gpu")
    choices = [
        {
            "name": model,
            "deviceClassName": driver,
            "selectors": [{"cel": {"expression": f'device.attributes["{driver}"].model == "{model}"'}}],
        }
        for model in ("big", "small")
    ]
    fleet.workspace.apply(
        claim_template("best", {"name": "gpu", "firstAvailable": choices}),
        pod("first", templates={"gpu": "best"}),
    )
    fleet.running("first")
    fleet.workspace.apply(pod("second", templates={"gpu": "best"}))
    fleet.running("second")

    assert [fleet.devices("first"), fleet.devices("second")] == [
        {"gpu/big": ["big-0"]},
        {"gpu/small": ["small-0"]},
    ]


def of_model(model: str) -> Object:
    return device(f"{model}-0", {"model": model})


def test_all_mode_takes_every_matching_device_of_a_node(fleet: Fleet) -> None:
    """`All`: on the node where all that match are free, and none is left for the next pod."""
    fleet.plain(3)
    fleet.own("gpu")
    gpu = fleet.name("gpu")
    fleet.workspace.apply(
        claim_template("every", exactly("gpu", gpu, allocationMode="All")),
        claim_template("one-gpu", exactly("gpu", gpu)),
        pod("whole", templates={"gpu": "every"}),
    )
    fleet.running("whole")
    fleet.workspace.apply(pod("late", templates={"gpu": "one-gpu"}))
    fleet.told("late", "AllocationFailed")

    assert fleet.devices("whole") == {"gpu": ["gpu-0", "gpu-1", "gpu-2"]}

    fleet.workspace.kubectl.delete("pod", "whole")
    fleet.running("late")

    assert fleet.devices("late") == {"gpu": ["gpu-0"]}


def test_gpu_and_nic_of_two_drivers_share_a_pcie_root(fleet: Fleet) -> None:
    """MatchAttribute across drivers in one claim; three pods of three GPUs' worth end on three different roots."""
    fleet.training_node()
    fleet.own("gpu", "net")
    aligned = {"requests": ["gpu", "efa"], "matchAttribute": PCIE_ROOT}
    fleet.workspace.apply(
        claim_template(
            "aligned",
            exactly("gpu", fleet.name("gpu"), count=2),
            exactly("efa", fleet.name("efa")),
            constraints=[aligned],
        )
    )
    names = ["worker-0", "worker-1", "worker-2"]
    for name in names:
        fleet.workspace.apply(pod(name, templates={"pair": "aligned"}))
        fleet.running(name)

    assert [fleet.devices(name) for name in names] == [
        {"gpu": ["gpu-0", "gpu-1"], "efa": ["pci-0000-10-1b-0"]},
        {"gpu": ["gpu-2", "gpu-3"], "efa": ["pci-0000-20-1b-0"]},
        {"gpu": ["gpu-4", "gpu-5"], "efa": ["pci-0000-90-1b-0"]},
    ]


def test_alignment_backtracks_over_a_root_whose_nic_is_gone(fleet: Fleet) -> None:
    """A pod holds the NIC of the first root only: its GPUs stay free, the next aligned pod goes to the second root."""
    fleet.training_node()
    fleet.own("gpu", "net")
    aligned = {"requests": ["gpu", "efa"], "matchAttribute": PCIE_ROOT}
    gpu, efa = exactly("gpu", fleet.name("gpu")), exactly("efa", fleet.name("efa"))
    fleet.workspace.apply(
        claim_template("nic", efa),
        claim_template("aligned", gpu, efa, constraints=[aligned]),
        pod("holder", templates={"nic": "nic"}),
    )
    fleet.running("holder")
    fleet.workspace.apply(pod("worker", templates={"pair": "aligned"}))
    fleet.running("worker")

    assert [fleet.devices("holder"), fleet.devices("worker")] == [
        {"efa": ["pci-0000-10-1b-0"]},
        {"gpu": ["gpu-2"], "efa": ["pci-0000-20-1b-0"]},
    ]
