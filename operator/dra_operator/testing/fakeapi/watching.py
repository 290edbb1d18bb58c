"""Watches: what one watcher is sent, and when.

Called by `http`, which owns the connection. A watcher reads the history of its resource from where it stands; if it falls so far
behind that history was forgotten, its stream ends without a word, as on a real server. No HTTP here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.conversion import presented
from dra_operator.testing.fakeapi.objects import Obj, encoded, meta
from dra_operator.testing.fakeapi.reading import Reader
from dra_operator.testing.fakeapi.selectors import Selection, selection
from dra_operator.validation.checks import forbidden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from dra_operator.testing.fakeapi.failures import StatusError
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.store import Change, Record, Store

BOOKMARK_SECONDS = 60.0
"""About how often a real server sends a bookmark."""

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event: type, and the object or the text of an object."""

    type: str
    record: Record | None
    obj: Obj | None = None

    def line(self) -> bytes:
        """The event as the stream carries it."""
        body = self.record.raw if self.record is not None else encoded(self.obj)
        return b'{"type":"' + self.type.encode() + b'","object":' + body + b"}\n"

    @property
    def shown(self) -> Obj:
        """The object."""
        return self.record.obj if self.record is not None else self.obj or {}


def error_event(error: StatusError) -> WatchEvent:
    """The last event of a watch that cannot go on."""
    return WatchEvent("ERROR", None, error.status())


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch asks for."""

    kind: Kind
    namespace: str
    selected: Selection
    version: int
    from_start: bool
    bookmarks: bool
    initial_end: bool
    timeout: float

    @classmethod
    def parsed(cls, kind: Kind, namespace: str, query: Mapping[str, str]) -> WatchRequest:
        """The request in a query.

        Raises:
            StatusError: 400 (selector or version does not parse), 422 (sendInitialEvents without a version match).
        """
        text = query.get("resourceVersion", "")
        if text and not text.isdigit():
            why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            raise failures.StatusError(500, "", why)
        bookmarks = _true(query, "allowWatchBookmarks")
        initial = _true(query, "sendInitialEvents")
        _check_initial(query)
        return cls(
            kind=kind,
            namespace=namespace,
            selected=selection(kind, query),
            version=int(text or 0),
            from_start=initial or text in ("", "0"),
            bookmarks=bookmarks,
            initial_end=initial and bookmarks,
            timeout=float(query.get("timeoutSeconds") or 0),
        )


def _true(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _check_initial(query: Mapping[str, str]) -> None:
    if "sendInitialEvents" in query and query.get("resourceVersionMatch") != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        about = failures.About("meta.k8s.io", "ListOptions")
        raise failures.invalid(about, [forbidden("resourceVersionMatch", detail)])


class Watcher:
    """One watch: an asynchronous sequence of events until its time is up."""

    def __init__(
        self, store: Store, request: WatchRequest, bookmark_seconds: float = BOOKMARK_SECONDS
    ) -> None:
        self._store = store
        self._request = request
        self._bookmark_seconds = bookmark_seconds
        self._version = request.version
        self._news = asyncio.Event()
        self.ended = False

    def end(self) -> None:
        """Finish the stream as soon as the watcher looks."""
        self.ended = True
        self._news.set()

    async def events(self) -> AsyncIterator[list[WatchEvent]]:
        """Batches of events; the caller sends each batch at once. Ends at the time-out or after `end`.

        Raises:
            StatusError: 410 where history was forgotten before the first look; later the stream just ends.
        """
        unlisten = self._store.listen(self._wake, self._request.kind.resource)
        try:
            yield [*self._initial()]
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self._request.timeout if self._request.timeout else None
            while not self.ended:
                if self._lost():
                    return
                if batch := self._pending():
                    yield batch
                    continue
                if not await self._wait(deadline):
                    yield self._bookmark()
                    if deadline is not None and loop.time() >= deadline:
                        return
        finally:
            unlisten()

    def _wake(self, _change: Change) -> None:
        self._news.set()

    def _lost(self) -> bool:
        return self._version < self._store.history(self._request.kind.resource).forgotten

    async def _wait(self, deadline: float | None) -> bool:
        """Wait for news; False if it is time for a bookmark or for the end."""
        loop = asyncio.get_running_loop()
        patience = self._bookmark_seconds
        if deadline is not None:
            patience = min(patience, max(deadline - loop.time(), 0))
        try:
            await asyncio.wait_for(self._news.wait(), patience)
        except TimeoutError:
            return False
        return True

    def _initial(self) -> Iterator[WatchEvent]:
        """What is there already (`from_start`), or a check that the position is still known."""
        request = self._request
        if not request.from_start:
            self._store.history(request.kind.resource).since(request.version)
            return
        snapshot = Reader(self._store).snapshot(request.kind, request.namespace, {})
        self._version = snapshot.version
        for record in snapshot.records:
            if request.selected(record.obj):
                yield WatchEvent("ADDED", record)
        if request.initial_end:
            yield self._bookmark_event(_INITIAL_END)

    def _pending(self) -> list[WatchEvent]:
        self._news.clear()
        changes = self._store.history(self._request.kind.resource).since(self._version)
        self._version = max(
            self._version, self._store.version
        )  # a position of the future hears nothing until then
        return [event for change in changes if (event := self._seen(change)) is not None]

    def _seen(self, change: Change) -> WatchEvent | None:
        """The change as this watcher sees it: leaving the selection is a deletion, entering it an addition."""
        request = self._request
        metadata = meta(change.record.obj)
        if request.namespace and metadata.get("namespace") != request.namespace:
            return None
        record = presented(request.kind, change.record)
        if request.selected.trivial:
            return WatchEvent(change.type, record)
        now = change.type != "DELETED" and request.selected(record.obj)
        before = change.previous is not None and request.selected(
            presented(request.kind, change.previous).obj
        )
        if not now and not before:
            return None
        return WatchEvent("MODIFIED" if now and before else "ADDED" if now else "DELETED", record)

    def _bookmark(self) -> list[WatchEvent]:
        if not self._news.is_set():
            self._version = max(self._version, self._store.version)
        return [self._bookmark_event()] if self._request.bookmarks else []

    def _bookmark_event(self, annotations: Mapping[str, str] | None = None) -> WatchEvent:
        metadata: Obj = {"resourceVersion": str(self._version)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        kind = self._request.kind
        return WatchEvent(
            "BOOKMARK", None, {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        )
