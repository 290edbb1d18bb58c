"""The independent checker: watches all claims and pods for as long as the storm lasts, on a thread of its own, and keeps the ledger.

It reads the API only, straight from kube-apiserver, and imports nothing of the operator. When kube-apiserver restarts, its watch cache
begins anew, and what happened in between would be lost: then the checker reads the collection as it was at each version since.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.chaos.client import BROKEN, DRA, Admin, RefusedError
from tests.chaos.ledger import Ledger

if TYPE_CHECKING:
    from types import TracebackType

    from tests.chaos.client import Object
    from tests.e2e.harness.cluster import ControlPlane

PATHS = {"claims": f"{DRA}/resourceclaims", "pods": "/api/v1/pods"}
LONGEST_WALK = 4000
"""Versions of a gap that are read one by one; more are no gap but a failure of the checker."""


class Checker:
    """Use as a context manager around the storm; its ledger may be read at any time.

    Attributes:
        ledger: what it knows.
        walked: how many versions were read one by one, since a watch could not bring them.
        late: events that the server brought after a bookmark that was newer; a watch that goes on from such a bookmark misses them.
        failure: why the check is not complete; None if it is.
    """

    def __init__(self, control_plane: ControlPlane) -> None:
        self.ledger = Ledger()
        self.walked = 0
        self.late: list[str] = []
        self.failure: BaseException | None = None
        self._plane = control_plane
        self._seen = dict.fromkeys(PATHS, 0)
        self._promised = dict.fromkeys(PATHS, 0)
        self._known: dict[str, dict[str, Object]] = {kind: {} for kind in PATHS}
        self._started = threading.Barrier(2)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="chaos-checker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(timeout=60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(timeout=30)
        if self.failure is None and self._thread.is_alive():
            self.failure = TimeoutError("the checker did not come to its end")

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._check())
        except BaseException as error:  # noqa: BLE001  # told by whoever asks for the result
            self.failure = error
            self._started.abort()
        finally:
            self._loop.close()

    async def _check(self) -> None:
        async with Admin(self._plane) as admin:
            versions = {kind: await self._list(admin, kind) for kind in PATHS}
            self._started.wait(timeout=60)
            async with asyncio.TaskGroup() as group:
                follows = [group.create_task(self._follow(admin, kind, versions[kind])) for kind in PATHS]
                await self._over_or_failed(follows)
                for follow in follows:
                    follow.cancel()
        self.ledger.finish()

    async def _over_or_failed(self, follows: list[asyncio.Task[None]]) -> None:
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([over, *follows], return_when=asyncio.FIRST_COMPLETED)

    async def _list(self, admin: Admin, kind: str) -> int:
        listed = await admin.request("GET", PATHS[kind])
        for item in listed["items"]:
            self._take(kind, "ADDED", item)
        version = int(listed["metadata"]["resourceVersion"])
        self.ledger.advance(kind, version)
        return version

    def _take(self, kind: str, event: str, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if event == "DELETED":
            self._known[kind].pop(uid, None)
        else:
            self._known[kind][uid] = obj
        version = int(obj["metadata"]["resourceVersion"])
        if version <= self._promised[kind]:
            self.late.append(
                f"{event} of {kind} at {version} came after a bookmark of {self._promised[kind]}"
            )
        self._seen[kind] = max(self._seen[kind], version)
        self.ledger.take(kind, event, obj)

    async def _follow(self, admin: Admin, kind: str, version: int) -> None:
        """Watch for ever, from where the last watch ended."""
        while True:
            # Not from a bookmark: what it promises is checked, see `late`.
            version = max(version, self._seen[kind])
            try:
                await self._watch(admin, kind, version)
            except RefusedError as error:
                if error.code == 410:
                    version = await self._walk(admin, kind, version)
            except BROKEN:
                pass
            await asyncio.sleep(0.02)

    async def _watch(self, admin: Admin, kind: str, version: int) -> None:
        query = {"watch": "1", "resourceVersion": str(version), "allowWatchBookmarks": "true"}
        async for line in admin.lines(PATHS[kind], query):
            if not line:
                continue
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise RefusedError(event["object"].get("code", 500), event["object"].get("message", ""))
            version = int(event["object"]["metadata"]["resourceVersion"])
            if event["type"] == "BOOKMARK":
                self._promised[kind] = version
                self.ledger.advance(kind, version)
            else:
                self._take(kind, event["type"], event["object"])

    async def _walk(self, admin: Admin, kind: str, version: int) -> int:
        """Read the collection at every version that no watch brings any more.

        Raises:
            RuntimeError: it is too many.
        """
        newest = int(
            (await admin.request("GET", PATHS[kind], query={"limit": "1"}))["metadata"]["resourceVersion"]
        )
        if newest - version > LONGEST_WALK:
            raise RuntimeError(f"{newest - version} versions of {kind} have been missed")
        for step in range(version + 1, newest + 1):
            query = {"resourceVersion": str(step), "resourceVersionMatch": "Exact"}
            listed = await admin.request("GET", PATHS[kind], query=query)
            self.walked += 1
            self._compare(kind, listed["items"], step)
        return newest

    def _compare(self, kind: str, items: list[Object], version: int) -> None:
        """Events out of two lists that are one version apart."""
        present = {item["metadata"]["uid"]: item for item in items}
        for uid in self._known[kind].keys() - present.keys():
            gone = self._known[kind][uid]
            self._take(
                kind, "DELETED", {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(version)}}
            )
        for uid, item in present.items():
            known = self._known[kind].get(uid)
            if known is None or known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._take(kind, "MODIFIED" if known else "ADDED", item)
        self.ledger.advance(kind, version)
