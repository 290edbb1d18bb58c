"""Devices that take something of their node, on a control plane that knows them (KEP 5517; off in 1.37 by default).

kube-scheduler tells the kubelets of gated pods, the operator those of the pods that it binds: the words have to be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, is_running
from tests.e2e.harness.cluster import Options
from tests.e2e.harness.objects import IMAGE, claim_template, device, exactly, node, pod
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace, own_control_plane
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.fleet import Object

FEATURE = "DRANodeAllocatableResources"
GATE_ON = Options(feature_gates={FEATURE: True})
TAKEN = {
    "cpu": {
        "mapping": {"deviceMultiplier": "8"},
        "overhead": {"perPod": "500m", "perContainer": "250m"},
    },
    "memory": {"mapping": {"capacityKey": "memory", "capacityMultiplier": "1.5"}},
}
AMOUNTS = {
    "mapping": [{"name": "cpu", "quantity": "8"}, {"name": "memory", "quantity": "3Gi"}],
    "overhead": [{"name": "cpu", "perPod": "500m", "perContainer": "250m"}],
}


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Two nodes with cpus for one pod with its device each, on a control plane of their own, with an operator."""
    with (
        own_control_plane(request.session, GATE_ON) as plane,
        told_on_failure(request.session) as running,
        OperatorProcess.start(plane, install(plane), *DEFAULT_FLAGS) as started,
    ):
        running.append(started)
        for workspace in open_workspace(plane, request, labels=ENABLED, gated=True):
            made = Fleet.of(workspace)
            core = device("core", capacity={"memory": "64Gi"})
            core |= {"allowMultipleAllocations": True, "nodeAllocatableResources": TAKEN}
            for number in range(2):
                home = node(made.node(number), cpu="10")
                home["status"]["declaredFeatures"] = [FEATURE]  # or the API server takes no such slice
                workspace.apply(home)
                made.publish("cpu", made.node(number), [core])
            workspace.nodes_ready(made.node(0), made.node(1))
            made.own("cpu")
            wanted = exactly("core", made.name("cpu"), capacity={"requests": {"memory": "2Gi"}})
            workspace.apply(claim_template("cores", wanted))
            yield made
        assert complaints(started.log_text()) == []


def with_cores(name: str, scheduler: str = "default-scheduler") -> Object:
    """A pod of two containers that use the claim and one that does not."""
    made = pod(name, templates={"cores": "cores"}, schedulerName=scheduler)
    (main,) = made["spec"]["containers"]
    idle = {"name": "idle", "image": IMAGE}
    made["spec"]["containers"] = [main, main | {"name": "beside"}, idle]
    return made


def test_gated_pods_and_those_that_the_operator_binds_take_the_same_and_what_is_left_counts(
    fleet: Fleet,
) -> None:
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(with_cores("gated"))
    (gated,) = fleet.running("gated")
    fleet.workspace.apply(with_cores("bound", "dra-operator"))
    (bound,) = fleet.running("bound")

    assert {gated["spec"]["nodeName"], bound["spec"]["nodeName"]} == {fleet.node(0), fleet.node(1)}
    for found in (gated, bound):
        (told,) = found["status"]["nodeAllocatableResourceClaimStatuses"]
        assert told.pop("resourceClaimName").startswith(found["metadata"]["name"])
        assert told == {"containers": ["main", "beside"]} | AMOUNTS

    fleet.workspace.apply(with_cores("late"))
    fleet.told("late", "AllocationFailed", "2 Insufficient cpu for the pod and what its devices take")
    kubectl.delete("pod", "gated")
    late = kubectl.until("pod", "late", is_running, "Running")
    assert late["spec"]["nodeName"] == gated["spec"]["nodeName"]
