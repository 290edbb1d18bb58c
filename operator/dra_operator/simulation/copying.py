"""One more node like another, with what belongs to it: its slices under names of their own, what CSI drivers say of it, the pods of DaemonSets.

Pure: raw objects in, raw objects out. It must not decide what is placed there.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .nodes import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .given import Given

    Obj = dict[str, Any]

_OF_KUBERNETES: Final = "node.kubernetes.io/"
"""How taints begin by which Kubernetes tells a node's own trouble; a new node has none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A node to copy.

    Attributes:
        node: raw.
        slices: raw ResourceSlices that name it, of the newest generation of their pools.
        beside: raw objects that come with it: a CSINode, pods of DaemonSets that want no claims.
    """

    node: Obj
    slices: tuple[Obj, ...]
    beside: tuple[Obj, ...]

    @property
    def name(self) -> str:
        """Of the node."""
        return str(self.node["metadata"]["name"])


def shape_of(given: Given, name: str) -> Shape:
    """What is given of a node."""
    newest: dict[tuple[str, str], int] = {}
    for raw in given.raw("ResourceSlice").values():
        newest[_pool(raw)] = max(newest.get(_pool(raw), 0), _generation(raw))
    slices = [
        raw
        for raw in given.raw("ResourceSlice").values()
        if raw["spec"].get("nodeName") == name and _generation(raw) == newest[_pool(raw)]
    ]
    beside = [raw for raw in given.raw("CSINode").values() if raw["metadata"]["name"] == name]
    beside += [raw for raw in given.raw("Pod").values() if _is_daemon_on(raw, name)]
    return Shape(given.nodes()[name], tuple(slices), tuple(beside))


def is_of(raw: Mapping[str, Any], kind: str) -> bool:
    """Whether the object's controller is of a kind."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") == kind for owner in owners)


def copies(shape: Shape, name: str) -> list[Obj]:
    """The shape as a node of another name: the Node, then its slices, then what comes with it."""
    counts: dict[tuple[str, str], int] = {}
    for raw in shape.slices:
        counts[_pool(raw)] = counts.get(_pool(raw), 0) + 1
    slices = [_slice(raw, shape.name, name, counts[_pool(raw)]) for raw in shape.slices]
    return [_node(shape.node, name), *slices, *(_beside(raw, shape.name, name) for raw in shape.beside)]


def pools(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the pools (`driver/pool`) of the slices among objects, sorted."""
    return sorted({"/".join(_pool(raw)) for raw in objects if raw["kind"] == "ResourceSlice"})


def _pool(raw: Mapping[str, Any]) -> tuple[str, str]:
    spec = raw["spec"]
    return str(spec.get("driver", "")), str(spec.get("pool", {}).get("name", ""))


def _generation(raw: Mapping[str, Any]) -> int:
    return int(raw["spec"].get("pool", {}).get("generation", 0))


def _is_daemon_on(raw: Mapping[str, Any], name: str) -> bool:
    spec = raw.get("spec") or {}
    return spec.get("nodeName") == name and not spec.get("resourceClaims") and is_of(raw, "DaemonSet")


def _renamed(text: str, old: str, new: str) -> str:
    """With the new node in the place of the old, or behind."""
    return text.replace(old, new) if old in text else f"{text}-{new}"


def _metadata(raw: Mapping[str, Any], name: str) -> Obj:
    """Of an object that is new: without what only its model has."""
    old = raw["metadata"]
    kept = {key: copy.deepcopy(old[key]) for key in ("namespace", "labels") if key in old}
    return {**kept, "name": name}


def _node(raw: Mapping[str, Any], name: str) -> Obj:
    """Ready, not cordoned, without Kubernetes' own taints, with a host name of its own."""
    found: Obj = {**copy.deepcopy(dict(raw)), "metadata": _metadata(raw, name)}
    labels = found["metadata"].setdefault("labels", {})
    labels[HOSTNAME] = name
    spec = found.get("spec") or {}
    taints = [taint for taint in spec.get("taints", ()) if not str(taint["key"]).startswith(_OF_KUBERNETES)]
    found["spec"] = {**({"taints": taints} if taints else {})}
    status = found.get("status") or {}
    kept = {key: status[key] for key in ("capacity", "allocatable", "declaredFeatures") if key in status}
    return (
        {**found, "status": kept} if kept else {key: part for key, part in found.items() if key != "status"}
    )


def _slice(raw: Mapping[str, Any], old: str, new: str, count: int) -> Obj:
    """Of a pool of the new node's own, whole with the slices that are copied."""
    found: Obj = copy.deepcopy(dict(raw))
    found["metadata"] = _metadata(raw, _renamed(raw["metadata"]["name"], old, new))
    spec = found["spec"]
    spec["nodeName"] = new
    pool = spec["pool"]
    spec["pool"] = {**pool, "name": _renamed(pool["name"], old, new), "resourceSliceCount": count}
    return found


def _beside(raw: Mapping[str, Any], old: str, new: str) -> Obj:
    found: Obj = copy.deepcopy(dict(raw))
    if raw["kind"] == "CSINode":
        return {**found, "metadata": _metadata(raw, new)}
    found["metadata"] = {
        **_metadata(raw, _renamed(raw["metadata"]["name"], old, new)),
        "ownerReferences": copy.deepcopy(raw["metadata"]["ownerReferences"]),
    }
    found["spec"]["nodeName"] = new
    return found
