"""Pods with volumes by claim: they go where devices and volumes meet, wait for what is missing, and are told why (cp I-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.placement import volumeclaims

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import world

if TYPE_CHECKING:
    from .objects import Obj

ZONE = "topology.kubernetes.io/zone"
STOCK = ("claims", "binding", "kubelet")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is told of at once."""
    monkeypatch.setattr(volumeclaims, "LAG", 0.1)
    monkeypatch.setattr(volumeclaims, "SLOW", 0.1)


def in_zone(made: Obj, zone: str) -> Obj:
    made["metadata"]["labels"][ZONE] = zone
    return made


def zones() -> tuple[Obj, ...]:
    """Nodes `a` and `b` in zones of these names, each with one device."""
    nodes = [(in_zone(node(name), name), slice_(name, 1)) for name in "ab"]
    return (*(item for pair in nodes for item in pair), device_class(), policy(), template())


def storage_class(name: str = "disks", by: str = "csi.test") -> Obj:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": by,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, zone: str) -> Obj:
    need = {"key": ZONE, "operator": "In", "values": [zone]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "hostPath": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [need]}]}},
        },
    }


def volume_claim(name: str = "data", class_: str = "local", **spec: Any) -> Obj:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default"}
    if "volumeName" in spec:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}  # type: ignore[assignment]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {**body, "storageClassName": class_, **spec},
    }


def with_volume(name: str, claim_name: str = "data", **spec: Any) -> Obj:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, by_template("gpu"), volumes=volumes, **spec)


AVAILABLE = {"status": {"phase": "Available"}}


async def test_a_pod_goes_where_its_volume_is() -> None:
    """By name, node `a` would be the first."""
    async with world(*STOCK, objects=(*zones(), volume("v", "b"), volume_claim(volumeName="v"))) as here:
        here.add(with_volume("web"))
        await here.until(lambda: here.node_of("web") == "b")


async def test_a_pod_waits_for_its_volume_claim_and_goes_on_by_itself() -> None:
    async with world(*STOCK, objects=(*zones(), volume("v", "b"))) as here:
        here.add(with_volume("web"))
        await here.until(lambda: here.messages("VolumeClaimMissing", "web"))
        (text,) = here.messages("VolumeClaimMissing", "web")
        assert text.startswith(
            'spec.volumes[0].persistentVolumeClaim.claimName: persistentvolumeclaim "data" not found: create PersistentVolumeClaim default/data'
        )
        assert (here.is_gated("web"), here.devices()) == (True, {})

        here.add(volume_claim(volumeName="v"))

        await here.until(lambda: here.node_of("web") == "b")


async def test_a_pod_waits_for_a_claim_to_be_bound_and_is_told_what_is_in_the_way() -> None:
    async with world(*STOCK, objects=(*zones(), volume("v", "b"), volume_claim(class_="later"))) as here:
        here.add(with_volume("web"))
        await here.until(lambda: here.messages("VolumeClaimNotReady", "web"))
        (text,) = here.messages("VolumeClaimNotReady", "web")
        assert (
            "pod has unbound immediate PersistentVolumeClaims: default/data is of StorageClass later, which does"
            in text
        )

        here.add(storage_class("later"))

        await here.until(lambda: here.node_of("web") == "a")


async def test_volumes_made_by_hand_are_had_once_each_also_before_they_are_bound() -> None:
    """One volume a zone, two pods at once: nobody binds volumes here, so both look free all the time."""
    claims = (volume_claim("one"), volume_claim("two"), volume_claim("three"))
    local = storage_class("local", by="kubernetes.io/no-provisioner")
    async with world(
        "claims", objects=(*zones(), local, volume("va", "a"), volume("vb", "b"), *claims)
    ) as here:
        for name in ("va", "vb"):
            await here.user.request(
                "PATCH",
                f"/api/v1/persistentvolumes/{name}/status",
                body=AVAILABLE,
                content_type="application/merge-patch+json",
            )
        await here.settle()
        here.add(with_volume("w1", "one"), with_volume("w2", "two"))
        await here.until(lambda: not here.is_gated("w1") and not here.is_gated("w2"))
        assert sorted(here.devices_of("w1") + here.devices_of("w2")) == [
            "gpu.example.com/a/dev-0",
            "gpu.example.com/b/dev-0",
        ]


async def test_a_pod_whose_volume_and_devices_are_apart_is_told_so() -> None:
    cluster = (in_zone(node("c"), "c"), *zones())
    async with world(*STOCK, objects=(*cluster, volume("v", "c"), volume_claim(volumeName="v"))) as here:
        here.add(with_volume("web"))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        (text,) = here.messages("AllocationFailed", "web")
        assert "2 node(s) didn't match PersistentVolume's node affinity" in text
        assert "add nodes or devices where the pod's volumes are" in text

        here.add(slice_("c", 1))

        await here.until(lambda: here.node_of("web") == "c")


async def test_a_pod_that_the_operator_would_bind_gets_no_volume_that_waits_for_its_first_pod() -> None:
    objects = (*zones(), storage_class(), volume_claim(class_="disks"), volume("v", "b"))
    async with world("claims", objects=objects) as here:
        here.add(with_volume("web", gates=(), schedulerName="dra-operator"))
        await here.until(lambda: here.messages("VolumeClaimUnbound", "web"))
        assert "WaitForFirstConsumer" in here.messages("VolumeClaimUnbound", "web")[0]
        assert (here.node_of("web"), here.devices()) == ("", {})

        bound = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "v"},
        }
        await here.user.request(
            "PATCH",
            "/api/v1/namespaces/default/persistentvolumeclaims/data",
            body=bound,
            content_type="application/merge-patch+json",
        )

        await here.until(lambda: here.node_of("web") == "b")
