"""Pods that mind who runs beside them, on a real control plane: kube-scheduler finds our choice right, and binds there at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import Fleet
from tests.e2e.harness.objects import claim_template, exactly, pod

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

HOST = "kubernetes.io/hostname"
LIKE_TRAIN: Object = {"matchLabels": {"app": "train"}}
TERM: Object = {"topologyKey": HOST, "labelSelector": LIKE_TRAIN}
APART: Object = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}
NEAR: Object = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}
EVEN: Object = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": LIKE_TRAIN}
    ]
}


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes with four devices of ours each, and a template for one of them."""
    made = Fleet.of(managed)
    made.plain(4, nodes=2)
    made.own("gpu")
    managed.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def train(name: str, app: str = "train", **spec: Any) -> Object:
    """A pod for one device."""
    made = pod(name, templates={"gpu": "one-gpu"}, **spec)
    made["metadata"]["labels"] = {"app": app}
    return made


def nodes_of(running: list[Object]) -> list[str]:
    return [found["spec"]["nodeName"] for found in running]


@pytest.mark.parametrize("way", [{}, {"schedulerName": "dra-operator"}], ids=["gated", "scheduler-name"])
def test_pods_that_shun_each_other_are_apart_and_one_too_many_waits(fleet: Fleet, way: Object) -> None:
    """Cp I-27."""
    fleet.workspace.apply(train("one", **APART, **way), train("two", **APART, **way))
    assert len(set(nodes_of(fleet.running("one", "two")))) == 2

    fleet.workspace.apply(train("three", **APART, **way))
    assert "2 node(s) didn't match pod anti-affinity rules" in fleet.told("three", "AllocationFailed")
    fleet.workspace.kubectl.delete("pod", "one")
    fleet.running("three")


def test_pods_that_run_keep_others_off_that_have_no_wishes(fleet: Fleet) -> None:
    fleet.workspace.apply(train("shy", "shy", **APART))
    (taken,) = nodes_of(fleet.running("shy"))
    fleet.workspace.apply(*(train(f"train-{index}") for index in range(3)))

    assert taken not in nodes_of(fleet.running(*(f"train-{index}" for index in range(3))))


def test_a_burst_is_spread_evenly(fleet: Fleet) -> None:
    """Each is sent while others are on their way; none is sent where it would have to wait for them."""
    names = [f"train-{index}" for index in range(6)]
    fleet.workspace.apply(*(train(name, **EVEN) for name in names))
    found = nodes_of(fleet.running(*names))

    assert sorted(found.count(name) for name in set(found)) == [3, 3]


def test_a_group_that_wants_to_be_together_is(fleet: Fleet) -> None:
    """The first may go anywhere, the others follow; a pod of another kind follows once one of them is bound."""
    names = [f"train-{index}" for index in range(3)]
    fleet.workspace.apply(train("guest", "guest", **NEAR), *(train(name, **NEAR) for name in names))

    assert len(set(nodes_of(fleet.running(*names, "guest")))) == 1
