"""Pods with volumes by claim beside the stock control plane: we choose the node, kube-scheduler and kube-controller-manager bind (cp I-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet
from tests.e2e.harness.objects import claim_template, exactly, pod

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes with two devices of ours each, and a class of volumes that are made by hand."""
    made = Fleet.of(managed)
    made.plain(2, nodes=2)
    made.own("gpu")
    managed.apply(
        claim_template("one-gpu", exactly("gpu", made.name("gpu"))),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": made.name("local")},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    return made


def volume(fleet: Fleet, name: str, node_name: str) -> Object:
    need = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": fleet.name(name)},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": fleet.name("local"),
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [need]}]}},
        },
    }


def volume_claim(fleet: Fleet, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": fleet.name("local"),
        },
    }


def with_volume(name: str, claim_name: str) -> Object:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, templates={"gpu": "one-gpu"}, volumes=volumes)


def is_available(found: Object) -> bool:
    return bool(found["status"]["phase"] == "Available")


def test_pods_go_where_their_volumes_can_be_had_and_stay_with_them(fleet: Fleet) -> None:
    """The only volume is on the second node; kube-scheduler binds the claim to it, and a pod that comes later follows it there."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(volume(fleet, "volume", fleet.node(1)), volume_claim(fleet, "data"))
    kubectl.until("persistentvolume", fleet.name("volume"), is_available, "available")
    fleet.workspace.apply(with_volume("first", "data"))

    (first,) = fleet.running("first")

    assert first["spec"]["nodeName"] == fleet.node(1)
    kubectl.until("persistentvolumeclaim", "data", lambda found: found["status"]["phase"] == "Bound", "bound")

    fleet.workspace.apply(with_volume("second", "data"))
    (second,) = fleet.running("second")

    assert second["spec"]["nodeName"] == fleet.node(1)


def test_a_pod_waits_for_a_volume_claim_and_for_a_volume_and_is_told(fleet: Fleet) -> None:
    fleet.workspace.apply(with_volume("train", "data"))

    assert 'persistentvolumeclaim "data" not found' in fleet.told("train", "VolumeClaimMissing")

    fleet.workspace.apply(volume_claim(fleet, "data"))

    assert "node(s) didn't find available persistent volumes to bind" in fleet.told(
        "train", "AllocationFailed"
    )

    fleet.workspace.apply(volume(fleet, "late", fleet.node(1)))

    (served,) = fleet.running("train")
    assert served["spec"]["nodeName"] == fleet.node(1)
