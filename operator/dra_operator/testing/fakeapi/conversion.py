"""One stored form, several served versions: events in two groups, custom kinds in several versions.

Called by `machinery` (into storage) and by everything that shows objects. Custom kinds convert by renaming alone, as with the
conversion strategy None of real definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.kinds import EVENTS, Kind
from dra_operator.testing.fakeapi.objects import Obj, encoded
from dra_operator.testing.fakeapi.store import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

_TO_CORE: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE: Mapping[str, str] = {core: new for new, core in _TO_CORE.items()}


def _renamed(obj: Obj, names: Mapping[str, str]) -> Obj:
    return {names.get(field, field): value for field, value in obj.items()}


def to_storage(kind: Kind, obj: Obj, stored: Kind) -> Obj:
    """`obj`, written as `kind`, in the version in which it is kept."""
    if kind.resource == EVENTS and kind.group:
        obj = _renamed(obj, _TO_CORE)
    return {"kind": stored.kind, **obj, "apiVersion": stored.api_version}


def presented(kind: Kind, record: Record) -> Record:
    """A stored object as `kind`'s version shows it."""
    if record.obj.get("apiVersion") == kind.api_version:
        return record
    obj = _renamed(record.obj, _FROM_CORE) if kind.resource == EVENTS and kind.group else record.obj
    obj = {**obj, "apiVersion": kind.api_version}
    return Record(obj, encoded(obj), record.version)
