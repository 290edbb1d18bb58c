"""Who owns which field: managedFields of objects, kept on every write.

Called by `machinery` after each update and by `apply`. Ownership follows the real rules where clients can see them: an update
takes the fields that it changes; an apply owns what it names, shares equal values, and conflicts on different ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.fieldsets import FieldPath, from_fields_v1, leaves, to_fields_v1
from dra_operator.testing.fakeapi.objects import Obj, meta, with_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.testing.fakeapi.kinds import Kind


@dataclass(frozen=True, slots=True)
class Manager:
    """The identity of an entry: name, operation (Apply or Update), subresource."""

    name: str
    operation: str = "Update"
    subresource: str = ""

    def described(self, api_version: str) -> str:
        """As conflict messages call it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {api_version}" if self.operation == "Update" else text


@dataclass(slots=True)
class Owned:
    """What one manager owns."""

    api_version: str
    time: str
    paths: set[FieldPath] = field(default_factory=set)


Ownership = dict[Manager, Owned]


def ownership(obj: Obj) -> Ownership:
    """The managedFields of `obj`, read."""
    found: Ownership = {}
    for entry in meta(obj).get("managedFields") or ():
        manager = Manager(
            entry.get("manager", ""), entry.get("operation", "Update"), entry.get("subresource", "")
        )
        paths = from_fields_v1(entry.get("fieldsV1") or {})
        found[manager] = Owned(entry.get("apiVersion", ""), entry.get("time", ""), paths)
    return found


def with_ownership(obj: Obj, owners: Ownership) -> Obj:
    """`obj` with `owners` as its managedFields; managers that own nothing are left out."""
    return with_metadata(obj, managedFields=[_entry(m, owned) for m, owned in owners.items() if owned.paths])


def _entry(manager: Manager, owned: Owned) -> Obj:
    entry: Obj = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version}
    entry |= {"time": owned.time, "fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(sorted(owned.paths))}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def taken(owners: Ownership, paths: Iterable[FieldPath], but: Manager) -> None:
    """Nobody but `but` owns `paths` any longer."""
    lost = set(paths)
    for manager, owned in owners.items():
        if manager != but:
            owned.paths -= lost


def updated(kind: Kind, old: Obj | None, new: Obj, manager: Manager, time: str) -> Obj:
    """`new` with the managedFields that follow when `manager` turns `old` into it by anything but apply.

    Ownership so far is what `new` carries: the live object's, or what the writer put there to hand fields over.
    """
    before = leaves(kind, old) if old else {}
    after = leaves(kind, new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = before.keys() - after.keys()
    owners = ownership(new)
    if changed:
        mine = owners.setdefault(manager, Owned(kind.api_version, time))
        mine.paths |= changed
        mine.time = time
    for owned in owners.values():
        owned.paths -= gone
    taken(owners, changed, but=manager)
    return with_ownership(new, owners)
