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
from dra_operator.testing.fakeapi.objects import Key, Raw, decoded, encoded, key_of
from dra_operator.testing.fakeapi.selectors import selection
from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import forbidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.store import Record, Store

_SNAPSHOTS = 64
"""Unfinished paged lists that are kept. Arbitrary: a client that comes back later gets 410, which it must handle anyway."""

_MATCHES = ("Exact", "NotOlderThan")


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
        items = (_raw(kind, record) for record in self.records)
        return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _raw(kind: Kind, record: Record) -> Raw:
    """An item says no kind, unless it is a custom one: the list does."""
    if kind.custom:
        return record.raw
    return encoded(
        {field: value for field, value in record.obj.items() if field not in ("kind", "apiVersion")}
    )


@dataclass(frozen=True, slots=True)
class _Token:
    """Where a paged list goes on: in a kept snapshot, or (without one) after a key, in what is there then."""

    snapshot: str
    start: int
    after: Key

    def text(self) -> str:
        fields = {"list": self.snapshot, "start": self.start, "after": self.after}
        return base64.urlsafe_b64encode(encoded(fields)).decode()


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
        _check_match(query)
        if query.get("continue"):
            if query.get("resourceVersion", "0") != "0":
                raise failures.bad_request("specifying resource version is not allowed when using continue")
            return self._next(kind, namespace, query, limit)
        self.require_reached(query.get("resourceVersion"))
        if query.get("resourceVersionMatch") == "Exact":
            return self._cut(self._at(kind, namespace, query, int(query["resourceVersion"])), 0, limit)
        return self._cut(self.snapshot(kind, namespace, query), 0, limit)

    def snapshot(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> _Snapshot:
        """All selected objects as they are now."""
        return self._selected(kind, query, self._store.items(kind.resource, namespace), self._store.version)

    def _selected(self, kind: Kind, query: Mapping[str, str], found: list[Record], version: int) -> _Snapshot:
        selected = selection(kind, query)
        records = [presented(kind, record) for record in found]
        if not selected.trivial:
            records = [record for record in records if selected(record.obj)]
        return _Snapshot(records, version, selected.trivial)

    def _at(self, kind: Kind, namespace: str, query: Mapping[str, str], version: int) -> _Snapshot:
        """All selected objects as they were at a version: what is there now, with later changes undone."""
        history = self._store.history(kind.resource)
        if version < history.forgotten:
            raise failures.list_too_old()
        found = {key_of(record.obj): record for record in self._store.items(kind.resource)}
        for change in reversed(history.since(version)):
            key = key_of(change.record.obj)
            found.pop(key, None)
            if change.previous is not None:
                found[key] = change.previous
        records = [found[key] for key in sorted(found) if namespace in ("", key[0])]
        return self._selected(kind, query, records, version)

    def require_reached(self, version: str | None) -> None:
        """Refuse a resourceVersion that this server never gave.

        Raises:
            StatusError: 400 (no number), 504.
        """
        wanted = _number(version, "resourceVersion")
        if wanted > self._store.version:
            raise failures.too_new(wanted, self._store.version)

    def forget(self, before: int | None = None) -> None:
        """Drop unfinished lists (older than `before`, if given): their next page is 410."""
        doomed = [name for name, kept in self._snapshots.items() if before is None or kept.version < before]
        for name in doomed:
            del self._snapshots[name]

    def _next(self, kind: Kind, namespace: str, query: Mapping[str, str], limit: int) -> Page:
        token = _parsed_token(query["continue"])
        if not token.snapshot:
            left = self.snapshot(kind, namespace, query)
            records = [record for record in left.records if key_of(record.obj) > token.after]
            return self._cut(_Snapshot(records, left.version, left.counted), 0, limit)
        snapshot = self._snapshots.get(token.snapshot)
        if snapshot is None:
            raise failures.token_expired(_Token("", 0, token.after).text())
        return self._cut(snapshot, token.start, limit, token.snapshot)

    def _cut(self, snapshot: _Snapshot, start: int, limit: int, name: str = "") -> Page:
        records = snapshot.records[start : start + limit] if limit else snapshot.records[start:]
        left = len(snapshot.records) - start - len(records)
        if not left:
            return Page(records, snapshot.version)
        token = _Token(name or self._keep(snapshot), start + len(records), key_of(records[-1].obj))
        return Page(records, snapshot.version, token.text(), left if snapshot.counted else None)

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


def _check_match(query: Mapping[str, str]) -> None:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    field = "resourceVersionMatch"
    causes = []
    if not match:
        return
    if not version:
        causes.append(forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
    if query.get("continue"):
        causes.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if match not in _MATCHES:
        listed = ", ".join(f'"{item}"' for item in (*_MATCHES, ""))
        text = f'Unsupported value: "{match}": supported values: {listed}'
        causes.append(Cause(field, "FieldValueNotSupported", text))
    if match == "Exact" and version == "0":
        causes.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if causes:
        raise failures.invalid(failures.About("meta.k8s.io", "ListOptions"), causes)


def _parsed_token(token: str) -> _Token:
    try:
        found = decoded(base64.urlsafe_b64decode(token))
        namespace, name = found["after"]
        return _Token(str(found["list"]), int(found["start"]), (str(namespace), str(name)))
    except (binascii.Error, UnicodeDecodeError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise failures.bad_request("continue key is not valid") from None
