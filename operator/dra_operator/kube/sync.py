"""The sync guard of kinds that Kopf feeds: it knows when they are complete, and finds what Kopf missed.

Kopf does not say when its initial list is done, and never tells of objects that were deleted while its watch was broken. So each
such kind is listed by ourselves, at start and then periodically, and the whole list goes to the sink, whose `replace` respects
versions: what it has seen later than the list stays as it is, what the list lacks is gone. After the first one the kind
is synced. Run as a supervised task; decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dra_operator.errors import ApiError, ApiNotFound, ApiNotServed, ApiUnauthorized, ApiWentBack
from dra_operator.logfields import News
from dra_operator.model import metadata_of

from .discovery import discover
from .listing import PAGE, Listing, check_order, list_all
from .timing import REAL, Retries, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dra_operator.model import Value

    from .api import Api
    from .feeds import Sink
    from .kinds import Kind

    Known = Callable[[str], Iterable[Value]]

_log = logging.getLogger(__name__)

SWEEP_SECONDS = 300.0
"""Between two sweeps. Arbitrary: a device that a vanished claim seems to hold is idle for that long at worst."""


EARLY_SWEEPS = (5.0, 30.0)
"""The first sweeps come sooner: what is deleted between our first list and Kopf's own first list is told by nobody."""

GAP_SECONDS = 1.0
"""Kopf lists a kind anew: once it has said nothing more of that list for so long, a sweep finds what went while it did not watch."""


