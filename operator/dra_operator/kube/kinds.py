"""The kinds that the operator speaks of on the wire: where they are served, and which feed brings them.

One table for feeds, writer, discovery and sync guard; moving a kind from one feed to the other is one word here (and a
decision record). Facts only: no I/O, no decoding (that is `model`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

Feed = Literal["stream", "kopf", "none"]
"""`stream`: our own list and watch. `kopf`: `kopf.on.event` and the sync guard. `none`: only ever written."""

DRA_GROUP = "resource.k8s.io"
STORAGE_GROUP = "storage.k8s.io"

_OLD_CONTROL_PLANE = (
    "Kubernetes 1.34 and later serve it by default; before that, start kube-apiserver with "
    "--feature-gates=DynamicResourceAllocation=true --runtime-config=resource.k8s.io/v1=true if it knows that version"
)
_NO_CRD = "install the custom resource definition first: kubectl apply -k crds"
_NO_GROUPS = (
    "claims that pods share through their PodGroup are not made or recognised; where they are wanted, start Kubernetes 1.37 with "
    "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true --runtime-config=scheduling.k8s.io/v1beta1=true"
)
_NO_RULES = (
    "ownership of pools is not enforced; start kube-apiserver with "
    "--feature-gates=DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1=true, or use Kubernetes 1.37"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in the version that we speak, or speak best.

    Attributes:
        name: Kubernetes' kind, e.g. `ResourceClaim`.
        group: API group; empty for core.
        version: served version, e.g. `v1`.
        plural: the word in paths.
        namespaced: whether paths carry a namespace.
        feed: which feed brings it.
        required: whether the operator cannot start without it.
        remedy: what to do when it is not served.
        older: other versions that are spoken, best first, where the server lacks `version`.
        expected: whether it is worth a warning that the server lacks it.
    """

    name: str
    group: str
    version: str
    plural: str
    namespaced: bool = True
    feed: Feed = "none"
    required: bool = True
    remedy: str = "is this a Kubernetes API server?"
    older: tuple[str, ...] = ()
    expected: bool = True

    @property
    def api_version(self) -> str:
        """`v1` or `resource.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of a collection, an object, or a subresource of it.

        Args:
            namespace: empty for cluster-scoped kinds, and for all namespaces.
            name: empty for the collection.
            subresource: e.g. `status`; only with a name.
        """
        scope = ["namespaces", namespace] if namespace and self.namespaced else []
        parts = [*scope, self.plural, *filter(None, (name, subresource))]
        return "/".join((self.root, *(quote(part, safe="") for part in parts)))

    def __str__(self) -> str:
        return f"{self.api_version} {self.name}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("Pod", "", "v1", "pods", feed="stream"),
        Kind("Node", "", "v1", "nodes", namespaced=False, feed="stream"),
        Kind("Namespace", "", "v1", "namespaces", namespaced=False, feed="stream"),
        Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", feed="stream"),
        Kind("PersistentVolume", "", "v1", "persistentvolumes", namespaced=False, feed="stream"),
        Kind("StorageClass", STORAGE_GROUP, "v1", "storageclasses", namespaced=False, feed="stream"),
        Kind("CSINode", STORAGE_GROUP, "v1", "csinodes", namespaced=False, feed="stream"),
        Kind("CSIDriver", STORAGE_GROUP, "v1", "csidrivers", namespaced=False, feed="stream"),
        Kind("CSIStorageCapacity", STORAGE_GROUP, "v1", "csistoragecapacities", feed="stream"),
        Kind("VolumeAttachment", STORAGE_GROUP, "v1", "volumeattachments", namespaced=False, feed="stream"),
        Kind(
            "ResourceSlice",
            DRA_GROUP,
            "v1",
            "resourceslices",
            namespaced=False,
            feed="stream",
            remedy=_OLD_CONTROL_PLANE,
        ),
        Kind("ResourceClaim", DRA_GROUP, "v1", "resourceclaims", feed="kopf", remedy=_OLD_CONTROL_PLANE),
        Kind(
            "ResourceClaimTemplate",
            DRA_GROUP,
            "v1",
            "resourceclaimtemplates",
            feed="kopf",
            remedy=_OLD_CONTROL_PLANE,
        ),
        Kind(
            "DeviceClass",
            DRA_GROUP,
            "v1",
            "deviceclasses",
            namespaced=False,
            feed="kopf",
            remedy=_OLD_CONTROL_PLANE,
        ),
        Kind(
            "DeviceTaintRule",
            DRA_GROUP,
            "v1",
            "devicetaintrules",
            namespaced=False,
            feed="kopf",
            required=False,
            remedy=_NO_RULES,
            older=("v1beta2", "v1alpha3"),
        ),
        Kind(
            "PodGroup",
            "scheduling.k8s.io",
            "v1",
            "podgroups",
            feed="stream",
            required=False,
            remedy=_NO_GROUPS,
            older=("v1beta1", "v1alpha3", "v1alpha2"),
            expected=False,
        ),
        Kind(
            "AllocationPolicy",
            "dra-operator.io",
            "v1alpha1",
            "allocationpolicies",
            namespaced=False,
            feed="kopf",
            remedy=_NO_CRD,
        ),
        Kind("Event", "", "v1", "events"),
        Kind("Lease", "coordination.k8s.io", "v1", "leases"),
    )
}
"""Kind by its name."""


OTHER = "other"
"""The resource of requests that are about none of our kinds: discovery, the server's version."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PLURALS = frozenset(kind.plural for kind in KINDS.values())


def describe(method: str, path: str) -> tuple[str, str]:
    """Kubernetes' verb and the resource (`resourceclaims/status`) of a request; `OTHER` for what is none of our kinds.

    Few and fixed, whatever the path: they become labels of metrics.
    """
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"]:
        rest = rest[2:]
    verb = _VERBS.get(method, "get")
    if not rest or rest[0] not in _PLURALS:
        return verb, OTHER
    if method == "GET" and len(rest) == 1:
        verb = "list"
    return verb, "/".join((rest[0], *rest[2:3]))


def fed_by(feed: Feed) -> tuple[Kind, ...]:
    """The kinds that a feed brings, in the order of the table."""
    return tuple(kind for kind in KINDS.values() if kind.feed == feed)
