"""What becomes of odd input as people really send it: live dumps, Lists, bodies of other versions, amounts, names at their limits."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import DRA
from tests.contract.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.contract.client import Client, Obj

SLICES = f"{DRA}/resourceslices"
GONE = "00c21858-73a7-402e-88bc-5e33b1d39bb7"
LIVE: Obj = {
    "uid": "54700765-803c-489c-8388-64efe891729c",
    "creationTimestamp": "2025-08-13T06:31:39Z",
    "generation": 4,
    "managedFields": [
        {
            "manager": "gpu-kubelet-plugin",
            "operation": "Update",
            "apiVersion": "resource.k8s.io/v1",
            "time": "2025-08-13T06:31:39Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:driver": {}}},
        }
    ],
}
"""Metadata that a dump keeps and a new object cannot have."""


@pytest.fixture
async def slices(api: Client, unique: str) -> AsyncIterator[str]:
    """Name of a slice that is gone after the test."""
    name = f"inputs-{unique}"
    yield name
    await api.delete(f"{SLICES}/{name}")


def made(name: str, device: Obj | None = None, driver: str = "gpu.example.com", **metadata: Any) -> Obj:
    devices = [{"name": "gpu-0", **(device or {})}]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, **metadata},
        "spec": {"driver": driver, "nodeName": name, "pool": pool, "devices": devices},
    }


OLD = {"basic": {"attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": "1Gi"}}}}
"""A device as v1beta1 has it."""


async def test_device_in_an_older_body_loses_its_attributes(api: Client, slices: str) -> None:
    kept = (await api.create(SLICES, made(slices, OLD), fieldValidation="Ignore")).ok()
    assert kept.body["spec"]["devices"] == [{"name": "gpu-0"}]


async def test_device_in_an_older_body_is_refused_by_kubectl(
    api: Client, slices: str, tmp_path: Path
) -> None:
    kubectl = Kubectl(api, tmp_path)
    refused = await kubectl("apply", "-f", "-", given=made(slices, OLD), code=1)
    assert 'strict decoding error: unknown field "spec.devices[0].basic"' in refused
    await kubectl("apply", "--validate=ignore", "-f", "-", given=made(slices, OLD))


async def test_older_versions_are_not_served_by_default(api: Client, slices: str, tmp_path: Path) -> None:
    for version in ("v1beta1", "v1beta2"):
        assert (await api.get(f"/apis/resource.k8s.io/{version}/resourceslices")).code == 404
    old = {**made(slices, OLD), "apiVersion": "resource.k8s.io/v1beta1"}
    refused = await Kubectl(api, tmp_path)("apply", "-f", "-", given=old, code=1)
    assert 'no matches for kind "ResourceSlice" in version "resource.k8s.io/v1beta1"' in refused


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("196592Mi", "196592Mi"),
        ("189471Mi", "189471Mi"),
        ("1e3", "1e3"),
        (1000, "1k"),
        (1.5, "1500m"),
        ("0.5Gi", "512Mi"),
        (" 6Gi", "6Gi"),
        ("-1", "-1"),
        ("9223372036854775808", "9223372036854775808"),
        ("1e36", "1e36"),
    ],
)
async def test_amounts_are_stored_in_their_canonical_form(
    api: Client, slices: str, given: object, stored: str
) -> None:
    body = made(slices, {"capacity": {"memory": {"value": given}}})
    kept = (await api.create(SLICES, body)).ok()
    assert kept.body["spec"]["devices"][0]["capacity"]["memory"]["value"] == stored


@pytest.mark.parametrize("given", ["6 GiB", "6GiB", "1_000", "", "six"])
async def test_amounts_that_are_none_are_refused(api: Client, slices: str, given: str) -> None:
    refused = await api.create(SLICES, made(slices, {"capacity": {"memory": {"value": given}}}))
    assert refused.code == 400
    assert "quantities must match the regular expression" in refused.body["message"]


@pytest.mark.parametrize(
    "value",
    [
        {"string": "994913940318892495"},
        {"int": 994913940318892495},
        {"int": -(2**63)},
        {"string": "grün ☃ 顔"},
        {"string": ""},
        {"version": "1.2.3-rc.1+build.5"},
    ],
)
async def test_values_of_attributes_are_kept(api: Client, slices: str, value: Obj) -> None:
    kept = (await api.create(SLICES, made(slices, {"attributes": {"a": value}}))).ok()
    assert kept.body["spec"]["devices"][0]["attributes"] == {"a": value}


@pytest.mark.parametrize(
    ("attributes", "path", "words"),
    [
        ({"a-b": {"bool": True}}, "", "a valid C identifier must start with"),
        ({"grün": {"bool": True}}, "", "a valid C identifier must start with"),
        ({"a" * 33: {"bool": True}}, "", "may not be more than 32 bytes"),
        ({f"{'d' * 64}.io/a": {"bool": True}}, "", "may not be more than 63 bytes"),
        ({"a": {"string": "x" * 65}}, "[a].string", "may not be more than 64 bytes"),
        ({"a": {"version": "580.105.08"}}, "[a].version", "compatible with semver.org spec 2.0.0"),
        ({"a": {"version": "v1.2"}}, "[a].version", "compatible with semver.org spec 2.0.0"),
        ({"a": {}}, "[a]", "must specify one of"),
        ({"a": {"string": "x", "int": 1}}, "[a]", "must specify exactly one of"),
        ({"a": {"strings": ["x", "y"]}}, "[a]", "must specify one of"),
    ],
)
async def test_attributes_that_are_refused(
    api: Client, slices: str, attributes: Obj, path: str, words: str
) -> None:
    """The last is a list, whose gate is off by default."""
    refused = await api.create(SLICES, made(slices, {"attributes": attributes}))
    assert [cause["field"] for cause in refused.causes] == [f"spec.devices[0].attributes{path}"]
    assert words in refused.causes[0]["message"]


async def test_nulls_are_as_good_as_nothing(api: Client, slices: str) -> None:
    device = {"attributes": {"a": {"string": None, "int": 4}}, "capacity": None, "taints": None}
    kept = (await api.create(SLICES, made(slices, device, labels=None))).ok()
    assert kept.body["spec"]["devices"] == [{"name": "gpu-0", "attributes": {"a": {"int": 4}}}]


async def test_driver_in_upper_case_is_taken(api: Client, slices: str) -> None:
    kept = (await api.create(SLICES, made(slices, driver="GPU.Example.com"))).ok()
    assert kept.body["spec"]["driver"] == "GPU.Example.com"


async def test_names_at_their_limits(api: Client, slices: str) -> None:
    pool = ".".join(["p" * 63, "p" * 63, "p" * 63, "p" * 61])
    body = made(slices, {"name": "d" * 63}, driver=f"{'d' * 55}.example")
    body["spec"] |= {"nodeName": pool, "pool": {**body["spec"]["pool"], "name": pool}}
    (await api.create(SLICES, body)).ok()
    body["spec"]["devices"][0]["name"] = "d" * 64
    body["metadata"]["name"] += "-too"
    refused = await api.create(SLICES, body)
    assert [cause["field"] for cause in refused.causes] == ["spec.devices[0].name"]


async def test_new_object_gets_metadata_of_its_own(api: Client, slices: str) -> None:
    """What a dump says of the object that it was taken from is put aside."""
    kept = (await api.create(SLICES, made(slices, **LIVE))).ok()
    assert kept.meta["uid"] != LIVE["uid"]
    assert kept.meta["creationTimestamp"] != LIVE["creationTimestamp"]
    assert kept.meta["generation"] == 1


async def test_kubectl_takes_a_dump_with_its_version(api: Client, slices: str, tmp_path: Path) -> None:
    """It takes the version off itself."""
    kubectl = Kubectl(api, tmp_path)
    dump = made(slices, **LIVE, resourceVersion="1080115", generateName="inputs-")
    await kubectl("create", "-f", "-", given=dump)
    await kubectl("delete", "resourceslice", slices)
    await kubectl("apply", "-f", "-", given=dump)


async def test_dump_whose_owner_is_not_there_is_collected(api: Client, slices: str) -> None:
    """Slices of a dump belong to their node, by its uid in the other cluster."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": GONE, "controller": True}
    (await api.create(SLICES, made(slices, ownerReferences=[owner]))).ok()
    async with asyncio.timeout(30):
        while (await api.get(f"{SLICES}/{slices}")).code != 404:  # noqa: ASYNC110 - another process deletes it
            await asyncio.sleep(0.05)


