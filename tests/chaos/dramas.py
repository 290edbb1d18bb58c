"""Scenes that chance alone would take hours to bring about, played in the midst of the storm by the same proxies and supervisor.

*The late write*: an operator decides and sends, the network keeps the allocation back, the operator dies, its pod goes, its successor
gives the only device to another claim; then the network delivers. It must be a conflict.

*The gap*: a pod had the only device of a driver and is gone; the driver withdraws its slice while no watch of slices can be opened. Once
the operators have listed slices again, whoever asks for that device must wait.

*The rollout*: all operators end at the same time, so that one leads that has only just come up.

Everything is seen by the same checker, and by the same look at the end.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.faults import ALWAYS, LISTS, WATCHES, Fault, gone, unavailable
from tests.chaos.churn import CLAIMS, CLASSES, EVENTS, NODE_PATH, OPERATOR, PODS, POLICIES, SLICES
from tests.chaos.client import RefusedError, until
from tests.chaos.ledger import Violation
from tests.e2e.harness.objects import claim, device, device_class, exactly, node, pod, policy, resource_slice
from tests.e2e.harness.probe import decides

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.chaos.client import Admin
    from tests.chaos.crew import Crew, Member
    from tests.e2e.harness.faultproxy import Held

DRIVER = "late.storm.example.com"
NODE = "storm-late"
GAP = "gap.storm.example.com"
GAP_NODE = "storm-gap"
PATIENCE = 45.0
"""Seconds that each act may take; if bad weather makes one last longer, the scene is given up."""

TRIES = 3
"""Scenes of a kind out of which one has to come to its end, bad weather or not: else the storm has not shown what it shall."""

CALM_BETWEEN = 8.0
"""Seconds between two scenes of a kind, in which what the schedule has for the operators happens to them."""


class Drama:
    """A scene that is played again and again; kinds differ in `_play`.

    Attributes:
        done: how the scenes went.
        violations: what a scene saw that may not be; most is seen by the checker.
    """

    name = ""
    driver = ""
    good = ""
    """How a scene goes that is played to its end, and shows nothing wrong."""

    parts: tuple[str, ...] = ("a", "b")
    """Claims with a pod each, by the end of their names."""

    def __init__(self, admin: Admin, crew: Crew) -> None:
        self.done: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self._admin = admin
        self._crew = crew
        self._scene = 0
        self._act = ""

    @property
    def is_played(self) -> bool:
        """Whether a scene came to its good end, or there were too few to expect one."""
        return self.done[self.good] > 0 or self.done.total() < TRIES

    async def prepare(self) -> None:
        """What all scenes of the kind need, before the storm."""
        raise NotImplementedError

    async def run(self) -> None:
        """Until cancelled; what is held is let go in any case."""
        while True:
            await asyncio.sleep(CALM_BETWEEN)
            self._scene += 1
            self._act = "it began"
            try:
                async with self._crew.scene:
                    await self._play()
            except (TimeoutError, RefusedError):
                self.done[f"given up before {self._act}"] += 1
            finally:
                await self._clear(*self.parts)

    async def _play(self) -> None:
        """One scene.

        Raises:
            TimeoutError: bad weather made an act last too long.
            RefusedError: the server does not let it be played.
        """
        raise NotImplementedError

    def _named(self, part: str) -> str:
        """Of a claim and its pod in this scene."""
        return f"{self.name}-{self._scene}-{part}"

    async def _ask(self, part: str) -> None:
        name = self._named(part)
        await self._admin.make(CLAIMS, claim(name, exactly(self.name, self.driver)))
        await self._admin.make(PODS, pod(name, claims={self.name: name}, terminationGracePeriodSeconds=1))

    async def _is_allocated(self, part: str) -> bool:
        found = await self._admin.request("GET", f"{CLAIMS}/{self._named(part)}")
        return bool(found.get("status", {}).get("allocation"))

    async def _until_allocated(self, part: str) -> None:
        await until(lambda: self._is_allocated(part), PATIENCE)

    async def _clear(self, *parts: str) -> None:
        """Remove what the scene has made, and wait for it: the device must be free for the next one."""
        names = [self._named(part) for part in parts]
        for path, name in ((path, name) for path in (PODS, CLAIMS) for name in names):
            with suppress(RefusedError):
                await self._admin.request("DELETE", f"{path}/{name}")

        async def gone() -> bool:
            left = await self._admin.items(CLAIMS)
            return all(item["metadata"]["name"] not in names for item in left)

        if names:
            with suppress(TimeoutError):
                await until(gone, PATIENCE)


class LateWrites(Drama):
    """The late write; it should be refused."""

    name, driver, good = "late", DRIVER, "answered 409"

    async def prepare(self) -> None:
        """One device on a node of its own."""
        await self._admin.make(CLASSES, device_class(DRIVER, driver=DRIVER))
        await self._admin.make(POLICIES, policy("late", {"driver": DRIVER}))
        await self._admin.make(NODE_PATH, node(NODE))
        await self._admin.make(SLICES, resource_slice(DRIVER, NODE, [device("only")]))

    async def _play(self) -> None:
        held = [
            (member, member.proxy.hold("patch", "resourceclaims/status", self._named("a")))
            for member in self._crew.members
        ]
        try:
            await self._ask("a")
            self._act = "the allocation was sent"
            sender, kept = await self._first_held(held)
            await self._admin.request("DELETE", f"{PODS}/{self._named('a')}", {"gracePeriodSeconds": 0})
            self._crew.kill(sender)
            await self._ask("b")
            self._act = "the successor allocated"
            await self._until_allocated("b")
            self._act = "the late write was answered"
            kept.hold.released.set()
            await _until(lambda: bool(kept.fault.codes))
            self.done[f"answered {kept.fault.codes[0]}"] += 1
        finally:
            for member, each in held:
                member.proxy.faults.remove(each.fault)

    async def _first_held(self, held: list[tuple[Member, Held]]) -> tuple[Member, Held]:
        await _until(lambda: any(each.hold.reached.is_set() for _, each in held))
        return next(pair for pair in held if pair[1].hold.reached.is_set())


class Gap(Drama):
    """The gap; who comes next should have to wait."""

    name, driver, good = "gap", GAP, "had to wait"

    async def prepare(self) -> None:
        """A node of its own; the device comes with each scene."""
        await self._admin.make(CLASSES, device_class(GAP, driver=GAP))
        await self._admin.make(POLICIES, policy("gap", {"driver": GAP}))
        await self._admin.make(NODE_PATH, node(GAP_NODE))

    async def _play(self) -> None:
        self._act = "a pod had the device"
        await self._admin.make(SLICES, resource_slice(GAP, GAP_NODE, [device("ghost")]))
        await self._ask("a")
        await self._until_allocated("a")
        await self._clear("a")
        self._act = "the operators had listed slices again"
        await self._withdraw_unseen()
        self._act = "the next pod was answered"
        await self._ask("b")
        await until(self._is_answered, PATIENCE)
        if await self._is_allocated("b"):
            self.done["was given what is not there"] += 1
            text = f"claim {self._named('b')} got a device that was withdrawn before the operators listed slices again"
            seen = (
                f"device {GAP}/{GAP_NODE}/ghost: every operator had opened a watch of slices after its list"
            )
            self.violations.append(Violation(text, (seen,)))
        else:
            self.done[self.good] += 1

    async def _withdraw_unseen(self) -> None:
        """Returns when every operator has listed slices after that: a list is in the model before the next watch is opened."""
        away, opened = [], []
        for member in self._crew.members:
            fault = Fault(unavailable(), verbs=WATCHES | LISTS, resource="resourceslices", times=ALWAYS)
            away.append((member.proxy, member.proxy.faults.add(fault, first=True)))
            member.proxy.break_watches()
        try:
            await _until(lambda: all(fault.hits for _, fault in away))
            with suppress(RefusedError):  # the answer to the first try may have been lost
                await self._admin.request("DELETE", f"{SLICES}/{GAP_NODE}-{GAP}")
            for proxy, fault in away:
                again = Fault(verbs=WATCHES, resource="resourceslices", times=ALWAYS)
                opened.append((proxy, proxy.faults.add(again, first=True)))
                expired = Fault(gone(), verbs=WATCHES, resource="resourceslices")
                opened.append((proxy, proxy.faults.add(expired, first=True)))
                proxy.faults.remove(fault)
            await _until(lambda: all(fault.hits for _, fault in opened))
        finally:
            for proxy, fault in away + opened:
                proxy.faults.remove(fault)

    async def _is_answered(self) -> bool:
        """Whether the pod got the device, or the operator has said that it waits."""
        if await self._is_allocated("b"):
            return True
        about = {"fieldSelector": f"involvedObject.name={self._named('b')}"}
        told = (await self._admin.request("GET", EVENTS, query=about))["items"]
        return any(event.get("reportingComponent") == OPERATOR for event in told)


class Rollout(Drama):
    """All operators end at once, in order, so that the Lease is free: whoever comes up first leads at once."""

    name, good = "rollout", "another one led"
    parts = ()

    async def prepare(self) -> None:
        """Nothing."""

    async def _play(self) -> None:
        self._act = "all operators were ready"
        await self._crew.until_ready()
        starts = [member.starts for member in self._crew.members]
        for member in self._crew.members:
            self._crew.kill(member, signal.SIGTERM)
        self._act = self.good
        await until(lambda: self._one_leads(starts), PATIENCE)
        self.done[self.good] += 1

    async def _one_leads(self, starts: list[int]) -> bool:
        """Whether one that was started since then does."""
        members = zip(self._crew.members, starts, strict=True)
        new = [member.url for member, before in members if member.starts > before]
        return any([await asyncio.to_thread(decides, url) for url in new])


SCENES: Mapping[str, type[Drama]] = {scene.name: scene for scene in (LateWrites, Gap, Rollout)}
"""All kinds of scenes by name."""


async def _until(happened: Callable[[], bool]) -> None:
    async def look() -> bool:
        return happened()

    await until(look, PATIENCE)
