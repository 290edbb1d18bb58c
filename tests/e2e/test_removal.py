"""The README's command removes the operator, on a real control plane: nothing of it is left, and kube-scheduler goes on with the pods.

Each test installs with the README's command, too. kube-scheduler is the stock one: what becomes of half-done attempts is its doing.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.controllers.names import digest
from dra_operator.model import ResourceClaim, from_object
from tests.e2e.crowd import GATE, arrive, at_rest, by_moments, running_count, template, until_running
from tests.e2e.fleet import Fleet, claims_of, gates, is_running, is_settled
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, exactly, pod, policy
from tests.e2e.harness.operator_process import POLICY_CRD
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.podrunner import NAMESPACE
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory
from tests.e2e.install_fixtures import MINE, NODE, open_installation
from tests.e2e.inventory import everything, everything_at_rest, traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.kubectl import Kubectl
    from tests.e2e.harness.workspace import Workspace
    from tests.e2e.install_fixtures import Installation

pytestmark = pytest.mark.timeout(600)
"""Some install twice and remove three times: a minute each on a busy machine."""

INSTALL_ENVIRONMENT = {"DRA_OPERATOR_SETTLE_SECONDS": "1"}

Object = dict[str, Any]

FINALIZER = "resource.kubernetes.io/delete-protection"
MARK = "dra-operator.io/allocated"
POLICY = "allocationpolicy.dra-operator.io"


@pytest.fixture
def team(install_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A namespace whose pods get the gate while the operator is installed."""
    yield from open_workspace(install_plane, request, labels=ENABLED)


@pytest.fixture
def fleet(team: Workspace) -> Fleet:
    """Two nodes with two devices each, and a template for pods that want one."""
    made = Fleet.of(team)
    made.plain(2, nodes=2)
    team.apply(template(made))
    return made


def own(fleet: Fleet) -> None:
    """Gives the pools to the operator. Not by the workspace, which could not delete a kind that is gone."""
    kubectl = fleet.workspace.control_plane.kubectl
    name = fleet.name("policy")
    kubectl.apply(policy(name, {"driver": fleet.name("gpu")}))
    kubectl.until(POLICY, name, is_settled, "rules in place and settled")
    fleet.workspace.until_gated()


def without_metadata(item: Object) -> str:
    return json.dumps({key: value for key, value in item.items() if key != "metadata"}, sort_keys=True)


# --------------------------------------------------------------------------- half-done attempts


def half_done(
    fleet: Fleet, pod_name: str, *names: str, node: int = 0, device: str = "gpu-0", done: int = 1
) -> None:
    """A pod that waits at the gate, and its claims: the first ones allocated and reserved, the others only marked.

    As the operator leaves them when it dies between two writes of an attempt.
    """
    kubectl = fleet.workspace.kubectl
    marked = [claim(name, exactly("gpu", fleet.name("gpu"))) for name in names]
    for found in marked:
        found["metadata"] |= {"finalizers": [FINALIZER], "annotations": {MARK: "0123456789abcdef"}}
    kubectl.create(marked)
    kubectl.create(pod(pod_name, claims={name: name for name in names}, gates=[GATE]))
    uid = kubectl.get("pod", pod_name)["metadata"]["uid"]
    consumers = [{"resource": "pods", "name": pod_name, "uid": uid}]
    for name in names[:done]:
        status = {"allocation": allocation(fleet, node, device), "reservedFor": consumers}
        kubectl.patch("resourceclaim", name, {"status": status}, "--subresource=status")


def unused(fleet: Fleet, name: str, *, node: int = 0, device: str = "gpu-0") -> None:
    """A claim that is allocated with the operator's mark, and that no pod uses or ever will."""
    kubectl = fleet.workspace.kubectl
    found = claim(name, exactly("gpu", fleet.name("gpu")))
    found["metadata"]["finalizers"] = [FINALIZER]
    kubectl.create(found)
    status = {"allocation": allocation(fleet, node, device)}
    kubectl.patch("resourceclaim", name, {"status": status}, "--subresource=status")
    stored = from_object(ResourceClaim, kubectl.get("resourceclaim", name))
    assert stored.status.allocation is not None
    mark = {MARK: digest(stored.status.allocation)}
    kubectl.patch("resourceclaim", name, {"metadata": {"annotations": mark}})


def allocation(fleet: Fleet, node: int, device: str) -> Object:
    name = fleet.node(node)
    here = {"key": "metadata.name", "operator": "In", "values": [name]}
    result = {"request": "gpu", "driver": fleet.name("gpu"), "pool": name, "device": device}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def devices_of(fleet: Fleet, pod_name: str) -> list[tuple[str, str]]:
    """Node and device of each claim of a pod, in the pod's order."""
    results = [
        result
        for found in claims_of(fleet.workspace.kubectl, pod_name)
        for result in found["status"]["allocation"]["devices"]["results"]
    ]
    return [(result["pool"], result["device"]) for result in results]