class SyncGuard:
    """Lists Kopf-fed kinds at start and from time to time.

    Args:
        api: the server.
        kinds: that Kopf feeds.
        sink: gets whole lists; must ignore what is older than it knows.
        known: the objects of a kind that the sink holds; needed to keep the last good version of an unreadable object.
        interval: seconds between sweeps of a kind.
        timing: clock, sleep and dice.

    Attributes:
        synced: one event a kind, set once its first list has reached the sink.
        swept: monotonic time of the last sweep a kind.
        troubles: why a kind's last sweep failed, in the server's words; kinds without trouble are not in it.
        alive_at: monotonic time at which a kind's sweeping did something last, well or not, or is going to end a pause.
    """

    def __init__(
        self,
        api: Api,
        kinds: Sequence[Kind],
        sink: Sink,
        known: Known,
        interval: float = SWEEP_SECONDS,
        timing: Timing = REAL,
    ) -> None:
        self.synced = {kind.name: asyncio.Event() for kind in kinds}
        self.swept: dict[str, float] = {}
        self.troubles: dict[str, str] = {}
        self.alive_at = {kind.name: timing.monotonic() for kind in kinds}
        self._api = api
        self._kinds = tuple(kinds)
        self._sink = sink
        self._known = known
        self._interval = interval
        self._news = News()
        self._timing = timing
        self._versions: dict[str, str] = {}
        self._gaps = {kind.name: asyncio.Event() for kind in kinds}

    def relisted(self, kind: str) -> None:
        """Kopf brings an object of a list: its watch had a gap, and of what was deleted meanwhile nobody tells. A sweep follows soon."""
        self._gaps[kind].set()

    async def run(self) -> None:
        """Sweep until cancelled.

        Raises:
            ExceptionGroup: of ApiNotServed: a kind that the operator cannot do without has gone; of ApiWentBack: the server's state is older
                than what it has shown.
        """
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                group.create_task(self._keep(kind), name=f"sync-{kind.plural}")

    async def until_synced(self) -> None:
        """Wait until every kind has been listed once; `run` must be running."""
        for event in self.synced.values():
            await event.wait()

    async def sweep(self, kind: Kind) -> None:
        """List a kind once and hand it over.

        Raises:
            ApiError: the list could not be had, or is older than the one before; the sink has not been touched.
        """
        listing = await list_all(self._api, kind, page=PAGE, heard=lambda: self._sign_of_life(kind))
        check_order(kind, self._versions.get(kind.name, ""), listing.version)
        self._versions[kind.name] = listing.version
        self._sink.replace(kind.name, self._with_unreadable(kind, listing), listing.version)
        self.swept[kind.name] = self._timing.monotonic()
        self.troubles.pop(kind.name, None)
        if self._news.forget(kind.name):
            _log.info("list of %s succeeds again", kind.plural)
        if kind.name in self.synced:
            self.synced[kind.name].set()

    async def freshen(self, kinds: Iterable[Kind]) -> None:
        """List each of these kinds, whoever feeds it, until that has succeeded: what was written before the call is known afterwards."""
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self._until_swept(kind), name=f"fresh-{kind.plural}")

    async def _until_swept(self, kind: Kind) -> None:
        retries = Retries(self._timing)
        while True:
            try:
                await self.sweep(kind)
            except ApiError as error:
                self._failed(kind, error)
                await self._timing.sleep(retries.next_delay(error.retry_after))
            else:
                return

    def _with_unreadable(self, kind: Kind, listing: Listing) -> list[Value]:
        """The list, with the last good versions of objects that cannot be read now."""
        if not listing.rejected:
            return listing.objects
        for rejected in listing.rejected:
            self._sink.reject(kind.name, rejected.error, rejected.metadata, rejected.raw)
        unreadable = {rejected.metadata.uid for rejected in listing.rejected}
        kept = [obj for obj in self._known(kind.name) if metadata_of(obj).uid in unreadable]
        return listing.objects + kept

    def _sign_of_life(self, kind: Kind) -> None:
        if kind.name in self.alive_at:  # else a feed of ours gives it
            self.alive_at[kind.name] = self._timing.monotonic()

    async def _keep(self, kind: Kind) -> None:
        retries, early = Retries(self._timing), iter(EARLY_SWEEPS)
        while True:
            self._sign_of_life(kind)
            try:
                await self.sweep(kind)
            except ApiWentBack:
                raise
            except ApiError as error:
                self._failed(kind, error)
                if isinstance(error, ApiNotFound):
                    await self._make_sure_that_it_is_served(kind)
                await self._pause(kind, retries.next_delay(error.retry_after))
                continue
            retries.reset()
            # spread out, so that the kinds' lists do not fall together for ever
            pause = min(self._interval, next(early, self._interval))
            await self._pause(kind, pause * self._timing.uniform(0.9, 1.1))

    def _failed(self, kind: Kind, error: ApiError) -> None:
        self.troubles[kind.name] = str(error)
        # That we are not let in is told once for all kinds (`acceptance`).
        is_new = not isinstance(error, ApiUnauthorized) and self._news.is_new(kind.name, type(error).__name__)
        level = logging.WARNING if is_new else logging.DEBUG
        _log.log(level, "list of %s fails, and is tried again: %s", kind.plural, error)

    async def _make_sure_that_it_is_served(self, kind: Kind) -> None:
        """A list was not found: end us if the kind has gone for good. An API server that starts finds nothing either, and says little more.

        Raises:
            ApiNotServed: it has gone, and the operator cannot do without it.
        """
        try:
            await discover(self._api, [kind])
        except ApiNotServed:
            raise
        except ApiError as error:
            _log.debug("whether %s are still served is not known: %s", kind.plural, error)

    async def _pause(self, kind: Kind, seconds: float) -> None:
        """Sleep, but not for long after a gap."""
        self.alive_at[kind.name] = self._timing.monotonic() + seconds
        gap = self._gaps[kind.name]
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(self._sleep(seconds)), group.create_task(_happened(gap))]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        while gap.is_set():
            gap.clear()
            await self._timing.sleep(GAP_SECONDS)

    async def _sleep(self, seconds: float) -> None:
        await self._timing.sleep(seconds)


async def _happened(event: asyncio.Event) -> None:
    await event.wait()
