"""Lists: selectors, pages, and the resourceVersion that a watch may go on from.

Called by `http`. A paged list is one snapshot: later pages show what was there when the first was cut, as on a real server. No
I/O; watches are in `watching`.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.conversion import presented
from dra_operator.testing.fakeapi.objects import Raw, decoded, encoded
from dra_operator.testing.fakeapi.selectors import selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.store import Record, Store

_SNAPSHOTS = 64
"""Unfinished paged lists that are kept. Arbitrary: a client that comes back later gets 410, which it must handle anyway."""

_TOO_OLD = "The provided continue parameter is too old to display a consistent list result."


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    records: list[Record]
    version: int
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, object]:
        """The metav1.ListMeta."""
        found: dict[str, object] = {"resourceVersion": str(self.version)}
        if self.token:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found

    def body(self, kind: Kind) -> bytes:
        """The list as JSON; objects are not encoded again."""
        head = encoded(
            {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": self.metadata()}
        )
        return head[:-1] + b',"items":[' + b",".join(_raw(record) for record in self.records) + b"]}"


def _raw(record: Record) -> Raw:
    return record.raw


@dataclass(frozen=True, slots=True)
class _Snapshot:
    records: list[Record]
    version: int
    counted: bool


class Reader:
    """The lists of one server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[str, _Snapshot] = OrderedDict()
        self._serial = 0

    def page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Page:
        """The page that a list request asks for.

        Raises:
            StatusError: 400 (selector, limit or token does not parse), 410 (token too old), 504 (version not reached).
        """
        limit = _number(query.get("limit"), "limit")
        if query.get("continue"):
            return self._next(query["continue"], limit)
        self.require_reached(query.get("resourceVersion"))
        snapshot = self.snapshot(kind, namespace, query)
        return self._cut(snapshot, 0, limit)

    def snapshot(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> _Snapshot:
        """All selected objects as they are now."""
        selected = selection(kind, query)
        found = self._store.items(kind.resource, namespace)
        records = [presented(kind, record) for record in found]
        if not selected.trivial:
            records = [record for record in records if selected(record.obj)]
        return _Snapshot(records, self._store.version, selected.trivial)

    def require_reached(self, version: str | None) -> None:
        """Refuse a resourceVersion that this server never gave.

        Raises:
            StatusError: 400 (no number), 504.
        """
        wanted = _number(version, "resourceVersion")
        if wanted > self._store.version:
            raise failures.too_new(wanted, self._store.version)

    def forget(self) -> None:
        """Drop all unfinished lists: their next page is 410."""
        self._snapshots.clear()

    def _next(self, token: str, limit: int) -> Page:
        name, start = _parsed_token(token)
        snapshot = self._snapshots.get(name)
        if snapshot is None:
            raise failures.expired(_TOO_OLD)
        return self._cut(snapshot, start, limit, name)

    def _cut(self, snapshot: _Snapshot, start: int, limit: int, name: str = "") -> Page:
        records = snapshot.records[start : start + limit] if limit else snapshot.records[start:]
        left = len(snapshot.records) - start - len(records)
        if not left:
            return Page(records, snapshot.version)
        name = name or self._keep(snapshot)
        token = base64.urlsafe_b64encode(encoded({"list": name, "start": start + len(records)})).decode()
        return Page(records, snapshot.version, token, left if snapshot.counted else None)

    def _keep(self, snapshot: _Snapshot) -> str:
        self._serial += 1
        name = str(self._serial)
        self._snapshots[name] = snapshot
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return name


def _number(text: str | None, field: str) -> int:
    if not text:
        return 0
    if not text.isdigit():
        why = f'{field}: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise failures.bad_request(f"invalid resource version: {why}")
    return int(text)


def _parsed_token(token: str) -> tuple[str, int]:
    try:
        found = decoded(base64.urlsafe_b64decode(token))
        return str(found["list"]), int(found["start"])
    except (binascii.Error, UnicodeDecodeError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise failures.bad_request("continue key is not valid") from None
