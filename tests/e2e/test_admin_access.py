"""Admin access on a real control plane: who may look at devices that others use (cp V-70 to V-74)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, gates
from tests.e2e.harness.kubectl import KubectlError
from tests.e2e.harness.objects import claim, claim_template, exactly, pod

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

LABEL = "resource.kubernetes.io/admin-access"


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """A node with two devices, ours; the namespace may look at them."""
    made = Fleet.of(managed)
    made.plain(2)
    made.own("gpu")
    label(made, "=true")
    return made


def label(fleet: Fleet, change: str) -> None:
    fleet.workspace.kubectl.run("label", "namespace", fleet.workspace.namespace, f"{LABEL}{change}")


def looks(fleet: Fleet) -> Object:
    """A request to look at all devices."""
    return exactly("gpu", fleet.name("gpu"), allocationMode="All", adminAccess=True)


def test_monitors_come_by_both_ways_beside_the_pods_that_use_the_devices(fleet: Fleet) -> None:
    fleet.workspace.apply(
        claim_template("eye", looks(fleet)),
        claim("mine", exactly("gpu", fleet.name("gpu"))),
        pod("user", claims={"gpu": "mine"}),
    )
    fleet.running("user")
    fleet.workspace.apply(
        pod("gated", templates={"gpu": "eye"}),
        pod("named", templates={"gpu": "eye"}, schedulerName="dra-operator"),
    )
    fleet.running("gated", "named")

    assert fleet.devices("gated") == fleet.devices("named") == {"gpu": ["gpu-0", "gpu-1"]}


def test_a_namespace_that_loses_its_label_keeps_what_is_allocated_and_gets_nothing_new(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("first", looks(fleet)), claim("second", looks(fleet)), pod("early", claims={"gpu": "first"})
    )
    fleet.running("early")
    label(fleet, "-")
    fleet.workspace.apply(pod("late", claims={"gpu": "second"}))

    told = fleet.told("late", "AdminAccessNotAllowed")
    assert f"Namespace {fleet.workspace.namespace} lacks the label {LABEL}=true" in told
    assert gates(kubectl.get("pod", "late")) == ["dra-operator.io/allocate"]
    assert kubectl.get("resourceclaim", "first")["status"]["allocation"]
    with pytest.raises(KubectlError, match="admin access"):
        kubectl.create(claim("third", looks(fleet)))

    label(fleet, "=true")
    fleet.running("early", "late")
