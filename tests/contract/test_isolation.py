"""Isolation of `/status` for each kind: what a main write drops, what a status write drops, what goes through (cp V-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.contract.client import CLAIM, DRA, POD
from tests.contract.objects import allocation, claim, pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.client import Client, Obj


class Sample(NamedTuple):
    """One kind: where it lives, an object, a change of its spec, a change of its status."""

    path: str
    body: Callable[[str], Obj]
    spec: Obj
    status: Obj
    metadata_through_status: bool = False
    """Whether labels and annotations may be written through `/status`."""


def _rule(name: str) -> Obj:
    taint = {"key": "dra-operator.io/owned", "effect": "NoSchedule"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": {"driver": f"{name}.example.com"}, "taint": taint},
    }


def _node(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def _condition(name: str) -> Obj:
    return {
        "type": name,
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


KINDS = {
    "ResourceClaim": Sample(CLAIM, claim, {"devices": {"requests": []}}, {"allocation": allocation()}),
    "Pod": Sample(
        POD, pod, {"tolerations": [{"key": "x", "operator": "Exists"}]}, {"phase": "Running"}, True
    ),
    "DeviceTaintRule": Sample(
        f"{DRA}/devicetaintrules", _rule, {"taint": {"effect": "None"}}, {"conditions": [_condition("X")]}
    ),
    "Node": Sample("/api/v1/nodes", _node, {"unschedulable": True}, {"capacity": {"cpu": "8"}}, True),
}
NAMES = list(KINDS)


async def _made(api: Client, sample: Sample, name: str) -> Obj:
    return dict((await api.create(sample.path, sample.body(name))).ok().body)


@pytest.fixture
async def sample(api: Client, request: pytest.FixtureRequest, unique: str) -> tuple[Sample, str, Obj]:
    """The kind under test, the path of one object, and that object as it was made."""
    found = KINDS[request.param]
    name = f"s{unique}"
    return found, f"{found.path}/{name}", await _made(api, found, name)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_status_write_drops_changes_of_the_spec(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    kind, path, made = sample
    written = (await api.merge(f"{path}/status", {"spec": kind.spec, "status": kind.status})).ok()
    assert written.body.get("spec") == made.get("spec")
    for field, value in kind.status.items():
        assert written.body["status"][field] == value
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_main_write_drops_the_status(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    kind, path, made = sample
    body = {"metadata": {"labels": {"a": "b"}}, "status": kind.status}
    written = (await api.merge(path, body)).ok()
    assert written.meta["labels"]["a"] == "b"
    assert written.body.get("status") == made.get("status")
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_labels_and_annotations_through_status(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    """Claims and taint rules keep their metadata, pods and nodes take what comes: a mark must go to the main resource."""
    kind, path, _ = sample
    body = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "status": kind.status}
    written = (await api.merge(f"{path}/status", body)).ok()
    seen = (written.meta.get("labels") or {}).get("a"), (written.meta.get("annotations") or {}).get("c")
    assert seen == (("b", "d") if kind.metadata_through_status else (None, None))
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_finalizers_through_status(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    kind, path, _ = sample
    body = {"metadata": {"finalizers": ["example.com/f"]}, "status": kind.status}
    written = (await api.merge(f"{path}/status", body)).ok()
    expected = ["example.com/f"] if kind.metadata_through_status else None
    assert written.meta.get("finalizers") == expected
    await api.merge(path, {"metadata": {"finalizers": None}})
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_status_write_never_counts_as_a_new_generation(
    api: Client, sample: tuple[Sample, str, Obj]
) -> None:
    kind, path, made = sample
    written = (await api.merge(f"{path}/status", {"status": kind.status})).ok()
    assert written.meta.get("generation") == made["metadata"].get("generation")
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_get_of_the_status_is_the_whole_object(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    _, path, made = sample
    found = (await api.get(f"{path}/status")).ok()
    assert found.meta["uid"] == made["metadata"]["uid"]
    assert found.body.get("spec") == made.get("spec")
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_replace_of_the_status_drops_the_spec(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    kind, path, made = sample
    if kind is KINDS["Node"]:
        made["metadata"].pop("resourceVersion")  # controllers write new nodes, too
    body = {**made, "spec": {**made.get("spec", {}), **kind.spec}, "status": kind.status}
    written = (await api.replace(f"{path}/status", body)).ok()
    assert written.body.get("spec") == made.get("spec")
    await api.delete(path)


@pytest.mark.parametrize("sample", NAMES, indirect=True)
async def test_status_of_a_missing_object_is_not_found(api: Client, sample: tuple[Sample, str, Obj]) -> None:
    kind, path, _ = sample
    refused = await api.merge(f"{path}x/status", {"status": kind.status})
    assert (refused.code, refused.reason) == (404, "NotFound")
    await api.delete(path)
