"""Stand-in for kube-scheduler with its DRA plugin, without allocation: binds pods whose claims somebody has allocated.

A pod is bound if it has no gate, all its claims exist and are allocated, and a node admits it, fits it and is selected by every
allocation. A claim that is not reserved for the pod yet is reserved first. It never allocates and never takes an allocation away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.binding import bind
from dra_operator.testing.fakeapi.objects import Key, Obj, Resource, copied, dicts, dig, meta, timestamp
from dra_operator.testing.fakeapi.options import WriteOptions
from dra_operator.testing.fakeapi.standins.base import StandIn
from dra_operator.testing.fakeapi.standins.index import Index, Terms
from dra_operator.testing.fakeapi.standins.nodes import admits, fits, selects
from dra_operator.testing.fakeapi.standins.resources import (
    CLAIMS,
    NODES,
    PODS,
    claims_of,
    consumer_of,
    done,
    reserved_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Change, Record

SCHEDULER = "default-scheduler"
_ALL: Key = ("", "")
_WAITING, _ON = "waiting", "on"


class Binding(StandIn):
    """The scheduler."""

    name = "kube-scheduler"
    watches = (PODS, CLAIMS, NODES)

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._pods = Index(self.store, PODS, _terms)

    def changed(self, _resource: Resource, _change: Change) -> None:
        """Anything may make a pod fit: look at all that wait."""
        self.touch(PODS, _ALL)

    def look(self, _resource: Resource, _key: Key) -> None:
        """One pass over all waiting pods, oldest first."""
        for record in sorted(self._found(_WAITING), key=lambda record: record.version):
            self._schedule(record)

    def _found(self, *term: str) -> list[Record]:
        records = (self.store.get(PODS, key) for key in self._pods.keys(*term))
        return [record for record in records if record is not None]

    def _schedule(self, record: Record) -> None:
        pod = record.obj
        key = (meta(pod)["namespace"], meta(pod)["name"])
        claims = claims_of(self.store, pod)
        if claims is None:
            return
        if any(dig(claim.obj, "status", "allocation") is None for claim in claims):
            self._refuse(pod, key, "cannot allocate all claims: this server has no allocator of its own")
            return
        node = self._node_for(pod, claims)
        if node is None:
            self._refuse(pod, key, "no node is available")
            return
        for claim in claims:
            if not reserved_for(claim.obj, pod):
                self._reserve(claim.obj, pod)
        target = {"target": {"kind": "Node", "name": node}, "metadata": {"uid": record.uid}}
        bind(self.machinery, key, target)

    def _node_for(self, pod: Obj, claims: list[Record]) -> str | None:
        selectors = [dig(claim.obj, "status", "allocation", "nodeSelector") for claim in claims]
        for record in self.store.items(NODES):
            node = record.obj
            if any(selector and not selects(selector, node) for selector in selectors):
                continue
            name = str(meta(node)["name"])
            if admits(node, pod) and fits(node, pod, [other.obj for other in self._found(_ON, name)]):
                return name
        return None

    def _reserve(self, claim: Obj, pod: Obj) -> None:
        new = copied(claim)
        new["status"]["reservedFor"] = [*(new["status"].get("reservedFor") or ()), consumer_of(pod)]
        key = (meta(claim)["namespace"], meta(claim)["name"])
        self.machinery.update(
            self.machinery.kinds.stored(CLAIMS), key, new, WriteOptions(self.name, "status")
        )

    def _refuse(self, pod: Obj, key: Key, message: str) -> None:
        """PodScheduled=False, written only if it says something new."""
        new = copied(pod)
        conditions = new["status"].setdefault("conditions", [])
        present = [item for item in conditions if item.get("type") == "PodScheduled"]
        if present and present[0].get("message") == message:
            return
        conditions[:] = [item for item in conditions if item.get("type") != "PodScheduled"]
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        now = timestamp(self.machinery.clock())
        conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": now})
        self.machinery.update(self.machinery.kinds.stored(PODS), key, new, WriteOptions(self.name, "status"))


def _terms(pod: Obj) -> Iterator[Terms]:
    """Pods that wait, and pods by the node whose room they take."""
    node = dig(pod, "spec", "nodeName")
    if node and not done(pod):
        yield (_ON, str(node))
    elif _waits(pod):
        yield (_WAITING,)


def _waits(pod: Obj) -> bool:
    spec = pod.get("spec") or {}
    if (
        spec.get("nodeName")
        or spec.get("schedulerName") != SCHEDULER
        or list(dicts(spec.get("schedulingGates")))
    ):
        return False
    return "deletionTimestamp" not in meta(pod)