# --------------------------------------------------------------------------- tests


def test_nothing_is_left_and_kube_scheduler_goes_on(
    install_plane: ControlPlane, team: Workspace, fleet: Fleet
) -> None:
    """Pods that run keep their devices to the letter; pods at the gate get theirs from pools that were the operator's."""
    admin, kubectl = install_plane.kubectl, team.kubectl
    before = everything_at_rest(admin)
    with open_installation(install_plane, INSTALL_ENVIRONMENT) as installed:
        own(fleet)
        arrive(fleet, 3, "runs")
        until_running(fleet, 3)
        arrive(fleet, 1, "last")
        until_running(fleet, 4)
        arrive(fleet, 1, "waits")
        fleet.told("waits-000", "AllocationFailed")
        installed.stop_operator()
        kubectl.delete("pod", "last-000")
        wait_until(lambda: len(held(admin)), "its device free", accept=lambda count: count == 3)
        half_done(fleet, "half", "half-a", "half-b", node=free_node(fleet), device=free_device(fleet))
        kept = {item["metadata"]["name"]: without_metadata(item) for item in held(admin)}

        said = installed.uninstall()

        print(said)
        after = everything(admin)
        assert traces(after) == []
        assert [key for key in before if key not in after] == []
        news = [key for key in after if key not in before and f" {team.namespace}/" not in key]
        assert [key for key in news if not key.startswith("Node ") or NODE not in key] == []
        assert team.namespace in said  # the label that the user gave it
        mine = {item["metadata"]["name"]: item for item in held(admin)}
        assert {name: without_metadata(mine[name]) for name in kept if name in mine and name != "half-a"} == {
            name: text for name, text in kept.items() if name != "half-a"
        }
        # All devices were taken: as pods end, kube-scheduler serves the others.
        for name in ("runs-000", "runs-001", "runs-002"):
            kubectl.delete("pod", name)
        for name in ("half", "waits-000"):
            kubectl.until("pod", name, is_running, "Running, bound by kube-scheduler", timeout=60)
        assert problems(kubectl, team.namespace) == []


def held(kubectl: Kubectl) -> list[Object]:
    claims = kubectl.get_all("resourceclaims", "--all-namespaces")
    return [item for item in claims if item.get("status", {}).get("allocation")]


def free(fleet: Fleet) -> tuple[int, str]:
    """The first device that nobody holds: number of its node, and its name."""
    claims = held(fleet.workspace.control_plane.kubectl)
    results = [result for item in claims for result in item["status"]["allocation"]["devices"]["results"]]
    taken = {(result["pool"], result["device"]) for result in results}
    places = [(number, f"gpu-{index}") for number in range(2) for index in range(2)]
    return next(place for place in places if (fleet.node(place[0]), place[1]) not in taken)


def free_node(fleet: Fleet) -> int:
    return free(fleet)[0]


def free_device(fleet: Fleet) -> str:
    return free(fleet)[1]


def test_kube_scheduler_makes_the_best_of_every_half_done_attempt(
    installed: Installation, team: Workspace
) -> None:
    """It honours an allocation that fits, adds what is missing on the same node, and takes back what cannot be used (cp S-31).

    An allocation without any pod, which nobody else takes back (cp C-64), is taken back by the removal.
    """
    admin, kubectl = installed.control_plane.kubectl, team.kubectl
    fleet = Fleet.of(team)
    fleet.plain(4, nodes=2)
    team.apply(template(fleet))
    gone, cordoned = fleet.plain_node(2, 1), fleet.plain_node(3, 1)
    own(fleet)
    installed.stop_operator()
    half_done(fleet, "fits", "fits-a", node=0, device="gpu-3")
    half_done(fleet, "one-of-two", "first", "second", node=1, device="gpu-3")
    half_done(fleet, "node-gone", "gone-a", node=2)
    half_done(fleet, "node-cordoned", "cordoned-a", node=3)
    unused(fleet, "unused", device="gpu-0")
    kubectl.delete("node", gone)
    admin.run("cordon", cordoned)

    installed.uninstall()

    for name in ("fits", "one-of-two", "node-gone", "node-cordoned"):
        kubectl.until("pod", name, is_running, "Running", timeout=60)
    assert devices_of(fleet, "fits") == [(fleet.node(0), "gpu-3")]
    first, second = devices_of(fleet, "one-of-two")
    assert (first, second[0]) == ((fleet.node(1), "gpu-3"), fleet.node(1))
    left = kubectl.get("resourceclaim", "unused")
    assert "allocation" not in left.get("status", {})
    assert MARK not in left["metadata"].get("annotations", {})
    moved = [devices_of(fleet, name)[0][0] for name in ("node-gone", "node-cordoned")]
    assert {fleet.node(0), fleet.node(1)} >= set(moved)
    assert problems(kubectl, team.namespace) == []


