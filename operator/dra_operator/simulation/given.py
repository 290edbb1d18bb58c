"""What is given: raw objects, made what an API server would have made of them, and the model of the cluster out of them.

Later objects stand for earlier ones of the same kind and name, as files are added on top of a cluster. What a file may leave out is filled in: a
namespace, a uid, requests out of limits, a priority out of its class. It must not decide anything.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cluster import Cluster, Unreadable
from dra_operator.errors import InvalidObject
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import KINDS, Node, ObjectMeta, from_object, held_allocation
from dra_operator.model.decode import without_nulls
from dra_operator.validation.claims import default_claim_spec
from dra_operator.words import listed

from .nodes import complete, derived, labelled
from .workloads import daemons_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.features import Features
    from dra_operator.model import Value

Obj = dict[str, Any]

_UIDS: Final = uuid.UUID("0f1c0bd6-52a5-4f1c-8d3e-0c7c1a1c2a51")
"""The name space of uids for objects that have none; any UUID does."""

DRA_GROUP: Final = "resource.k8s.io"
GROUPS: Final = {
    "AllocationPolicy": "dra-operator.io",
    "CSIDriver": "storage.k8s.io",
    "CSINode": "storage.k8s.io",
    "CSIStorageCapacity": "storage.k8s.io",
    "DeviceClass": DRA_GROUP,
    "DeviceTaintRule": DRA_GROUP,
    "Namespace": "",
    "Node": "",
    "PersistentVolume": "",
    "PersistentVolumeClaim": "",
    "Pod": "",
    "PodGroup": "scheduling.k8s.io",
    "PriorityClass": "scheduling.k8s.io",
    "ResourceClaim": DRA_GROUP,
    "ResourceClaimTemplate": DRA_GROUP,
    "ResourceSlice": DRA_GROUP,
    "StorageClass": "storage.k8s.io",
    "VolumeAttachment": "storage.k8s.io",
}
"""Kinds that a simulation looks at, with their API group."""

NAMESPACED: Final = frozenset(
    {
        "CSIStorageCapacity",
        "PersistentVolumeClaim",
        "Pod",
        "PodGroup",
        "ResourceClaim",
        "ResourceClaimTemplate",
    }
)

_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""

NAMED: Final = 4
"""Objects that a note names. Arbitrary."""

KEPT: Final = ("uid", "creationTimestamp", "resourceVersion")
"""Members of the metadata of an object that outlive its being applied anew."""


def made_up_uid(kind: str, namespace: str, name: str) -> str:
    """The uid of an object that has none: the same each time, so that what refers to it can be given without."""
    return str(uuid.uuid5(_UIDS, f"{kind} {'/'.join(filter(None, (namespace, name)))}"))


class Given:
    """Raw objects by kind and key, in the order in which they came.

    Args:
        namespace: see below.
        features: Kubernetes' switches as the cluster has them.

    Attributes:
        namespace: of objects that name none.
        notes: what was supposed where nothing was given, a sentence each.
    """

    def __init__(self, namespace: str = "default", features: Features = DEFAULT_1_37) -> None:
        self.features = features
        self.notes: list[str] = []
        self.namespace = namespace
        self._raw: dict[str, dict[str, Obj]] = {kind: {} for kind in GROUPS}
        self._unreadable: list[Unreadable] = []
        self._twice: dict[str, None] = {}
        self._daemons: dict[str, Obj] = {}
        self._derived: frozenset[str] = frozenset()
        self._of_nodes: list[str] | None = None

    def take(self, raw: Mapping[str, Any]) -> bool:
        """Take an object in. What it leaves out is filled in in a copy.

        Returns: whether it is of a kind that is looked at.

        Raises:
            InvalidObject: it cannot be decoded.
        """
        kind = str(raw.get("kind", ""))
        if GROUPS.get(kind) != str(raw.get("apiVersion", "")).rpartition("/")[0]:
            return False
        obj = without_nulls(raw)  # a copy; what is opaque in it is shared, and nobody changes that
        metadata = self._named(kind, obj)
        _check(kind, obj)
        key = _key(obj)
        _default(kind, obj)
        known = self._raw[kind].pop(key, None)
        if known is not None:
            _apply(obj, known)
            self._twice[f"{kind} {key}"] = None
        if "uid" not in metadata:
            metadata["uid"] = made_up_uid(kind, metadata.get("namespace", ""), metadata["name"])
        self._raw[kind][key] = obj
        return True

    def take_daemons(self, raw: Mapping[str, Any]) -> None:
        """Take a DaemonSet in: it has a pod on each node that it fits, which are known once all is taken in.

        Raises:
            InvalidObject: its template is no pod.
        """
        obj = without_nulls(raw)
        self._named("Pod", obj)
        daemons_of(obj, [Node(ObjectMeta(name="any"))])
        self._daemons[_key(obj)] = obj

    def name_uids(self, obj: Obj) -> None:
        """Fill in the uids of owners and consumers that an object names without, as in dumps that were tidied up. In place."""
        metadata = obj.get("metadata", {})
        namespace = str(metadata.get("namespace") or self.namespace)
        for owner in metadata.get("ownerReferences", ()):
            kind = str(owner.get("kind", ""))
            owner.setdefault(
                "uid", made_up_uid(kind, namespace if kind in NAMESPACED else "", str(owner.get("name", "")))
            )
        for consumer in obj.get("status", {}).get("reservedFor", ()):
            kind = {"pods": "Pod", "podgroups": "PodGroup"}.get(str(consumer.get("resource", "")), "")
            consumer.setdefault("uid", made_up_uid(kind, namespace, str(consumer.get("name", ""))))

    def hold_unreadable(self, raw: Mapping[str, Any]) -> None:
        """Take in that a claim cannot be decoded: its devices count as taken, as far as they can be told."""
        metadata = raw.get("metadata", {})
        key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        self._unreadable.append(Unreadable(key, str(metadata.get("uid", "")), None, "", held_allocation(raw)))

    def raw(self, kind: str) -> Mapping[str, Obj]:
        """The objects of a kind by key (`namespace/name`, or the bare name)."""
        return self._raw[kind]

    def nodes(self) -> Mapping[str, Obj]:
        """The Nodes by name; where none is given, those that slices name. To be called once all is taken in."""
        self._add_nodes()
        return self._raw["Node"]

    def drop(self, kind: str, key: str) -> None:
        """Have an object no more."""
        del self._raw[kind][key]

    def put(self, kind: str, raw: Obj) -> Value:
        """Have an object in a new state; gives its value."""
        self._raw[kind][_key(raw)] = raw
        return from_object(KINDS[kind], _unversioned(raw))

    def cluster(self) -> Cluster:
        """The model of the cluster, with what is left out filled in. To be called once all is taken in."""
        self.notes = []
        if self._twice:
            self.notes.append(
                f"Given more than once, and taken as given last: {listed(list(self._twice), NAMED)}"
            )
        self.notes += self._add_nodes()
        self._add_daemons()
        for pod in self._raw["Pod"].values():
            self._complete_pod(pod)
        self._complete_nodes()
        cluster = Cluster(self.features)
        for kind in KINDS:
            values = [from_object(KINDS[kind], _unversioned(raw)) for raw in self._raw[kind].values()]
            if values or kind != "PodGroup":  # a cluster without PodGroups does not serve them
                cluster.replace(kind, values)
        for found in self._unreadable:
            cluster.hold_unreadable(found)
        return cluster

    # --- filling in

    def _named(self, kind: str, obj: Obj) -> Obj:
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            metadata = obj["metadata"] = {}
        metadata.pop("managedFields", None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{len(self._raw[kind]):05}"
        if not metadata.get("name"):
            raise InvalidObject(kind, "metadata.name", "there is none: name the object")
        if kind in NAMESPACED and not metadata.get("namespace"):
            metadata["namespace"] = self.namespace
        return metadata

    def _complete_pod(self, pod: Obj) -> None:
        spec = pod.setdefault("spec", {})
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
            resources = container.get("resources", {})
            if resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
        if "priority" not in spec:
            priority = self._priority(pod, str(spec.get("priorityClassName", "")))
            if priority:
                spec["priority"] = priority

    def _priority(self, pod: Obj, name: str) -> int:
        classes = self._raw["PriorityClass"]
        if name in classes:
            return int(classes[name].get("value", 0))
        if name in _SYSTEM_PRIORITIES:
            return _SYSTEM_PRIORITIES[name]
        if name:
            metadata = pod["metadata"]
            self.notes.append(
                f"Pod {metadata['namespace']}/{metadata['name']}: spec.priorityClassName: PriorityClass {name} is not given: taken as priority 0"
            )
            return 0
        return next(
            (int(found.get("value", 0)) for found in classes.values() if found.get("globalDefault")), 0
        )

    def _add_nodes(self) -> list[str]:
        """Those that slices name, where none is given; gives what is to be said of them: where some are given, the others are told."""
        if self._of_nodes is None:
            nodes = self._raw["Node"]
            named = {node["metadata"]["name"]: node for node in derived(self._raw["ResourceSlice"].values())}
            self._of_nodes = []
            if not nodes:
                nodes.update(named)
                self._derived = frozenset(nodes)
                self._of_nodes.append(_derived_note(list(nodes)))
            elif strange := sorted(named.keys() - nodes.keys()):
                text = f"Nodes that slices name and nobody gave: {listed(strange, NAMED)}: their devices go to no pod"
                self._of_nodes.append(text)
        return self._of_nodes

    def _add_daemons(self) -> None:
        """The pods of DaemonSets."""
        nodes = [from_object(Node, _unversioned(labelled(raw))) for raw in self._raw["Node"].values()]
        for key, raw in self._daemons.items():
            pods = daemons_of(raw, nodes)
            for pod in pods:
                self.take(pod)
            names = [str(pod["metadata"]["name"]) for pod in pods]
            shown = f": {listed(names, NAMED)}" if names else ""
            self.notes.append(f"DaemonSet {key} counts as {len(pods)} pod(s), one a node that it fits{shown}")
        self._daemons = {}

    def _complete_nodes(self) -> None:
        """What kubelets report."""
        generous = complete(self._raw["Node"].values(), self._raw["Pod"].values())
        told = [name for name in generous if name not in self._derived]
        if told:
            text = (
                f"Without a status, and taken as ready and with room for any pod: Node {listed(told, NAMED)}"
            )
            self.notes.append(text)


def _derived_note(names: list[str]) -> str:
    if not names:
        return "No Node is given, and no slice names one: nothing can be placed. Add the nodes (kubectl get nodes -o yaml)"
    return f"No Node is given: those that slices name are taken as ready, without taints, and with room for any pod: {listed(names, NAMED)}"


def _default(kind: str, obj: Obj) -> None:
    """What the API server fills into requests: so many, exactly one (cp V-10)."""
    spec = obj.get("spec", {})
    if kind == "ResourceClaim":
        default_claim_spec(spec)
    elif kind == "ResourceClaimTemplate":
        default_claim_spec(spec.get("spec", {}))


def _apply(obj: Obj, known: Obj) -> None:
    """As `kubectl apply` on an object that is there: it stays the same object, on its node if it is a pod, and keeps its status unless another is given."""
    for name in KEPT:
        if name in known["metadata"]:
            obj["metadata"].setdefault(name, known["metadata"][name])
    if "status" in known:
        obj.setdefault("status", known["status"])
    if obj["kind"] == "Pod" and known.get("spec", {}).get("nodeName"):
        obj.setdefault("spec", {}).setdefault("nodeName", known["spec"]["nodeName"])


def _check(kind: str, raw: Obj) -> None:
    """Make sure that an object can be decoded.

    Raises:
        InvalidObject: it cannot.
    """
    if kind in KINDS:
        from_object(KINDS[kind], raw)
    elif type(raw.get("value", 0)) is not int:
        raise InvalidObject(f"{kind} {raw['metadata']['name']}", "value", "must be a whole number")


def _key(raw: Obj) -> str:
    """`namespace/name`, or the bare name."""
    metadata = raw["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _unversioned(raw: Obj) -> Obj:
    """The same without its version: what is supposed here is no version of the server's."""
    return {
        **raw,
        "metadata": {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"},
    }
