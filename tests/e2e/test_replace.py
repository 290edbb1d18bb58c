"""Mode `replace` as an admin has it: the overlay applied with kubectl, the stock parts switched off, and the way back.

kube-scheduler runs without its DynamicResources plugin, kube-controller-manager without its resourceclaim-controller; the operator's
Deployment runs as it is shipped. The rules of that mode, one by one, are in `test_rules_c` and `test_rules_i`.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import TEMPLATE, template
from tests.e2e.fleet import Fleet, claims_of, gates, is_running
from tests.e2e.harness.components import Options
from tests.e2e.harness.objects import claim, exactly, pod
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.plugin import open_workspace, own_control_plane
from tests.e2e.harness.waiting import wait_until
from tests.e2e.install_fixtures import Installation, open_installation
from tests.e2e.modes import WITHOUT_STOCK_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)
"""The first test of a mode starts a control plane and the operator."""

GPU = {"gpu": TEMPLATE}
GATE = "dra-operator.io/allocate"
OVERLAY = ROOT / "manifests" / "overlays" / "replace"
STOCK_PARTS = "DRA_OPERATOR_STOCK_PARTS"


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set for the programs that are started meanwhile; what it was before comes back."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@pytest.fixture(scope="module")
def replacing(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The overlay, installed; removed with the script, which has to be told that the stock parts are on again."""
    with (
        own_control_plane(request.session, Options(**WITHOUT_STOCK_PARTS)) as plane,
        variable(STOCK_PARTS, "on"),
        open_installation(plane, {}, install=False) as installation,
    ):
        installation.install(OVERLAY)
        yield installation


@pytest.fixture
def fleet(replacing: Installation, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A namespace without any label, a node with two devices, no policy."""
    for workspace in open_workspace(replacing.control_plane, request):
        made = Fleet.of(workspace)
        made.plain(2)
        workspace.apply(template(made))
        yield made


def test_c20_i19_i32_a_pod_of_any_namespace_is_gated_served_and_released(fleet: Fleet) -> None:
    """Nobody labelled the namespace, nobody wrote a policy; kube-scheduler would have bound the pod without its claim."""
    kubectl = fleet.workspace.kubectl
    created = kubectl.run(
        "create",
        "--filename=-",
        "--output=jsonpath={.spec.schedulingGates[*].name}",
        stdin=json.dumps(pod("a", templates=GPU)),
    )
    fleet.running("a")
    (used,) = claims_of(kubectl, "a")
    kubectl.delete("pod", "a")
    kubectl.until_gone("resourceclaim", used["metadata"]["name"])

    assert created == GATE


def test_i30_pods_share_a_claim_and_land_where_it_is_allocated(fleet: Fleet) -> None:
    """The plugin that would look at the allocation's node is off: the pin alone leads there."""
    fleet.workspace.apply(
        claim("ours", exactly("gpu", fleet.name("gpu"))),
        *(pod(name, claims={"gpu": "ours"}) for name in ("a", "b", "c")),
    )
    served = fleet.running("a", "b", "c")

    assert {found["spec"]["nodeName"] for found in served} == {fleet.node()}


def test_i28_a_pod_of_the_system_is_bound_at_once_and_gets_its_devices_there(
    replacing: Installation, fleet: Fleet
) -> None:
    """Pods of kube-system get no gate: the cluster must not depend on the operator to start."""
    system = replacing.control_plane.kubectl.in_namespace("kube-system")
    name = f"agent-{fleet.suffix}"
    # kube-scheduler does not look at claims here: an agent says itself on which node it runs, as a DaemonSet's pods do.
    place = {"kubernetes.io/hostname": fleet.node()}
    system.apply([template(fleet), pod(name, templates=GPU, nodeSelector=place)])
    try:
        found = system.until("pod", name, is_running, "Running")
        (used,) = wait_until(
            lambda: [
                item
                for item in system.get_all("resourceclaims")
                if (item.get("status", {}).get("reservedFor") or [{}])[0].get("name") == name
            ],
            "its claim allocated and reserved",
        )
    finally:
        system.delete("pod", name)
        system.delete("resourceclaimtemplate", TEMPLATE)

    assert gates(found) == []
    (result,) = used["status"]["allocation"]["devices"]["results"]
    assert result["pool"] == found["spec"]["nodeName"]


def test_the_script_opens_no_gate_before_it_is_told_that_the_stock_parts_are_on(
    replacing: Installation, fleet: Fleet
) -> None:
    """Last in this module: it stops the operator, and starts it again."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(*(pod(name, templates=GPU) for name in ("a", "b")))
    fleet.running("a", "b")
    fleet.workspace.apply(pod("waits", templates=GPU))
    fleet.told("waits", "AllocationFailed")
    with variable(STOCK_PARTS, ""):
        done = replacing.try_uninstall()

    assert done.returncode == 1
    assert "run this again with DRA_OPERATOR_STOCK_PARTS=on" in done.stderr
    assert gates(kubectl.get("pod", "waits")) == [GATE]
    replacing.install(OVERLAY)
    kubectl.delete("pod", "a")
    fleet.running("waits")