def test_removed_after_a_crash_in_the_midst_of_a_burst(installed: Installation, team: Workspace) -> None:
    """SIGKILL, and the node is lost with it: the admin deletes the pod by force, then removes the operator."""
    fleet = Fleet.of(team)
    fleet.plain(10, nodes=8)
    team.apply(template(fleet))
    own(fleet)
    with ClaimHistory(team) as history:
        pid = installed.runner.leader_pid()
        os.kill(pid, signal.SIGSTOP)
        arrive(fleet, 100)
        by_moments(pid, lambda: len(history.allocated), 10)
        installed.runner.kill(stay_down=True)
        done = len(history.allocated)
        inside = installed.control_plane.kubectl.in_namespace(NAMESPACE)
        inside.run("scale", "deployment/dra-operator", "--replicas=0")
        inside.run("delete", "pod", "--all", "--force", "--grace-period=0")

        installed.uninstall()

        until_running(fleet, 80)
    print(f"operator killed after {done} of 80 devices were given out")
    assert done < 80
    assert history.doubles == []
    assert problems(team.kubectl, team.namespace) == []
    assert [item for item in team.kubectl.get_all("pods") if gates(item)] == []
    assert running_count(fleet) == 80
    assert traces(everything(installed.control_plane.kubectl)) == []


def test_removed_twice_and_installed_again(installed: Installation, team: Workspace, fleet: Fleet) -> None:
    """What was allocated before counts as held, and is nobody's fault."""
    own(fleet)
    arrive(fleet, 2, "early")
    until_running(fleet, 2)
    installed.uninstall()
    installed.uninstall()

    installed.install()
    own(fleet)
    arrive(fleet, 3, "late")

    until_running(fleet, 4)
    fleet.told(next(name for name in waiting(fleet)), "AllocationFailed")
    assert at_rest(fleet) == []
    events = installed.control_plane.kubectl.get_all("events", "--all-namespaces")
    assert [event for event in events if event["reason"] in {"AllocatedPastPolicy", "DeviceHeldTwice"}] == []
    for name in waiting(fleet):
        team.kubectl.delete("pod", name)


def waiting(fleet: Fleet) -> list[str]:
    return [item["metadata"]["name"] for item in fleet.workspace.kubectl.get_all("pods") if gates(item)]


def test_what_others_gave_its_label_neither_stops_the_removal_nor_goes_with_it(
    installed: Installation, team: Workspace
) -> None:
    """A user's pod is told from the operator's by what its account may do; roles go by their names."""
    admin = installed.control_plane.kubectl
    key, _, value = MINE.partition("=")
    decoy, role = pod("decoy"), {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    decoy["metadata"]["labels"] = {key: value}
    team.kubectl.create(decoy)
    admin.create(
        {**role, "metadata": {"name": f"{team.namespace}-role", "labels": {key: value}}, "rules": []}
    )
    team.kubectl.until("pod", "decoy", is_running, "Running")

    installed.uninstall()

    assert is_running(team.kubectl.get("pod", "decoy"))
    admin.delete("clusterrole", f"{team.namespace}-role")
    team.kubectl.delete("pod", "decoy")


def test_removed_when_half_of_it_is_gone_already(
    installed: Installation, team: Workspace, fleet: Fleet
) -> None:
    """Its namespace is in deletion, its kind is going and waits for the finalizer, nobody runs."""
    admin = installed.control_plane.kubectl
    own(fleet)
    arrive(fleet, 5)
    until_running(fleet, 4)
    installed.stop_operator()
    admin.delete("crd", POLICY_CRD, wait=False)
    admin.delete("namespace", NAMESPACE, wait=False)
    admin.until(POLICY, fleet.name("policy"), lambda found: "deletionTimestamp" in found["metadata"], "going")

    installed.uninstall()

    assert traces(everything(admin)) == []
    team.kubectl.delete("pod", fleet_pod_running(fleet))
    until_running(fleet, 4)


def fleet_pod_running(fleet: Fleet) -> str:
    pods = fleet.workspace.kubectl.get_all("pods")
    return str(next(item["metadata"]["name"] for item in pods if is_running(item)))


def test_a_job_that_fails_stops_the_removal_and_tells_why(
    installed: Installation, team: Workspace, fleet: Fleet
) -> None:
    """A right was taken from it: policies and rights are still there, and the next try ends the work."""
    admin = installed.control_plane.kubectl
    own(fleet)
    finalizer = {"metadata": {"finalizers": ["example.com/keep"]}}
    (rule,) = admin.get_all("devicetaintrules")
    admin.patch("devicetaintrule", rule["metadata"]["name"], finalizer)

    done = installed.try_uninstall()

    assert done.returncode == 1
    assert "example.com/keep" in done.stdout
    assert "run this again" in done.stderr
    assert admin.find(POLICY, fleet.name("policy")) is not None
    admin.patch("devicetaintrule", rule["metadata"]["name"], {"metadata": {"finalizers": None}})
    installed.uninstall()
    assert traces(everything(admin)) == []
