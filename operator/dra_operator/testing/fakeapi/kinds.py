"""The table of kinds that the embedded API server serves, and the registry that looks them up.

A custom resource definition adds rows at run time (`crds`); all others stand here. Nothing but facts about kinds: rules and
defaults are in their own modules, printer columns in `tables`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import About, unknown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.testing.fakeapi.objects import Obj, Resource

DRA = "resource.k8s.io"
STORAGE = "storage.k8s.io"


@dataclass(frozen=True, slots=True)
class Kind:
    """One served kind in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    keeps_status_on_create: bool = False
    returns_deleted: bool = False
    shows_empty_status: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[tuple[str, str], ...] = ()
    stored_in: Resource | None = None
    schema: Obj | None = field(default=None, compare=False, hash=False)
    columns: tuple[Obj, ...] = field(default=(), compare=False, hash=False)
    custom: bool = False

    @property
    def api_version(self) -> str:
        """`v1` or `resource.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The singular of discovery: the kind in lower case."""
        return self.kind.lower()

    @property
    def resource(self) -> Resource:
        """Where its objects are stored."""
        return self.stored_in or (self.group, self.plural)

    def plural_about(self, name: str = "", uid: str = "") -> About:
        """Details that name the plural, as not-found and conflict do."""
        return About(self.group, self.plural, name, uid)

    def kind_about(self, name: str) -> About:
        """Details that name the kind, as validation errors do."""
        return About(self.group, self.kind, name)


def _cluster(group: str, version: str, plural: str, kind: str, **facts: object) -> Kind:
    return Kind(group, version, plural, kind, namespaced=False, **facts)  # type: ignore[arg-type]  # facts are Kind's


EVENTS: Resource = ("", "events")

BUILTIN: tuple[Kind, ...] = (
    _cluster("", "v1", "namespaces", "Namespace", status=True, short_names=("ns",)),
    _cluster("", "v1", "nodes", "Node", status=True, keeps_status_on_create=True, short_names=("no",)),
    Kind(
        "", "v1", "pods", "Pod", status=True, generation=True, returns_deleted=True, short_names=("po",), categories=("all",),
        subresources=(("binding", "Binding"),),
    ),
    Kind("", "v1", "events", "Event", short_names=("ev",)),
    Kind(
        "", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",), subresources=(("token", "TokenRequest"),),
    ),
    Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "services", "Service", status=True, short_names=("svc",), categories=("all",)),
    Kind("events.k8s.io", "v1", "events", "Event", short_names=("ev",), stored_in=EVENTS),
    _cluster(DRA, "v1", "deviceclasses", "DeviceClass", generation=True, returns_deleted=True),
    _cluster(DRA, "v1", "devicetaintrules", "DeviceTaintRule", status=True, generation=True, shows_empty_status=True),
    Kind(DRA, "v1", "resourceclaims", "ResourceClaim", status=True, returns_deleted=True, shows_empty_status=True),
    Kind(DRA, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", returns_deleted=True),
    _cluster(DRA, "v1", "resourceslices", "ResourceSlice", generation=True, returns_deleted=True),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", status=True, returns_deleted=True, short_names=("pvc",)),
    _cluster("", "v1", "persistentvolumes", "PersistentVolume", status=True, returns_deleted=True, short_names=("pv",)),
    _cluster(STORAGE, "v1", "storageclasses", "StorageClass", returns_deleted=True, short_names=("sc",)),
    _cluster(STORAGE, "v1", "csinodes", "CSINode", returns_deleted=True),
    _cluster(STORAGE, "v1", "csidrivers", "CSIDriver", returns_deleted=True),
    Kind(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    _cluster(STORAGE, "v1", "volumeattachments", "VolumeAttachment", status=True, returns_deleted=True),
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    _cluster(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", status=True,
        generation=True, short_names=("crd", "crds"), categories=("api-extensions",),
    ),
    Kind("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    _cluster("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"),
    _cluster("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"),
    Kind(
        "apps", "v1", "deployments", "Deployment", status=True, generation=True, short_names=("deploy",),
        categories=("all",),
    ),
    Kind("apps", "v1", "replicasets", "ReplicaSet", status=True, generation=True, short_names=("rs",)),
    Kind("batch", "v1", "jobs", "Job", status=True, generation=True, categories=("all",)),
    _cluster(
        "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", generation=True,
        categories=("api-extensions",),
    ),
    _cluster(
        "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding",
        generation=True, categories=("api-extensions",),
    ),
    _cluster(
        "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
        generation=True, categories=("api-extensions",),
    ),
    Kind("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", status=True, generation=True, shows_empty_status=True),
    _cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", generation=True, short_names=("pc",)),
)  # fmt: skip


class Kinds:
    """The kinds served right now, looked up by path or by apiVersion and kind."""

    def __init__(self, rows: Iterable[Kind] = BUILTIN) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        for row in rows:
            self.add(row)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

    def add(self, kind: Kind) -> None:
        """Serve `kind` from now on, in place of an earlier row with the same path."""
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def remove(self, resource: Resource) -> None:
        """Serve no version of `resource` any longer."""
        for path in [path for path in self._by_path if (path[0], path[2]) == resource]:
            del self._by_path[path]

    def at(self, group: str, version: str, plural: str) -> Kind:
        """The kind of a request path.

        Raises:
            StatusError: 404, nothing is served there.
        """
        try:
            return self._by_path[group, version, plural]
        except KeyError:
            raise unknown_path() from None

    def named(self, plural: str, group: str = "") -> Kind:
        """The kind with this plural, in any version (the first that was added).

        Raises:
            StatusError: 404, nothing is served there.
        """
        for kind in self:
            if kind.plural == plural and kind.group == group:
                return kind
        raise unknown_path()

    def of(self, obj: Obj) -> Kind:
        """The kind of an object with apiVersion and kind.

        Raises:
            StatusError: 404, no such kind is served.
        """
        for kind in self:
            if kind.kind == obj.get("kind") and kind.api_version == obj.get("apiVersion"):
                return kind
        raise unknown_path()

    def stored(self, resource: Resource) -> Kind:
        """The kind in whose version objects of `resource` are stored.

        Raises:
            StatusError: 404, nothing is served there.
        """
        return self.named(resource[1], resource[0])

    def groups(self) -> dict[str, list[str]]:
        """Served versions by group, in the order of the table; the core group is empty."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found
