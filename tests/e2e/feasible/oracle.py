"""Asks the real kube-scheduler: writes a world to a control plane, starts the scheduler, reads what it says of each pod.

The scheduler is started anew for each world, once all of it is written: it reads everything before its first attempt, so no answer
can come from half a world. kube-controller-manager does not run: the world is to stay as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.harness.components import CONTROLLER_MANAGER, KWOK, SCHEDULER, Options
from tests.e2e.harness.rawapi import SteadyRawApi
from tests.e2e.harness.waiting import wait_until

from .base import NAMESPACE, TERMINATING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.e2e.harness.cluster import ControlPlane

    from .base import World
    from .extender import Extender

Object = dict[str, Any]

_DRA = "/apis/resource.k8s.io/v1"
_STORAGE = "/apis/storage.k8s.io/v1"
COLLECTIONS: dict[str, str] = {
    "DeviceClass": f"{_DRA}/deviceclasses",
    "Node": "/api/v1/nodes",
    "StorageClass": f"{_STORAGE}/storageclasses",
    "CSIDriver": f"{_STORAGE}/csidrivers",
    "CSINode": f"{_STORAGE}/csinodes",
    "CSIStorageCapacity": f"{_STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "VolumeAttachment": f"{_STORAGE}/volumeattachments",
    "PersistentVolumeClaim": f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
    "ResourceClaim": f"{_DRA}/namespaces/{NAMESPACE}/resourceclaims",
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
}
"""Where the objects of each kind are."""

READ_ONLY = {"Namespace": "/api/v1/namespaces"}
"""What is there without our doing, and stays."""

WITH_STATUS = frozenset({"PersistentVolume", "PersistentVolumeClaim", "Pod", "ResourceClaim"})
"""Kinds whose status is written after their creation."""


def plane_options(extender: Extender) -> Options:
    """A control plane that changes nothing of a world: it adds no taints, finalizers or tokens, and the scheduler is started later."""
    return Options(
        without=frozenset({CONTROLLER_MANAGER, KWOK, SCHEDULER}),
        apiserver_flags=(
            "--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection,ServiceAccount",
        ),
        scheduler_extender=extender.url,
    )


@dataclass(frozen=True)
class Answers:
    """What kube-scheduler said of the pods of a world.

    Attributes:
        objects: all objects as the API server had them when the scheduler started, by kind.
        passed: names of the nodes that passed, by name of the pod.
        messages: the condition PodScheduled, by name of the pod.
    """

    objects: Mapping[str, Sequence[Object]]
    passed: Mapping[str, frozenset[str]]
    messages: Mapping[str, str]


class Oracle:
    """kube-scheduler of a control plane that was started with `plane_options`."""

    def __init__(self, plane: ControlPlane, extender: Extender) -> None:
        self._plane = plane
        self._extender = extender
        self._api = SteadyRawApi(plane.kubeconfig)

    def ask(self, world: World) -> Answers:
        """The answers for a world, of which nothing is left afterwards.

        Raises:
            NotInTimeError: the scheduler did not get through the pods.
            RawApiError: the API server refused an object: the world is wrong.
        """
        try:
            uids = {item["metadata"]["name"]: self._write(item) for item in (*world.objects, *world.pods)}
            for item in world.owned:
                for owner in item["metadata"]["ownerReferences"]:
                    owner["uid"] = uids[owner["name"]]
                self._write(item)
            objects = {kind: self._items(path) for kind, path in (READ_ONLY | COLLECTIONS).items()}
            self._plane.start_component(SCHEDULER)
            names = {item["metadata"]["name"] for item in world.pods}
            judged = wait_until(
                self._judged, f"a word on {len(names)} pods", accept=lambda found: names <= {*found}
            )
        finally:
            self._plane.kill_component(SCHEDULER)
            self._clear()
        passed = {name: self._extender.passed(judged[name].uid) for name in names}
        return Answers(objects, passed, {name: judged[name].message for name in names})

    def close(self) -> None:
        """Ends its connection."""
        self._api.close()

    def _write(self, item: Object) -> str:
        """Creates an object as it is, status and all. Returns: its uid."""
        metadata = item["metadata"]
        created = self._api.post(_collection(item), item)
        path = f"{_collection(item)}/{metadata['name']}"
        if item["kind"] in WITH_STATUS and item.get("status"):
            self._api.patch(f"{path}/status", {"status": item["status"]})
        if TERMINATING in metadata.get("annotations", {}):
            self._api.delete(path)
        return str(created["metadata"]["uid"])

    def _items(self, path: str) -> list[Object]:
        found: list[Object] = self._api.get(path)["items"]
        return found

    def _judged(self) -> dict[str, _Judged]:
        """The pods that kube-scheduler has tried; one that it failed on is not, and is tried again."""
        found = {}
        for item in self._items(COLLECTIONS["Pod"]):
            for condition in item.get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                    metadata = item["metadata"]
                    found[metadata["name"]] = _Judged(metadata["uid"], condition["message"])
        return found

    def _clear(self) -> None:
        """Deletes everything; what a finalizer holds is let go first."""
        for path in reversed(tuple(COLLECTIONS.values())):
            for item in self._items(path):
                if item["metadata"].get("finalizers"):
                    self._api.patch(f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
            self._api.delete(path, {"gracePeriodSeconds": 0})


class _Judged(NamedTuple):
    uid: str
    message: str


def _collection(item: Object) -> str:
    return COLLECTIONS[item["kind"]]
