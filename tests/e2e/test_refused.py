"""Pods that kube-scheduler does not bind to the node that they were sent to (cp I-27), on a real control plane.

kube-scheduler is away while a node is cordoned behind the operator's back; its own words are what the pod is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import scheduler_away
from tests.e2e.fleet import Fleet, gates, is_running
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim_template, exactly, pod
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.fleet import Object
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

OPERATOR_FLAGS = ("--settle-seconds=1", "--refused-seconds=3", "--replace-refused=owned")
LOG_MAY_HOLD = ("pod is not bound", "pod deleted, for its controller")


@pytest.fixture(scope="module", autouse=True)
def _may_delete(control_plane: ControlPlane) -> Iterator[None]:
    """The rights of the component, for as long as this module runs: everybody else runs without."""
    rights = (ROOT / "manifests" / "components" / "replace-refused" / "rbac.yaml").read_text(encoding="utf-8")
    control_plane.kubectl.apply(rights)
    yield
    name = "dra-operator-replace-refused"
    control_plane.kubectl.delete("clusterrolebinding", name)
    control_plane.kubectl.delete("clusterrole", name)


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes with a device each."""
    made = Fleet.of(managed)
    made.plain(1, nodes=2)
    made.own("gpu")
    managed.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def pinned(found: Object) -> str:
    """The node that a released pod has to go to."""
    required = found["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


def sent(fleet: Fleet) -> Object:
    """Waits until the only pod is past the gate; returns it."""
    return wait_until(
        lambda: fleet.workspace.kubectl.get_all("pods"),
        "the pod is past the gate",
        accept=lambda found: len(found) == 1 and not gates(found[0]),
    )[0]


def test_a_refused_pod_is_told_in_kube_schedulers_words_and_goes_when_these_are_mended(
    fleet: Fleet, control_plane: ControlPlane
) -> None:
    kubectl = fleet.workspace.kubectl
    with scheduler_away(control_plane):
        fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
        node = pinned(sent(fleet))
        kubectl.run("cordon", node)
    text = wait_until(
        lambda: fleet.told("train", "PodRefused"),
        "told in kube-scheduler's words",
        accept=lambda said: "nodes are available" in said,
    )

    assert text.startswith(
        f"kube-scheduler has not bound the pod to Node {node}, to which it was sent with its devices, for 3 s: 0/"
    )
    assert f"The node is cordoned: kubectl uncordon {node}" in text
    assert kubectl.find("pod", "train") is not None, "nobody would make another one"
    kubectl.run("uncordon", node)
    fleet.running("train")


def test_a_pod_with_a_controller_is_replaced_and_its_successor_goes_elsewhere(
    fleet: Fleet, control_plane: ControlPlane
) -> None:
    kubectl = fleet.workspace.kubectl
    template = pod("unused", templates={"gpu": "one-gpu"})["spec"]
    labels = {"app": "web"}
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }
    with scheduler_away(control_plane):
        fleet.workspace.apply(web)
        first = sent(fleet)
        kubectl.run("cordon", pinned(first))
    running = wait_until(
        lambda: [item for item in kubectl.get_all("pods") if is_running(item)],
        "the successor runs",
        timeout=60,
    )

    assert running[0]["metadata"]["uid"] != first["metadata"]["uid"]
    assert {running[0]["spec"]["nodeName"], pinned(first)} == {fleet.node(0), fleet.node(1)}
    fleet.told(first["metadata"]["name"], "PodReplaced")
    kubectl.until_gone("pod", first["metadata"]["name"])
    assert problems(kubectl, fleet.workspace.namespace) == []
    kubectl.delete("replicaset", "web")  # or it goes on making pods
