"""Reads manifests as kubectl does: several documents a file, objects in Lists, pods inside of workloads.

For tests and the feed tool. It knows nothing of servers; what it cannot read, it says with the file's name.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Object = dict[str, Any]

HERE = Path(__file__).resolve().parent
CLUSTER_SCOPED = frozenset({"DeviceClass", "DeviceTaintRule", "Namespace", "Node", "ResourceSlice"})
"""Kinds without a namespace that such manifests hold."""

_CONTROLLED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "Job", "MPIJob"})


def documents(path: Path) -> list[Object]:
    """All objects of a file, those of Lists one by one.

    Raises:
        ValueError: The file is no YAML, or holds something that is no object.
    """
    try:
        found = [item for document in yaml.safe_load_all(path.read_text()) for item in _flat(document)]
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {error}") from error
    for item in found:
        if not isinstance(item, dict):
            raise ValueError(f"{path}: {item!r} is no object")  # noqa: TRY004 - the caller catches one type
    return found


def _flat(document: Any) -> Iterator[Any]:
    if document is None:
        return
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        for item in document.get("items") or ():
            yield from _flat(item)
    else:
        yield document


def pods_of(obj: Object) -> list[Object]:
    """The pods that the object is or would bring about: of Deployments, Jobs and MPIJobs as their controllers make them."""
    kind, spec = obj.get("kind"), obj.get("spec") or {}
    if kind == "Pod":
        return [obj]
    if kind == "MPIJob":
        parts = spec.get("mpiReplicaSpecs") or {}
        return [
            pod
            for role, part in parts.items()
            for pod in _replicas(obj, part["template"], part.get("replicas", 1), role.lower())
        ]
    if kind in {"Deployment", "ReplicaSet", "StatefulSet"}:
        return _replicas(obj, spec["template"], spec.get("replicas", 1))
    if kind == "Job":
        return _replicas(obj, spec["template"], spec.get("parallelism", 1))
    return []


def _replicas(owner: Object, template: Object, count: int, role: str = "") -> list[Object]:
    name = "-".join(part for part in (owner["metadata"]["name"], role) if part)
    return [_replica(template, f"{name}-{number}", name) for number in range(count)]


def _replica(template: Object, name: str, workload: str) -> Object:
    labels = {**(template.get("metadata") or {}).get("labels", {}), WORKLOAD: workload}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": copy.deepcopy(template["spec"]),
    }


WORKLOAD = "inputs.test/workload"
"""Label of pods that stand for those of a workload: its name."""


def workload_of(pod: Object) -> str:
    """What the user calls the pod: the name of the Deployment or Job that made it, else its own."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    if WORKLOAD in labels:
        return str(labels[WORKLOAD])
    owner = next((item for item in metadata.get("ownerReferences") or () if item.get("controller")), None)
    if owner is None:
        return str(metadata["name"])
    name = str(owner["name"])
    hashed = labels.get("pod-template-hash")
    return name.removesuffix(f"-{hashed}") if hashed else name


def expanded(objects: Iterable[Object]) -> list[Object]:
    """The same objects with workloads replaced by their pods, for servers where no controller makes these."""
    found: list[Object] = []
    for obj in objects:
        found += pods_of(obj) or ([] if obj.get("kind") in _CONTROLLED else [obj])
    return found


def without_owners(obj: Object) -> Object:
    """The object without what ties a live dump to the cluster that it comes from.

    An owner that does not exist here would have it deleted by the garbage collector, a resourceVersion refused.
    """
    kept = ("name", "generateName", "namespace", "labels", "annotations")
    metadata = {field: value for field, value in (obj.get("metadata") or {}).items() if field in kept}
    return {**obj, "metadata": metadata}


def node_names(objects: Iterable[Object]) -> list[str]:
    """Nodes that slices are for, each once."""
    names = [obj["spec"].get("nodeName") for obj in objects if obj.get("kind") == "ResourceSlice"]
    return list(dict.fromkeys(str(name) for name in names if name))
