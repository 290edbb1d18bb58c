"""Custom resource definitions: storing one serves its kind, deleting it takes kind and objects away.

Called by `server`, which registers `CustomKinds` as a listener. Schemas default and check (`schemas`); conversion is by name only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.kinds import Kind, Kinds
from dra_operator.testing.fakeapi.objects import Obj, Resource, copied, dicts, dig, key_of, meta, timestamp
from dra_operator.testing.fakeapi.options import WriteOptions

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Change

CRDS: Resource = ("apiextensions.k8s.io", "customresourcedefinitions")


def kinds_of(crd: Obj) -> list[Kind]:
    """The served kinds of a definition, its storage version first."""
    spec = crd.get("spec") or {}
    versions = [version for version in dicts(spec.get("versions")) if version.get("served")]
    versions.sort(key=lambda version: not version.get("storage"))
    return [_kind(spec, version) for version in versions]


def _kind(spec: Obj, version: Obj) -> Kind:
    names = spec.get("names") or {}
    schema = dict(dig(version, "schema", "openAPIV3Schema") or {})
    selectable = [field["jsonPath"].lstrip(".") for field in dicts(version.get("selectableFields"))]
    if selectable:
        schema["x-selectable-fields"] = selectable
    return Kind(
        group=spec.get("group", ""),
        version=version["name"],
        plural=names.get("plural", ""),
        kind=names.get("kind", ""),
        namespaced=spec.get("scope") == "Namespaced",
        status=dig(version, "subresources", "status") is not None,
        generation=True,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        schema=schema,
        columns=tuple(dicts(version.get("additionalPrinterColumns"))),
        custom=True,
    )


class CustomKinds:
    """Keeps the registry of kinds in step with the stored definitions."""

    def __init__(self, machinery: Machinery) -> None:
        self._machinery = machinery
        self._kinds: Kinds = machinery.kinds

    def changed(self, change: Change) -> None:
        """One definition was written or deleted."""
        crd = change.record.obj
        resource = (dig(crd, "spec", "group") or "", dig(crd, "spec", "names", "plural") or "")
        if change.type == "DELETED":
            self._drop(resource)
            return
        self._kinds.remove(resource)
        for kind in kinds_of(crd):
            self._kinds.add(kind)

    def establish(self, change: Change) -> None:
        """Write the conditions that clients wait for; called after the definition's own write has ended."""
        name = meta(change.record.obj)["name"]
        live = self._machinery.store.get(CRDS, ("", name))
        if live is None or dig(live.obj, "status", "conditions"):
            return
        crd = copied(live.obj)
        crd["status"] = _status(crd, timestamp(self._machinery.clock()))
        kind = self._kinds.stored(CRDS)
        self._machinery.update(kind, ("", name), crd, WriteOptions("kube-apiserver", "status"))

    def _drop(self, resource: Resource) -> None:
        store = self._machinery.store
        for record in store.items(resource):
            store.remove(resource, key_of(record.obj))
        self._kinds.remove(resource)


def _status(crd: Obj, now: str) -> Obj:
    names = dict(dig(crd, "spec", "names") or {})
    names.setdefault("listKind", f"{names.get('kind')}List")
    names.setdefault("singular", str(names.get("kind", "")).lower())
    stored = [version["name"] for version in dicts(dig(crd, "spec", "versions")) if version.get("storage")]
    return {
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
    }


def _condition(name: str, reason: str, message: str, now: str) -> Obj:
    return {"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