async def test_dump_whose_owner_has_no_uid_is_refused(api: Client, slices: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gone", "controller": True}
    refused = await api.create(SLICES, made(slices, ownerReferences=[owner]))
    assert [cause["field"] for cause in refused.causes] == ["metadata.ownerReferences[0].uid"]


async def test_list_of_kubectl(api: Client, slices: str, tmp_path: Path) -> None:
    """As `kubectl get -o yaml` writes it; objects are told one by one."""
    kubectl = Kubectl(api, tmp_path)
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": [made(slices)],
    }
    assert (
        await kubectl("apply", "-f", "-", given=listed) == f"resourceslice.resource.k8s.io/{slices} created\n"
    )
    again = await kubectl("get", "resourceslice", slices, "-o", "json")
    assert json.loads(again)["spec"]["driver"] == "gpu.example.com"


async def test_generated_names_are_for_create(api: Client, slices: str, tmp_path: Path) -> None:
    kubectl = Kubectl(api, tmp_path)
    nameless = made(slices)
    nameless["metadata"] = {"generateName": f"{slices}-"}
    refused = await kubectl("apply", "-f", "-", given=nameless, code=1)
    assert "cannot use generate name with apply" in refused
    told = await kubectl("create", "-f", "-", "-o", "name", given=nameless)
    name = told.strip().rpartition("/")[2]
    assert name.startswith(f"{slices}-")
    await api.delete(f"{SLICES}/{name}")
