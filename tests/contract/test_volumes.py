"""Volumes, their claims and classes, and what CSI drivers publish: read by the operator, written by users and drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj

CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1"
CLASSES = f"{STORAGE}/storageclasses"


def volume_claim(**spec: Any) -> Obj:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": body}


def volume(name: str) -> Obj:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.test", "volumeHandle": "h"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


async def test_a_new_volume_claim_is_pending_and_its_status_is_apart(api: Client) -> None:
    made = (
        await api.create(CLAIMS, {**volume_claim(storageClassName=""), "status": {"phase": "Bound"}})
    ).ok()
    assert (made.body["spec"]["volumeMode"], made.body["status"]["phase"]) == ("Filesystem", "Pending")
    # The answer, as a controller makes the claim pending again.
    written = (await api.merge(f"{CLAIMS}/data/status", {"status": {"phase": "Lost"}})).ok()
    assert written.body["status"]["phase"] == "Lost"


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"accessModes": []}, "spec.accessModes"), ({"resources": {}}, "spec.resources[storage]")],
)
async def test_a_volume_claim_says_how_and_how_much(api: Client, spec: Obj, field: str) -> None:
    refused = await api.create(CLAIMS, volume_claim(**spec))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [(field, "FieldValueRequired")]


async def test_a_new_volume_has_a_file_system_and_is_pending(api: Client, unique: str) -> None:
    try:
        made = (await api.create(VOLUMES, volume(unique))).ok()
        spec = made.body["spec"]
        assert (spec["volumeMode"], spec["persistentVolumeReclaimPolicy"]) == ("Filesystem", "Retain")
        assert made.body["status"]["phase"] == "Pending"
    finally:
        await api.delete(f"{VOLUMES}/{unique}")


async def test_a_class_binds_at_once_unless_it_says_otherwise(api: Client, unique: str) -> None:
    body: Obj = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": unique}}
    refused = await api.create(CLASSES, body)
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("provisioner", "FieldValueRequired")
    ]
    try:
        made = (await api.create(CLASSES, {**body, "provisioner": "csi.test"})).ok()
        assert (made.body["volumeBindingMode"], made.body["reclaimPolicy"]) == ("Immediate", "Delete")
    finally:
        await api.delete(f"{CLASSES}/{unique}")


@pytest.mark.parametrize(
    ("plural", "kind", "body"),
    [
        ("csinodes", "CSINode", {"spec": {"drivers": [{"name": "csi.test", "nodeID": "n"}]}}),
        ("csidrivers", "CSIDriver", {"spec": {"storageCapacity": True}}),
        (
            "namespaces/{ns}/csistoragecapacities",
            "CSIStorageCapacity",
            {"storageClassName": "disks", "capacity": "1Gi"},
        ),
        (
            "volumeattachments",
            "VolumeAttachment",
            {
                "spec": {
                    "attacher": "csi.test",
                    "nodeName": "n",
                    "source": {"persistentVolumeName": "v"},
                }
            },
        ),
    ],
)
async def test_what_drivers_publish_is_kept_and_listed(
    api: Client, unique: str, plural: str, kind: str, body: Obj
) -> None:
    path = f"{STORAGE}/{plural}"
    header = {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": unique}}
    try:
        made = (await api.create(path, {**header, **body})).ok()
        listed = (await api.get(path)).ok().body["items"]
        (found,) = [item for item in listed if item["metadata"]["name"] == unique]
        assert found["metadata"]["uid"] == made.meta["uid"]
        assert {name: found[name] for name in body} | body == {name: made.body[name] for name in body} | body
    finally:
        await api.delete(f"{path}/{unique}")
