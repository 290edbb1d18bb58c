"""Several operators on one embedded server: each with its own connections, perhaps through a proxy that holds requests back.

Like pods of a Deployment, an operator that ends by itself is started again, unless the test says otherwise. They share an event loop, and so Kopf,
which was not made for that: some seconds after one of them has ended, Kopf ends all tasks of its kind in the loop, the neighbour's too, and that one ends as
well and is started again. What goes on for longer than one change of leaders is for processes (`lives`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dra_operator.app.operator import Operator
from dra_operator.kube.api import Api
from dra_operator.kube.discovery import discover
from dra_operator.settings import build

from .world import DRA, PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dra_operator.testing.fakeapi.store import Change

    from .objects import Obj
    from .world import World

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/dra-operator-leader"
GROUP = "coordination.k8s.io"
FREE: Obj = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "dra-operator-leader", "namespace": "default"},
    "spec": {"leaseDurationSeconds": 1},
}
"""A Lease that was given back: whoever finds none at all waits, as the holder of a deleted one may live."""

QUICK = {"lease_seconds": 1.5, "renew_seconds": 1.0, "retry_seconds": 0.15}
"""A shortened lease; busy machines take their time, so not much shorter than that."""


class Replica:
    """One of several operators.

    Attributes:
        url: of the API server, or of a proxy before it.
        ends: the exit statuses so far.
        operator: the one that runs; None between two.
    """

    def __init__(self, here: World, url: str = "", **flags: Any) -> None:
        self.url = url or here.server.url
        self.ends: list[int] = []
        self.operator: Operator | None = None
        self._here = here
        self._flags = {**here.flags, "leader_elect": True, "lease_namespace": "default", **QUICK, **flags}
        self._life: asyncio.Task[None] | None = None
        self._run: asyncio.Task[int] | None = None

    @property
    def leads(self) -> bool:
        """Whether it may write now."""
        elector = self.operator.leading.elector if self.operator else None
        return elector is not None and elector.leads

    @property
    def is_ready(self) -> bool:
        return self.operator is not None and self.operator.vitals.is_ready

    @property
    def is_at_work(self) -> bool:
        """Whether its controllers run."""
        return self.operator is not None and self.operator.ready.is_set()

    def begin(self) -> None:
        """Start it, and start it again whenever it ends by itself."""
        self._life = asyncio.create_task(self._live())

    async def stop(self) -> int:
        """SIGTERM; the exit status. One that has just ended by itself is as good: machines can be too busy for a short lease."""
        assert self._run is not None
        run = self._run
        self._end_life()
        if self.operator is not None:
            self.operator.supervisor.stop()
        return await run

    async def kill(self) -> None:
        """SIGKILL: connections break, nothing is finished."""
        self._end_life()
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])

    def _end_life(self) -> None:
        if self._life is not None:
            self._life.cancel()
            self._life = None

    async def _live(self) -> None:
        while True:
            self._run = asyncio.create_task(self._once())
            self.ends.append(await asyncio.shield(self._run))

    async def _once(self) -> int:
        async with Api.at(self.url) as api:
            self.operator = Operator(build(**self._flags), api, await discover(api))
            self.operator.cluster.on_change(lambda _: self._here.stir())
            try:
                return await self.operator.run()
            finally:
                self.operator = None


@contextlib.asynccontextmanager
async def replicas(here: World, *made: Replica) -> AsyncIterator[None]:
    """Start them one after the other, the first as the leader; kill what is left at the end."""
    try:
        for number, replica in enumerate(made):
            replica.begin()
            await until(lambda one=replica, first=not number: one.is_at_work if first else one.is_ready)  # type: ignore[misc]
        yield
    finally:
        for replica in made:
            await replica.kill()


async def until(condition: Callable[[], Any], what: str = "") -> float:
    """Wait for something that no change of an object tells; the seconds that it took."""
    now = asyncio.get_running_loop().time
    began = now()
    while not condition():
        assert now() - began < PATIENCE, what or "never happened"
        await asyncio.sleep(0.01)
    return now() - began


def holder(here: World) -> str:
    """Who holds the Lease; empty if nobody does."""
    leases = here.server.objects("leases", GROUP)
    return str(leases[0]["spec"].get("holderIdentity") or "") if leases else ""


class Doubles:
    """Every version of every claim, as the server stores it: devices that two claims held, ever.

    Attributes:
        found: a sentence for each.
        allocations: how many times a claim became allocated.
    """

    def __init__(self, here: World) -> None:
        self.found: list[str] = []
        self.allocations = 0
        self._held: dict[str, frozenset[str]] = {}
        self._holders: dict[str, set[str]] = defaultdict(set)
        here.server.store.listen(self._changed, (DRA, "resourceclaims"))

    def _changed(self, change: Change) -> None:
        meta = change.record.obj["metadata"]
        allocation = (change.record.obj.get("status") or {}).get("allocation") or {}
        results = allocation.get("devices", {}).get("results", []) if change.type != "DELETED" else []
        after = frozenset(f"{item['driver']}/{item['pool']}/{item['device']}" for item in results)
        before = self._held.get(meta["name"], frozenset())
        self.allocations += bool(after and not before)
        for device in before - after:
            self._holders[device].discard(meta["name"])
        for device in after - before:
            if others := self._holders[device]:
                self.found.append(f"{device} given to {meta['name']} while {others} held it")
            self._holders[device].add(meta["name"])
        self._held[meta["name"]] = after
