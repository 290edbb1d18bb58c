"""One storm: control plane, proxies, operators, churn, weather, scenes, checker; then quiet, and a last look.

Used by `__main__`. What it returns says everything that was done and everything that was wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.settings.table import BY_NAME
from dra_operator.testing.fakeapi.faults import ALWAYS, LISTS, WATCHES, WEATHER, Fault
from tests.chaos.checker import Checker
from tests.chaos.churn import CLASSES, DRIVER, NAMESPACE, NODE_PATH, SLICES, Churn
from tests.chaos.client import DRA, Admin, until
from tests.chaos.crew import FLAGS, LEASE, Crew, Member
from tests.chaos.dramas import SCENES
from tests.chaos.obedience import disobeyed
from tests.chaos.rest import Picture, wrong
from tests.chaos.schedule import churn, outages, signals, weather
from tests.chaos.traces import tracebacks
from tests.e2e.harness.cluster import ControlPlane
from tests.e2e.harness.components import APISERVER
from tests.e2e.harness.faultproxy import FaultProxy
from tests.e2e.harness.operator_process import install

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from tests.chaos.dramas import Drama
    from tests.chaos.ledger import Violation
    from tests.chaos.schedule import Spell, Step

QUIET_SECONDS = 90.0
"""Within these everything has to be at rest: more than the 70 s after which a watch that fell silent counts as dead."""

LEAST_RATE = 30.0
"""Changes a second below which it is no storm: all its changes are made in any case, on a busy machine later."""

FOREVER = 86_400.0

RETURN_SECONDS = 180.0
"""Within these kube-apiserver is ready again; it serves long before, and its hook `rbac/bootstrap-roles` can take a minute in a storm."""

SCENE_SECONDS = 90.0
"""How much longer than the storm scenes are played, where the lack of a guard shows in scenes only and has not been found yet."""

GROWTH, SMALL = 1.5, 150.0
"""By what factor an operator may grow after its first 15 seconds; below so many MiB it has only just started."""

LATE_LISTS = {"dra-operator": 1.5, "kopf": 0.7}
"""Seconds by which lists of claims come late, all the time, by who asks: what decides before all claims are known is in a hurry."""


EVERYTHING = frozenset({"signals", "weather", "outages", *SCENES})

NEEDED: Mapping[str, frozenset[str]] = {
    "": EVERYTHING,
    "in-flight": EVERYTHING,
    "relist-diff": frozenset({"gap"}),
    "sync-guard": frozenset({"rollout"}),
    "resource-version": frozenset({"late"}),
    "epoch-touch": frozenset({"late"}),
}
"""What has to blow, besides churn, for the lack of a guard to be found soon. Restarts would mend what a missed delete spoils, and a scene that
a kube-apiserver's restart breaks off shows nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        seed: of everything that chance decides.
        seconds: of the storm, without start and quiet.
        guard: which guard of the operators is off; empty for none.
        operators: how many.
    """

    seed: int
    seconds: float
    guard: str = ""
    operators: int = 2


@dataclass(slots=True)
class Result:
    """What was done, what was looked at, and what was wrong."""

    done: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    settled: float = 0.0
    walked: int = 0
    memory: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    at_rest: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    logs: Path | None = None

    @property
    def is_good(self) -> bool:
        """Nothing was wrong."""
        return not (self.violations or self.at_rest or self.troubles)


def run(plan: Plan) -> Result:
    """A storm from beginning to end; logs are kept if something was wrong, unless a guard was off."""
    result = Result()
    with ExitStack() as stack:
        plane = ControlPlane.start()
        try:
            install(plane)
            proxies = [
                stack.enter_context(FaultProxy(plane.server, plane.ca_file, seed=plan.seed + number))
                for number in range(plan.operators)
            ]
            asyncio.run(_Storm(plan, plane, proxies, result).run())
        finally:
            keep = not (result.violations if plan.guard else result.is_good)
            stack.close()
            plane.stop(keep_logs=keep)
            result.logs = plane.folder if keep else None
    return result


class _Storm:
    def __init__(self, plan: Plan, plane: ControlPlane, proxies: list[FaultProxy], result: Result) -> None:
        self.plan = plan
        self.plane = plane
        self.proxies = proxies
        self.result = result
        lease = [f"{BY_NAME[name].flag}={seconds}" for name, seconds in LEASE.items() if name in BY_NAME]
        members = [
            Member(number, plane, proxy, plan.guard, [*FLAGS, *lease]) for number, proxy in enumerate(proxies)
        ]
        self.crew = Crew(members, plan.seed)
        self.blows = NEEDED[plan.guard]
        self.scenes: list[Drama] = []

    async def run(self) -> None:
        async with Admin(self.plane) as admin:
            changes = Churn(admin)
            self.scenes = [scene(admin, self.crew) for name, scene in SCENES.items() if name in self.blows]
            await changes.prepare()
            await changes.until_accounts()
            for scene in self.scenes:
                await scene.prepare()
            try:
                await self._work(admin, changes)
            finally:
                await asyncio.to_thread(self.crew.stop)
            self._account(changes)

    async def _work(self, admin: Admin, changes: Churn) -> None:
        for proxy in self.proxies:
            for agent, delay in LATE_LISTS.items():
                proxy.faults.add(
                    Fault(verbs=LISTS, resource="resourceclaims", user_agent=agent, delay=delay, times=ALWAYS)
                )
        await self.crew.start()
        checker = Checker(self.plane)
        async with asyncio.TaskGroup() as group:  # so that a supervisor that fails ends the storm
            supervisor = group.create_task(self.crew.supervise())
            try:
                with checker:
                    await self._rage(changes, checker)
                    if not (self.plan.guard and self._violations(checker)):
                        await self._calm(admin, changes)
            finally:
                supervisor.cancel()
                self._take_over(checker)

    async def _calm(self, admin: Admin, changes: Churn) -> None:
        for proxy in self.proxies:
            proxy.faults.clear()
        await changes.calm()
        await self._quieten(admin)

    async def _rage(self, changes: Churn, checker: Checker) -> None:
        """The storm itself: as long as the churn lasts; with a guard off, until its lack is found."""
        seed, seconds = self.plan.seed, self.plan.seconds
        blowing: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "signals": lambda: self.crew.disturb(signals(seed, seconds, len(self.crew.members))),
            "weather": lambda: self._weather(weather(seed, seconds)),
            "outages": lambda: self._outages(outages(seed, seconds)),
        }
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(blow()) for name, blow in blowing.items() if name in self.blows]
            storm = group.create_task(changes.run(churn(seed, seconds)))
            endless = [group.create_task(scene.run()) for scene in self.scenes]
            found = group.create_task(self._found(checker))
            await asyncio.wait([storm, found], return_when=asyncio.FIRST_COMPLETED)
            if self.plan.guard and self.scenes:
                await asyncio.wait([found], timeout=SCENE_SECONDS)
            for task in [*endless, found] if storm.done() else [*endless, found, *tasks, storm]:
                task.cancel()

    def _violations(self, checker: Checker) -> list[Violation]:
        seen = [violation for scene in self.scenes for violation in scene.violations]
        return [*checker.ledger.violations, *seen]

    async def _found(self, checker: Checker) -> None:
        """Returns when the lack of a guard has been found; never if none is off."""

        async def look() -> bool:
            return bool(self.plan.guard and self._violations(checker))

        await until(look, FOREVER)

    async def _weather(self, spells: Iterable[Spell]) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for spell in spells:
                await asyncio.sleep(max(0.0, began + spell.at - time.monotonic()))
                group.create_task(self._spell(spell))

    async def _spell(self, spell: Spell) -> None:
        faults = []
        for proxy in self.proxies:
            fault = WEATHER[spell.name]()
            fault.times, fault.probability = ALWAYS, spell.probability
            faults.append(proxy.faults.add(fault))
            if fault.spoil is not None or fault.verbs == WATCHES:
                proxy.break_watches()  # so that there are new ones, for the rule to hit
        await asyncio.sleep(spell.lasts)
        for proxy, fault in zip(self.proxies, faults, strict=True):
            proxy.faults.remove(fault)
            self.result.done[f"weather: {spell.name}"] += len(fault.hits)

    async def _outages(self, steps: Iterable[Step]) -> None:
        began = time.monotonic()
        for step in steps:
            await asyncio.sleep(max(0.0, began + step.at - time.monotonic()))
            end = self.plane.kill_component if step.what == "crash" else self.plane.stop_component
            await asyncio.to_thread(end, APISERVER)
            await asyncio.to_thread(self.plane.start_component, APISERVER, RETURN_SECONDS)
            self.result.done[f"kube-apiserver: {step.what}"] += 1

    async def _quieten(self, admin: Admin) -> None:
        """Wait until nothing is wrong any more; what still is when the time is over is told."""
        began = time.monotonic()
        while True:
            picture = await _picture(admin)
            broken = disobeyed(picture.claims, picture.slices, await admin.items(CLASSES), picture.nodes)
            self.result.at_rest = [*wrong(picture), *broken]
            self.result.settled = time.monotonic() - began
            if not self.result.at_rest or self.result.settled > QUIET_SECONDS:
                break
            await asyncio.sleep(1.0)
        try:
            await self.crew.until_ready()
        except TimeoutError:
            self.result.troubles.append("an operator does not become ready again when all is quiet")
        for member in self.crew.members:
            member.measure()

    # --- the account

    def _take_over(self, checker: Checker) -> None:
        result, ledger = self.result, checker.ledger
        result.violations, result.checked, result.walked = (
            self._violations(checker),
            ledger.checked,
            checker.walked,
        )
        result.done.update(ledger.noticed)
        result.done["kube-apiserver: event after a newer bookmark"] = len(checker.late)
        if checker.failure is not None:
            result.troubles.append(f"the check is not complete: {checker.failure!r}")

    def _account(self, changes: Churn) -> None:
        result = self.result
        result.done.update({f"change: {what}": count for what, count in changes.done.items()})
        result.done.update({f"change refused with {code}": count for code, count in changes.refused.items()})
        result.done.update({f"operator: {what}": count for what, count in self.crew.done.items()})
        for scene in self.scenes:
            result.done.update({f"scene {scene.name}: {how}": count for how, count in scene.done.items()})
            if not (scene.is_played or self.plan.guard):
                result.troubles.append(
                    f"no scene of the kind {scene.name} ended as it should: {dict(scene.done)}"
                )
        result.rate = changes.done.total() / max(changes.seconds, 1.0)
        if result.rate < LEAST_RATE and not self.plan.guard:
            result.troubles.append(f"{result.rate:.0f} changes a second are no storm")
        for member in self.crew.members:
            self._judge_memory(member)
            for record in tracebacks(member.log.read_text(errors="replace")):
                result.troubles.append(f"there is a traceback in {member.log}: {record.splitlines()[0]}")

    def _judge_memory(self, member: Member) -> None:
        for life in member.lives:
            early = [size for age, size in life.memory if age >= 15.0]
            if not early:
                continue
            line = f"operator {member.number}, process {life.pid}: {early[0]:.0f} MiB, {life.memory[-1][1]:.0f} MiB after {life.memory[-1][0]:.0f} s"
            self.result.memory.append(line)
            if life.memory[-1][1] > max(SMALL, early[0] * GROWTH):
                self.result.troubles.append(f"memory grows: {line}")


async def _picture(admin: Admin) -> Picture:
    return Picture(
        pods=await admin.items("/api/v1/pods"),
        claims=await admin.items(f"{DRA}/resourceclaims"),
        slices=await admin.items(SLICES),
        nodes=await admin.items(NODE_PATH),
        events=await admin.items(f"/api/v1/namespaces/{NAMESPACE}/events"),
        namespace=NAMESPACE,
        driver=DRIVER,
    )
