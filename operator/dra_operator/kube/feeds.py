"""Stream feeds: list, then watch for ever, into a sink that never awaits (the cluster model).

One `StreamFeed` a kind, run as a supervised task. Whatever the server or the network does, a feed comes back to a sink that
equals the server's state: a lost connection goes on from the last resourceVersion (bookmarks included), anything else lists
again, and the sink's `replace` finds what was deleted meanwhile. It never gives up and never decides anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol

import msgspec

from dra_operator.errors import (
    ApiError,
    ApiGone,
    ApiNotFound,
    ApiNotServed,
    ApiThrottled,
    ApiUnauthorized,
    ApiUnavailable,
    ApiWentBack,
    InvalidObject,
)
from dra_operator.logfields import News
from dra_operator.model import metadata_of

from .discovery import still_served
from .failures import in_stream
from .listing import (
    PAGE,
    Listing,
    RawMeta,
    Rejected,
    check_order,
    decode_object,
    list_all,
    newest,
    read_metadata,
)
from .timing import REAL, Retries, Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.model import Value

    from .api import Api
    from .kinds import Kind

_log = logging.getLogger(__name__)


class Sink(Protocol):
    """Where a feed pours its objects; the cluster model, or something that passes on to it."""

    def replace(self, kind: str, objects: Iterable[Value], version: str, /) -> None:
        """All objects of a kind that there were at a version: what is missing, and not newer than that, has been deleted."""

    def apply(self, event: str, obj: Value, /) -> None:
        """One change: `ADDED`, `MODIFIED` or `DELETED`."""

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta, raw: bytes, /) -> None:
        """An object that cannot be decoded, as the server sent it; its last good version, if any, stays."""


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How a feed behaves; the defaults are for production.

    Attributes:
        selector: query parameters that narrow the kind down (`labelSelector`, `fieldSelector`).
        page: objects a page.
        inactivity: seconds without a byte after which a watch is dead. API servers send a bookmark about once a minute.
        server_timeout: bounds of the watch's length in seconds, asked of the server; chosen at random, so that a hundred
            watches do not end together. client-go's figures.
        relist_after: failures in a row after which a position is given up although the server did not say that it is gone.
    """

    selector: Mapping[str, str] = field(default_factory=dict)
    page: int = PAGE
    inactivity: float = 70.0
    server_timeout: tuple[float, float] = (300.0, 600.0)
    relist_after: int = 5


DEFAULTS = FeedOptions()

LIVED_SECONDS = 30.0
"""A watch that lived that long was a good one, even without an event: the next one is opened at once."""

RESTART_REASONS = ("ended", "expired", "unavailable", "refused")
"""Why watches end; `ended` is the ordinary end after some minutes."""

EVERYDAY = {"expired": 4, "unavailable": 1, "refused": 0}
"""Failures in a row that are no news: a connection breaks now and then, and a quiet kind's position expires with every compaction."""

OnRestart = Callable[[str, str], None]
"""Hears the kind and the reason when a watch was given up; the metrics."""


def unheard(kind: str, reason: str) -> None:
    """Nobody counts restarts."""


