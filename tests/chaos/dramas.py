"""Scenes that chance alone would take hours to bring about, played in the midst of the storm by the same proxies and supervisor.

*The late write*: an operator decides and sends, the network keeps the allocation back, the operator dies, its pod goes, its successor
gives the only device to another claim; then the network delivers. It must be a conflict.

*The gap*: a driver withdraws its slice while no watch of slices can be opened. Whoever asks for that device afterwards must wait.

Everything is seen by the same checker, and by the same look at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.faults import ALWAYS, LISTS, WATCHES, Fault, gone, unavailable
from tests.chaos.churn import CLAIMS, CLASSES, NODE_PATH, PODS, POLICIES, SLICES
from tests.chaos.client import RefusedError, until
from tests.e2e.harness.objects import claim, device, device_class, exactly, node, pod, policy, resource_slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.client import Admin
    from tests.chaos.crew import Crew, Member
    from tests.e2e.harness.faultproxy import Held

DRIVER = "late.storm.example.com"
NODE = "storm-late"
GAP = "gap.storm.example.com"
GAP_NODE = "storm-gap"
PATIENCE = 45.0
"""Seconds that each act may take; if bad weather makes one last longer, the scene is given up."""

CALM_BETWEEN = 8.0


class LateWrites:
    """Plays the scene again and again.

    Attributes:
        done: how the scenes went; `answered 409` is how they should.
    """

    def __init__(self, admin: Admin, crew: Crew) -> None:
        self.done: Counter[str] = Counter()
        self._admin = admin
        self._crew = crew
        self._scene = 0
        self._act = ""

    async def prepare(self) -> None:
        """One device on a node of its own."""
        await self._admin.make(CLASSES, device_class(DRIVER, driver=DRIVER))
        await self._admin.make(POLICIES, policy("late", {"driver": DRIVER}))
        await self._admin.make(NODE_PATH, node(NODE))
        await self._admin.make(SLICES, resource_slice(DRIVER, NODE, [device("only")]))

    async def run(self) -> None:
        """Until cancelled; what is held is let go in any case."""
        while True:
            await asyncio.sleep(CALM_BETWEEN)
            self._scene += 1
            try:
                async with self._crew.scene:
                    await self._play()
            except (TimeoutError, RefusedError):
                self.done[f"given up before {self._act}"] += 1
            finally:
                await self._clear()

    async def _play(self) -> None:
        first, second = f"late-{self._scene}-a", f"late-{self._scene}-b"
        held = [
            (member, member.proxy.hold("patch", "resourceclaims/status", first))
            for member in self._crew.members
        ]
        try:
            await self._ask(first)
            self._act = "the allocation was sent"
            sender, kept = await self._first_held(held)
            await self._admin.request("DELETE", f"{PODS}/{first}", {"gracePeriodSeconds": 0})
            self._crew.kill(sender)
            await self._ask(second)
            self._act = "the successor allocated"
            await self._until_allocated(second)
            self._act = "the late write was answered"
            kept.hold.released.set()
            await _until(lambda: bool(kept.fault.codes))
            self.done[f"answered {kept.fault.codes[0]}"] += 1
        finally:
            for member, each in held:
                member.proxy.faults.remove(each.fault)

    async def _ask(self, name: str) -> None:
        await self._admin.make(CLAIMS, claim(name, exactly("late", DRIVER)))
        wanted = pod(name, claims={"late": name}, terminationGracePeriodSeconds=1)
        await self._admin.make(PODS, wanted)

    async def _first_held(self, held: list[tuple[Member, Held]]) -> tuple[Member, Held]:
        await _until(lambda: any(each.hold.reached.is_set() for _, each in held))
        return next(pair for pair in held if pair[1].hold.reached.is_set())

    async def _until_allocated(self, name: str) -> None:
        async def allocated() -> bool:
            found = await self._admin.request("GET", f"{CLAIMS}/{name}")
            return bool(found.get("status", {}).get("allocation"))

        await until(allocated, PATIENCE)

    async def _clear(self) -> None:
        """Remove what the scene has made, and wait for it: the device must be free for the next one."""
        names = [f"late-{self._scene}-{part}" for part in "ab"]
        for path, name in ((path, name) for path in (PODS, CLAIMS) for name in names):
            with suppress(RefusedError):
                await self._admin.request("DELETE", f"{path}/{name}")

        async def gone() -> bool:
            left = await self._admin.items(CLAIMS)
            return all(item["metadata"]["name"] not in names for item in left)

        with suppress(TimeoutError):
            await until(gone, PATIENCE)


class Gap:
    """Plays the scene once.

    Attributes:
        done: how it went.
    """

    def __init__(self, admin: Admin, crew: Crew) -> None:
        self.done: Counter[str] = Counter()
        self._admin = admin
        self._crew = crew

    async def prepare(self) -> None:
        """One more device on a node of its own."""
        await self._admin.make(CLASSES, device_class(GAP, driver=GAP))
        await self._admin.make(POLICIES, policy("gap", {"driver": GAP}))
        await self._admin.make(NODE_PATH, node(GAP_NODE))
        await self._admin.make(SLICES, resource_slice(GAP, GAP_NODE, [device("ghost")]))

    async def run(self) -> None:
        """The scene; ends with it."""
        await asyncio.sleep(CALM_BETWEEN)
        try:
            async with self._crew.scene:
                await self._play()
        except TimeoutError:
            self.done["given up"] += 1
        await self._admin.make(CLAIMS, claim("gap", exactly("gap", GAP)))
        await self._admin.make(PODS, pod("gap", claims={"gap": "gap"}, terminationGracePeriodSeconds=1))

    async def _play(self) -> None:
        away = []
        for member in self._crew.members:
            fault = Fault(unavailable(), verbs=WATCHES | LISTS, resource="resourceslices", times=ALWAYS)
            away.append((member.proxy, member.proxy.faults.add(fault)))
            member.proxy.break_watches()
        try:
            await _until(lambda: all(fault.hits for _, fault in away))
            await self._admin.request("DELETE", f"{SLICES}/{GAP_NODE}-{GAP}")
            for proxy, _ in away:
                proxy.faults.add(Fault(gone(), verbs=WATCHES, resource="resourceslices"))
            self.done["played"] += 1
        finally:
            for proxy, fault in away:
                proxy.faults.remove(fault)


async def _until(happened: Callable[[], bool]) -> None:
    async def look() -> bool:
        return happened()

    await until(look, PATIENCE)
