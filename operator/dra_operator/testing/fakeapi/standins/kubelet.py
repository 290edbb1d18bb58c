"""Stand-in for kubelets: nodes become Ready, bound pods run, deleted pods go.

Checks what a real kubelet checks of claims (cp K-1): a pod whose claims are not allocated for its node and reserved for it does not
start, and an event says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Key, Obj, Resource, copied, dicts, dig, meta, timestamp
from dra_operator.testing.fakeapi.options import DeleteOptions, WriteOptions
from dra_operator.testing.fakeapi.standins.base import StandIn
from dra_operator.testing.fakeapi.standins.events import warn
from dra_operator.testing.fakeapi.standins.index import pods_by_claim
from dra_operator.testing.fakeapi.standins.nodes import selects
from dra_operator.testing.fakeapi.standins.resources import (
    CLAIMS,
    NODES,
    PODS,
    claims_of,
    reserved_for,
)

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Change, Record

_STATUS = "status"


class Kubelet(StandIn):
    """All kubelets of the cluster."""

    name = "kubelet"
    watches = (NODES, PODS, CLAIMS)

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._pods = pods_by_claim(self.store)

    def changed(self, resource: Resource, change: Change) -> None:
        """Touch the node or pod, or the pods of a claim."""
        namespace, name = meta(change.record.obj).get("namespace", ""), meta(change.record.obj)["name"]
        if resource != CLAIMS:
            self.touch(resource, (namespace, name))
            return
        for key in self._pods.keys(namespace, name):
            self.touch(PODS, key)

    def look(self, resource: Resource, key: Key) -> None:
        """Sync one node or one bound pod."""
        record = self.store.get(resource, key)
        if record is None:
            return
        if resource == NODES:
            self._ready(record.obj, key)
        elif dig(record.obj, "spec", "nodeName"):
            self._sync(record, key)

    def _ready(self, node: Obj, key: Key) -> None:
        if any(condition.get("type") == "Ready" for condition in dicts(dig(node, "status", "conditions"))):
            return
        new = copied(node)
        conditions = new.setdefault("status", {}).setdefault("conditions", [])
        now = timestamp(self.machinery.clock())
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        conditions.append({**ready, "lastHeartbeatTime": now, "lastTransitionTime": now})
        self.machinery.update(self.machinery.kinds.stored(NODES), key, new, WriteOptions(self.name, _STATUS))

    def _sync(self, record: Record, key: Key) -> None:
        pod = record.obj
        if "deletionTimestamp" in meta(pod):
            self.machinery.delete(
                self.machinery.kinds.stored(PODS), key, DeleteOptions(grace=0, uid=record.uid)
            )
        elif dig(pod, "status", "phase") == "Pending":
            trouble = self._trouble(pod)
            if trouble:
                warn(self.machinery, pod, "FailedPrepareDynamicResources", trouble, self.name)
            else:
                self._run(pod, key)

    def _trouble(self, pod: Obj) -> str:
        """Why the claims do not let the pod start; empty if they do."""
        claims = claims_of(self.store, pod)
        if claims is None:
            return "a claim of the pod does not exist, is not its own, or is being deleted"
        node = self.store.get(NODES, ("", pod["spec"]["nodeName"]))
        for claim in claims:
            name = meta(claim.obj)["name"]
            if dig(claim.obj, _STATUS, "allocation") is None:
                return f"claim {name} is not allocated"
            if not reserved_for(claim.obj, pod):
                return f"claim {name} is not reserved for the pod"
            selector = dig(claim.obj, _STATUS, "allocation", "nodeSelector")
            if selector and not (node and selects(selector, node.obj)):
                return f"claim {name} is allocated for another node"
        return ""

    def _run(self, pod: Obj, key: Key) -> None:
        new = copied(pod)
        now = timestamp(self.machinery.clock())
        status = new["status"]
        status |= {"phase": "Running", "startTime": now}
        conditions = status.setdefault("conditions", [])
        for name in ("Initialized", "ContainersReady", "Ready"):
            conditions.append(
                {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            )
        status["containerStatuses"] = [
            _running(container, now) for container in dicts(new["spec"].get("containers"))
        ]
        self.machinery.update(self.machinery.kinds.stored(PODS), key, new, WriteOptions(self.name, _STATUS))


def _running(container: Obj, now: str) -> Obj:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
