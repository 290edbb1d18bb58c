"""Nodes of which little or nothing is given: out of the slices that name them, and with what a kubelet would report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Obj = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"

PLENTY: Final = "1P"
"""Of each resource, where nobody says how much of it a node has. Arbitrary: more than all pods of a cluster ask for."""


def derived(slices: Iterable[Obj]) -> list[Obj]:
    """A Node for each name that slices, and devices that choose their nodes for themselves, have."""
    names = {str(name): None for slice_ in slices for name in _names(slice_.get("spec") or {})}
    return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in sorted(names)]


def _names(spec: Obj) -> Iterator[object]:
    holders = [spec, *(spec.get("devices") or ())] if spec.get("perDeviceNodeSelection") else [spec]
    for holder in holders:
        if holder.get("nodeName"):
            yield holder["nodeName"]


def labelled(node: Obj) -> Obj:
    """The same with the label that each kubelet sets."""
    metadata = node["metadata"]
    return {
        **node,
        "metadata": {**metadata, "labels": {HOSTNAME: metadata["name"], **metadata.get("labels", {})}},
    }


def complete(nodes: Iterable[Obj], pods: Iterable[Obj]) -> list[str]:
    """Fill in what kubelets report, in place.

    Args:
        nodes: raw Nodes.
        pods: raw Pods, for the resources that they ask for.

    Returns: names of nodes that are taken to have room for any pod, as they say nothing of it.
    """
    resources = ["pods", *sorted({name for pod in pods for name in _asked(pod.get("spec") or {})})]
    generous = []
    for node in nodes:
        name = node["metadata"]["name"]
        node["metadata"] = labelled(node)["metadata"]
        status = node.setdefault("status", {})
        if not status.get("conditions"):
            status["conditions"] = [{"type": "Ready", "status": "True"}]
        if not status.get("allocatable"):
            status["allocatable"] = status.get("capacity") or dict.fromkeys(resources, PLENTY)
            if not status.get("capacity"):
                generous.append(name)
    return generous


def _asked(spec: Obj) -> Iterator[str]:
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()), spec)
    for holder in containers:
        yield from (holder.get("resources") or {}).get("requests") or {}
    yield from spec.get("overhead") or {}
