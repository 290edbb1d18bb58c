"""An older release died in the middle of its work; the present one is installed over it, on a real control plane, or removes it.

The inputs are those of the scenarios (`tests/scenarios/operator/golden.py`), written to the real API server as they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import gates, is_running
from tests.e2e.harness.audit import holders, problems
from tests.e2e.harness.operator_process import POLICY_CRD, ROOT
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.waiting import wait_until
from tests.e2e.install_fixtures import open_installation
from tests.scenarios.operator import golden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.kubectl import Kubectl
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(300)

SETTINGS = {"DRA_OPERATOR_SETTLE_SECONDS": "1", "DRA_OPERATOR_SWEEP_SECONDS": "1"}

Object = dict[str, Any]


@pytest.fixture
def team(install_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """The namespace in which 0.1.0 served pods; the gate policy is not there yet, the pods bring their gate."""
    yield from open_workspace(install_plane, request, labels=ENABLED)


def anywhere(found: Object) -> Object:
    """An object of the scenarios without their namespace."""
    return {
        **found,
        "metadata": {key: value for key, value in found["metadata"].items() if key != "namespace"},
    }


def left_by_0_1_0(team: Workspace) -> None:
    """Brings the API server into the state in which release 0.1.0 died."""
    admin, kubectl = team.control_plane.kubectl, team.kubectl
    admin.run("apply", "--kustomize", str(ROOT / "crds"))
    admin.until_served(POLICY_CRD)
    team.apply(*map(anywhere, golden.cluster()))
    team.nodes_ready("n1", "n2")
    admin.create(golden.owned())
    admin.patch("allocationpolicy", "gpus", {"status": golden.policy_status()}, "--subresource=status")
    admin.create(golden.rule(admin.get("allocationpolicy", "gpus")["metadata"]["uid"]))
    leaked, leaked_status = golden.leaked()
    kubectl.create([anywhere(found) for found in (*golden.claims(), leaked)])
    kubectl.patch("resourceclaim", "leaked", {"status": leaked_status}, "--subresource=status")
    kubectl.create([anywhere(found) for found in golden.pods()])
    uids = {found["metadata"]["name"]: found["metadata"]["uid"] for found in kubectl.get_all("pods")}
    for row in golden.CLAIMS:
        if row.device:
            status = golden.allocated(row, uids[row.consumer])
            kubectl.patch("resourceclaim", row.name, {"status": status}, "--subresource=status")


def all_running(kubectl: Kubectl) -> None:
    for name in golden.PODS:
        kubectl.until("pod", name, is_running, "Running", timeout=60)


def devices(kubectl: Kubectl) -> dict[str, str]:
    """Claim → device, of the claims that 0.1.0 had allocated."""
    kept = {row.name for row in golden.CLAIMS if row.device}
    held = holders(item for item in kubectl.get_all("resourceclaims") if item["metadata"]["name"] in kept)
    return {keys[0].partition("/")[2]: device[2] for device, keys in held.items()}


def test_the_present_release_finishes_what_0_1_0_began(install_plane: ControlPlane, team: Workspace) -> None:
    """Finished or taken back and begun anew, as it likes: each pod runs in the end, and the pools are never without their taint."""
    admin, kubectl = install_plane.kubectl, team.kubectl
    left_by_0_1_0(team)
    rule = admin.get("devicetaintrule", golden.RULE)["metadata"]["uid"]
    with open_installation(install_plane, SETTINGS):
        all_running(kubectl)
        wait_until(
            lambda: kubectl.get("resourceclaim", "leaked").get("status", {}).get("allocation"),
            "the leaked allocation taken back",
            accept=lambda found: not found,
        )

        assert kubectl.get("pod", "waits-pinned")["spec"]["nodeName"] == "n1"
        assert admin.get("devicetaintrule", golden.RULE)["metadata"]["uid"] == rule
        assert len(admin.get_all("devicetaintrules")) == 1
        assert problems(kubectl, team.namespace) == []


def test_the_present_release_removes_what_0_1_0_began(install_plane: ControlPlane, team: Workspace) -> None:
    """Nothing of 0.1.0 runs, and the operator of today never did: the README's command alone ends all of it."""
    kubectl = team.kubectl
    left_by_0_1_0(team)
    with open_installation(install_plane, SETTINGS, install=False) as installed:
        installed.uninstall()

    all_running(kubectl)
    assert devices(kubectl) == {row.name: row.device for row in golden.CLAIMS if row.device}
    assert [item for item in kubectl.get_all("pods") if gates(item)] == []
    assert "dra-operator.io/" not in json.dumps(kubectl.get_all("pods,resourceclaims"))
    assert install_plane.kubectl.get_all("devicetaintrules") == []
    assert problems(kubectl, team.namespace) == []