class WatchLine(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


_line = msgspec.json.Decoder(WatchLine)


class StreamFeed:
    """Keeps a sink equal to the server's objects of one kind.

    Args:
        api: the server.
        kind: one that the model knows.
        sink: gets the objects.
        options: how it behaves.
        timing: clock, sleep and dice.
        on_restart: hears of every watch that was given up.

    Attributes:
        synced: set once the first list has reached the sink.
        last_heard: monotonic time of the last byte that the server sent for this kind.
        alive_at: monotonic time at which the feed did something last, well or not, or is going to end a pause.
        restarts: how often a watch was given up, by reason.
        trouble: why the server is not heard, in its words; empty while it is.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        sink: Sink,
        options: FeedOptions = DEFAULTS,
        timing: Timing = REAL,
        on_restart: OnRestart = unheard,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self.last_heard = self.alive_at = timing.monotonic()
        self.restarts: Counter[str] = Counter()
        self.trouble = ""
        self._api = api
        self._sink = sink
        self._options = options
        self._timing = timing
        self._on_restart = on_restart
        self._retries = Retries(timing)
        self._opened_at = timing.monotonic()
        self._version = ""
        self._newest = ""
        """The last position, also when it is good no more."""
        self._expired_lists = 0
        self._news = News()
        self._failures = 0
        """In a row; `_retries` also counts watches that ended at once, which is no failure."""
        self._known: dict[str, Value] = {}
        """The last good version by uid: what `replace` gets in the place of an object that cannot be decoded."""

    @property
    def age(self) -> float:
        """Seconds since the server was heard."""
        return self._timing.monotonic() - self.last_heard

    async def run(self) -> NoReturn:
        """Feed the sink until cancelled. Besides, raises what the sink raises (a bug).

        Raises:
            ApiNotServed: the kind was served when this began, and is no longer.
            ApiWentBack: the server's state is older than what it has shown.
        """
        while True:
            self.alive_at = self._timing.monotonic()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ApiWentBack:
                raise
            except ApiError as error:
                if isinstance(error, ApiNotFound):
                    await self._make_sure_that_it_is_served()
                await self._recover(error)

    async def _make_sure_that_it_is_served(self) -> None:
        try:
            await still_served(self._api, self.kind)
        except ApiNotServed:
            raise
        except ApiError as error:
            _log.debug("whether %s are still served is not known: %s", self.kind.plural, error)

    async def _list(self) -> None:
        # A list that keeps expiring between its pages is asked for in one piece.
        page = self._options.page if self._expired_lists < 2 else 0  # noqa: PLR2004  # twice is no accident
        try:
            listing = await list_all(
                self._api, self.kind, selector=self._options.selector, page=page, heard=self._heard
            )
        except ApiGone:
            self._expired_lists += 1
            raise
        self._expired_lists = 0
        check_order(self.kind, self._newest, listing.version)
        self._replace(listing)
        self._advance(listing.version)
        self.synced.set()

    def _replace(self, listing: Listing) -> None:
        known = {metadata_of(obj).uid: obj for obj in listing.objects}
        for rejected in listing.rejected:
            self._sink.reject(self.kind.name, rejected.error, rejected.metadata, rejected.raw)
            previous = self._known.get(rejected.metadata.uid)
            if previous is not None:
                known[rejected.metadata.uid] = previous
        self._known = known
        self._sink.replace(self.kind.name, list(known.values()), listing.version)

    async def _watch(self) -> None:
        """One watch, until the server ends it. A server that does so at once, without a word, is given time."""
        self._opened_at = self._timing.monotonic()
        lines = self._api.stream(self.kind.path(), self._query(), inactivity=self._options.inactivity)
        events = 0
        async with contextlib.aclosing(lines):
            async for line in lines:
                self._heard()
                if line:
                    self._take(line)
                    self._is_well()
                    events += 1
        self._count("ended")
        if not events and not self._has_lived():
            await self._retries.pause()

    def _is_well(self) -> None:
        """A line that could be read: whatever went wrong before is over."""
        self._retries.reset()
        self._failures = 0
        if self._news.forget(self.kind.name):
            _log.info("watch of %s: the server is heard again", self.kind.plural)

    def _has_lived(self) -> bool:
        return self._timing.monotonic() - self._opened_at >= LIVED_SECONDS

    def _query(self) -> dict[str, str]:
        return {
            **self._options.selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(self._timing.uniform(*self._options.server_timeout))),
        }

    def _take(self, raw: bytes) -> None:
        try:
            line = _line.decode(raw)
        except msgspec.DecodeError as error:
            raise ApiUnavailable(f"watch of {self.kind.plural}: a line cannot be read: {error}") from error
        if line.type == "ERROR":
            raise in_stream(bytes(line.object))
        if line.type == "BOOKMARK":
            self._bookmarked(read_metadata(bytes(line.object)).resource_version)
        else:
            self._apply(line)

    def _bookmarked(self, version: str) -> None:
        """A server that is behind our position brings nothing until it has caught up: a replica does soon, one that was restored may take days.

        Raises:
            ApiGone: the position is of no use; a list will tell which of the two it is.
        """
        if newest(version, self._version) != version:
            raise ApiGone(f"the server is at {version}, behind the position {self._version}", status=410)
        self._advance(version)

    def _apply(self, line: WatchLine) -> None:
        decoded = decode_object(self.kind, line.object)
        if isinstance(decoded, Rejected):
            self._reject(line.type, decoded)
            return
        if line.type == "DELETED":
            self._known.pop(metadata_of(decoded).uid, None)
        else:
            self._known[metadata_of(decoded).uid] = decoded
        self._sink.apply(line.type, decoded)
        self._advance(metadata_of(decoded).resource_version)

    def _reject(self, event: str, rejected: Rejected) -> None:
        """An unreadable change keeps the last good version, an unreadable deletion is one all the same."""
        previous = self._known.get(rejected.metadata.uid)
        if event == "DELETED":
            self._known.pop(rejected.metadata.uid, None)
            if previous is not None:
                self._sink.apply(event, previous)
        else:
            self._sink.reject(self.kind.name, rejected.error, rejected.metadata, rejected.raw)
        self._advance(rejected.metadata.resource_version)

    def _advance(self, version: str) -> None:
        self._version = version or self._version
        self._newest = newest(self._newest, self._version)

    def _heard(self) -> None:
        self.last_heard = self.alive_at = self._timing.monotonic()
        self.trouble = ""

    async def _recover(self, error: ApiError) -> None:
        """Decide whether the position is still good, and wait."""
        reason = _reason(error)
        self.trouble = str(error)
        self._count(reason)
        if self._version and self._has_lived():
            self._retries.reset()
            self._failures = 0
        self._failures += 1
        if reason != "unavailable" or self._retries.failures >= self._options.relist_after:
            self._version = ""
        self._log_failure(error, reason)
        delay = self._retries.next_delay(error.retry_after)
        self.alive_at = self._timing.monotonic() + delay
        await self._timing.sleep(delay)

    def _log_failure(self, error: ApiError, reason: str) -> None:
        """One line for what lasts, or was refused. That a watch breaks once, or its position expires, is everyday life; that we are not let
        in is told once for all kinds (`acceptance`).
        """
        matters = self._failures > EVERYDAY[reason] and not isinstance(error, ApiUnauthorized)
        is_news = matters and self._news.is_new(self.kind.name, reason)
        level = logging.WARNING if is_news else logging.DEBUG
        what_next = "going on from where it was" if self._version else "listing again"
        _log.log(level, "watch of %s: %s (%s); %s", self.kind.plural, error, reason, what_next)

    def _count(self, reason: str) -> None:
        self.restarts[reason] += 1
        self._on_restart(self.kind.name, reason)


def _reason(error: ApiError) -> str:
    """`expired`, `unavailable` (the position is still good) or `refused`."""
    if isinstance(error, ApiGone):
        return "expired"
    return "unavailable" if isinstance(error, ApiUnavailable | ApiThrottled) else "refused"
