"""Many fail-overs under load, and whether a device was ever given twice: `python -m tests.scenarios.operator.failovers --failovers 200`.

Two operators, each a process, on one embedded server, a shortened lease, pods that come and end all the time. The leader is killed, ended in
order, or stopped with requests held back on their way, which are let go once another works: these are the writes that come late. Every version of
every claim is looked at as it is stored, and at each of these moments one operator at most may believe that it leads. Who works next is
nobody's business as long as it is another process: on a busy machine a leader may rightly give up between two fail-overs.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from dra_operator.model import SCHEDULER_NAME
from dra_operator.model.marks import MARK
from dra_operator.testing.fakeapi.faults import ALWAYS, WRITES, Fault, Hold

from .lives import Life, Member, until
from .objects import by_template, device_class, node, pod, policy, slice_, template
from .operating import GUARDS
from .several import FREE, Doubles
from .world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from .objects import Obj

STANDINS = ("claims", "binding", "kubelet")
NODES, DEVICES_A_NODE = 3, 4
PODS = 16
"""Pods that want one of twelve devices at any time, so that each that is free is wanted at once."""

LEASE = {"lease": 3.0, "renew": 2.0, "retry": 0.3}
"""Seconds. Short, and long enough for a server and two operators on a machine with little other work."""

LONGER, OFTEN = 1.5, 2
"""Where a leader could not renew in time although nothing was done to it, the next ones get times that are longer by that factor, so often at
most: beyond that it costs more time than it saves. A standby goes by what the holder has promised, so they need not be the same for all."""

GUARDED = ("resourceclaims", "resourceclaims/status", "pods", "pods/binding")
"""What must not be written late; events, and the status of policies, do no harm."""

CLAIMS = GUARDED[0]
STAGES = (GUARDED, GUARDED[1:], GUARDED[2:3], GUARDED[3:])
"""What is held back, the first of each surely: from the mark of a claim on, from its allocation on, pins, bindings."""

LEASES = "leases"
TOLD = 20
"""Fail-overs after which a trial says where it is."""

ENDS = {0, 1}
"""Exit statuses of an operator that nobody killed: it was asked to end, or has lost the Lease."""


@dataclass
class Outcome:
    """What happened.

    Attributes:
        doubles: a sentence for each device that two claims held, ever.
        pairs: moments at which both believed that they led.
        allocations: of claims.
        ways: fail-overs by the way in which the leader went.
        late: requests of a leader that was stopped which came when another worked, by resource and answer.
        done_late: of these, resources that the server wrote to although the successor should have seen to it that it does not.
        waits: seconds from a signal until another worked, by way.
        firsts: seconds from a signal until another had allocated, by way.
        served: pods that ran.
        unasked: exit statuses of operators that ended although nothing was done to them.
        odd: exit statuses that no operator should have, and tracebacks in logs.
    """

    doubles: list[str] = field(default_factory=list)
    pairs: int = 0
    allocations: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    late: Counter[tuple[str, int]] = field(default_factory=Counter)
    done_late: list[str] = field(default_factory=list)
    waits: dict[str, list[float]] = field(default_factory=dict)
    firsts: dict[str, list[float]] = field(default_factory=dict)
    served: int = 0
    unasked: list[int] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.doubles or self.pairs or self.done_late or self.odd)

    def text(self) -> str:
        """One paragraph."""
        late = ", ".join(
            f"{number} {resource} {code}" for (resource, code), number in sorted(self.late.items())
        )
        return (
            f"{self.ways.total()} fail-overs {dict(self.ways)}, {self.allocations} allocations, {self.served} pods served; longest until "
            f"another worked: {_longest(self.waits)}, until its first allocation: {_longest(self.firsts)}, with a lease of {_times(len(self.unasked))['lease']:g} s at the end; "
            f"late requests by answer: {late or 'none'}; done late: {self.done_late or 'none'}; doubles: {self.doubles or 'none'}, "
            f"moments with two leaders: {self.pairs}; ended unasked: {len(self.unasked)}; odd: {self.odd or 'nothing'}"
        )


def _times(unasked: int) -> dict[str, float]:
    """Of the Lease, when so many leaders had no time for it."""
    return {name: seconds * LONGER ** min(unasked, OFTEN) for name, seconds in LEASE.items()}


def _longest(times: dict[str, list[float]]) -> str:
    return ", ".join(f"{way} {max(found):.2f} s" for way, found in sorted(times.items()))


class Trial:
    """One run."""

    def __init__(self, here: World, members: list[Member], seed: int) -> None:
        self.outcome = Outcome()
        self._here = here
        self._members = members
        self._chance = random.Random(seed)
        self._number = 0
        self._asked: list[int] = []
        self._doubles = Doubles(here)
        here.server.store.listen_all(lambda *_: self._count_leaders())

    async def run(self, failovers: int, tell: Callable[[str], None]) -> Outcome:
        """So many fail-overs, then quiet. What happened so far is told from time to time."""
        load = asyncio.create_task(self._load())
        ways: dict[str, Callable[[Member], Awaitable[None]]] = {
            "killed": self._kill,
            "ended": self._end,
            "asleep": self._sleep,
        }
        for number in range(failovers):
            way = list(ways)[number % len(ways)]
            await until(self._is_complete, "one works and another stands by")
            await asyncio.sleep(self._chance.uniform(0, 0.3))
            leader = next((one for one in self._members if one.life.is_at_work), self._members[0])
            await ways[way](leader)
            self.outcome.ways[way] += 1
            if not self.outcome.ways.total() % TOLD:
                self._conclude()
                tell(self.outcome.text())
        load.cancel()
        await self._come_to_rest()
        self._conclude()
        return self.outcome

    def _is_complete(self) -> bool:
        lives = [one.life for one in self._members]
        return any(life.is_at_work for life in lives) and all(life.is_ready for life in lives)

    # --- how a leader goes

    async def _kill(self, leader: Member) -> None:
        """It is started again at once, and may be the one that takes over, too."""
        life, began = leader.leave(), time.monotonic()
        life.send(signal.SIGKILL)
        await asyncio.gather(leader.begin(), self._another_allocates(life, "killed", began))

    async def _end(self, leader: Member) -> None:
        life, began = leader.leave(), time.monotonic()
        life.send(signal.SIGTERM)
        await self._another_allocates(life, "ended", began)
        self._asked.append(await life.ended())
        await leader.begin()

    async def _sleep(self, leader: Member) -> None:
        """What it had sent, and what it was about to send, comes when it wakes up."""
        life, hold = leader.leave(), Hold()
        held = await self._hold(life, hold)
        began = time.monotonic()
        life.send(signal.SIGSTOP)
        if self._chance.random() < 0.5:
            await self._another_allocates(life, "asleep", began)
        else:
            await self._another_works(life, "asleep", began)  # in the midst of its first decisions
        for fault in held:
            fault.times = len(fault.hits)
        late = [*held, *(life.proxy.faults.add(_whatever(resource)) for resource in (*GUARDED, LEASES))]
        unmarked = {name for name, claim in self._here.claims.items() if not _is_marked(claim)}
        steps: list[Callable[[], None]] = [hold.released.set, partial(life.send, signal.SIGCONT)]
        self._chance.shuffle(steps)
        for step in steps:
            step()
        self._asked.append(await life.ended())
        await until(lambda: all(len(fault.codes) == len(fault.hits) for fault in late), "late answers")
        self._take(late, unmarked)
        await leader.begin()

    async def _hold(self, life: Life, hold: Hold) -> list[Fault]:
        """Hold back writes until there is one of the kind that came late least often so far, and one of the Lease."""
        stage = min(STAGES, key=lambda one: self._late_of(one[0]))
        held = [life.proxy.faults.add(_whatever(resource, hold)) for resource in stage]
        await until(lambda: held[0].hits or life.status is not None, f"a write of {stage[0]}")
        held.append(life.proxy.faults.add(_whatever(LEASES, hold)))
        await until(lambda: held[-1].hits or life.status is not None, "a renewal")
        return held

    def _take(self, late: list[Fault], unmarked: set[str]) -> None:
        """The first mark of a claim may come late: it gives nothing away, and whoever allocates the claim meets it, or is met by it."""
        for fault in late:
            self.outcome.late.update((fault.resource, code) for code in fault.codes)
            done = sum(code < HTTPStatus.BAD_REQUEST for code in fault.codes)
            if fault.resource == CLAIMS:
                done -= len(unmarked & {call.name for call in fault.hits})
            self.outcome.done_late += [fault.resource] * max(0, done)

    def _late_of(self, resource: str) -> int:
        """How many requests of a kind came late."""
        return sum(number for (found, _), number in self.outcome.late.items() if found == resource)

    async def _another_works(self, life: Life, way: str, began: float) -> None:
        await until(
            lambda: any(one.life.is_at_work for one in self._members if one.life is not life),
            f"another works when the leader was {way}",
        )
        self.outcome.waits.setdefault(way, []).append(time.monotonic() - began)

    async def _another_allocates(self, life: Life, way: str, began: float) -> None:
        await self._another_works(life, way, began)
        before = self._doubles.allocations
        await until(lambda: self._doubles.allocations > before, "an allocation by another")
        self.outcome.firsts.setdefault(way, []).append(time.monotonic() - began)

    # --- what goes on meanwhile

    async def _load(self) -> None:
        """Pods come, run for a moment, and go with their claims: half of them are released by the operator, half are bound by it."""
        while True:
            pods = self._here.pods
            for name, found in pods.items():
                if (found.get("status") or {}).get("phase") == "Running" and self._chance.random() < 0.3:
                    self.outcome.served += 1
                    await self._here.delete("pod", name)
            for _ in range(PODS - len(pods)):
                self._number += 1
                ours: Obj = {"gates": (), "schedulerName": SCHEDULER_NAME} if self._number % 2 else {}
                self._here.add(pod(f"p{self._number}", by_template("gpu"), **ours))
            await asyncio.sleep(0.2)

    async def _come_to_rest(self) -> None:
        """Every device is held by the pod of a claim, and the pods that wait have nothing."""
        whole = NODES * DEVICES_A_NODE
        here = self._here

        def rests() -> bool:
            held = [device for devices in here.devices().values() for device in devices]
            bound = sum(bool(here.node_of(name)) for name in here.pods)
            return len(held) == len(set(held)) == bound == min(whole, len(here.pods))

        await until(rests, "rest")

    # --- looking

    def _count_leaders(self) -> None:
        self.outcome.pairs += sum(one.life.leads for one in self._members) > 1

    def _conclude(self) -> None:
        self.outcome.doubles = self._doubles.found
        self.outcome.allocations = self._doubles.allocations
        self.outcome.unasked = [status for one in self._members for status in one.unasked]
        torn = (f"a traceback in {one.log}" for one in self._members if "Traceback" in one.log.read_text())
        wrong = (
            f"exit status {status}" for status in (*self._asked, *self.outcome.unasked) if status not in ENDS
        )
        self.outcome.odd = [*torn, *wrong]


def _is_marked(claim: Obj) -> bool:
    return MARK in claim["metadata"].get("annotations", {})


def _whatever(resource: str, hold: Hold | None = None) -> Fault:
    return Fault(verbs=WRITES, resource=resource, times=ALWAYS, hold=hold)


@asynccontextmanager
async def members(here: World, folder: Path, without: str) -> AsyncIterator[list[Member]]:
    """Two operators, the first of which works; killed at the end."""
    made: list[Member] = []

    def flags() -> list[str]:
        times = _times(sum(len(member.unasked) for member in made))
        election = [f"--{name}-seconds={seconds:g}" for name, seconds in times.items()]
        return [*election, "--lease-namespace=default", "--settle-seconds=0"]

    made += [Member(here, folder, name, flags, without) for name in ("one", "two")]
    try:
        for member in made:
            await member.begin()
        yield made
    finally:
        for member in made:
            await member.close()


async def trial(
    failovers: int, seed: int, folder: Path, without: str = "", tell: Callable[[str], None] = print
) -> Outcome:
    """A world, two operators, so many fail-overs.

    Args:
        failovers: how many.
        seed: of what is left to chance.
        folder: for logs; has to be empty.
        without: a guard that is switched off.
        tell: hears from time to time what happened so far.
    """
    async with World(*STANDINS) as here:
        here.add(device_class(), template("gpu"), policy(), FREE, *_nodes())
        async with members(here, folder, without) as made:
            return await Trial(here, made, seed).run(failovers, tell)


def _nodes() -> list[Obj]:
    return [
        obj for number in range(NODES) for obj in (node(f"n{number}"), slice_(f"n{number}", DEVICES_A_NODE))
    ]


def main() -> int:
    """Run it by hand. Returns: the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failovers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--without", choices=GUARDS, default="", help="a guard to switch off: something has to be found then"
    )
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="failovers-"))
    print(f"logs: {folder}", flush=True)
    outcome = asyncio.run(
        trial(given.failovers, given.seed, folder, given.without, partial(print, flush=True))
    )
    print(outcome.text())
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
