"""Many fail-overs under load, and whether a device was ever given twice: `python -m tests.scenarios.operator.failovers --failovers 200`.

Two operators on one embedded server, a shortened lease, pods that come and end all the time. The leader is killed, ended in order, or cut off
with its requests held back, which are let go once the other works: these are the writes that come late. Every version of every claim is looked
at as it is stored, and at each of these moments one operator at most may believe that it leads.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.faults import Fault, Hold
from tests.e2e.harness.faultproxy import FaultProxy

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .several import FREE, Doubles, Replica, replicas, until
from .world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .objects import Obj

STANDINS = ("claims", "binding", "kubelet")
NODES, DEVICES_A_NODE = 3, 4
PODS = 16
"""Pods that want one of twelve devices at any time, so that each that is free is wanted at once."""

LEASE = {"lease_seconds": 4.0, "renew_seconds": 2.8, "retry_seconds": 0.3}
"""Short, and long enough for one event loop with a server and two operators in it on a machine that has other work, too."""

ENDLESS = 1_000_000
WRITES = frozenset({"create", "patch", "delete"})
GUARDED = ("leases", "resourceclaims", "resourceclaims/status", "pods", "pods/binding")
"""What must not be written late; events, and the status of policies, do no harm."""


@dataclass
class Outcome:
    """What happened.

    Attributes:
        doubles: a sentence for each device that two claims held, ever.
        pairs: moments at which both believed that they led.
        allocations: of claims.
        ways: fail-overs by the way in which the leader went.
        late: answers to the requests that were held back until the other worked, by status.
        waits: seconds until the other worked, by way.
        served: pods that ran.
    """

    doubles: list[str] = field(default_factory=list)
    pairs: int = 0
    allocations: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    late: Counter[int] = field(default_factory=Counter)
    waits: dict[str, list[float]] = field(default_factory=dict)
    served: int = 0

    def text(self) -> str:
        """One paragraph."""
        worst = {way: f"{max(found):.2f} s" for way, found in sorted(self.waits.items())}
        return (
            f"{self.ways.total()} fail-overs {dict(self.ways)}, {self.allocations} allocations, {self.served} pods served; longest until the "
            f"other worked {worst} with a lease of {LEASE['lease_seconds']:g} s; late requests by answer {dict(sorted(self.late.items()))}; "
            f"doubles: {self.doubles or 'none'}, moments with two leaders: {self.pairs}"
        )


class Trial:
    """One run."""

    def __init__(self, here: World, pair: list[tuple[Replica, FaultProxy]], seed: int) -> None:
        self.outcome = Outcome()
        self._here = here
        self._pair = pair
        self._chance = random.Random(seed)
        self._number = 0
        self._doubles = Doubles(here)
        here.server.store.listen_all(lambda *_: self._count_leaders())

    async def run(self, failovers: int) -> Outcome:
        """So many fail-overs, then quiet."""
        load = asyncio.create_task(self._load())
        ways: dict[str, Callable[[Replica, FaultProxy, Replica], Awaitable[None]]] = {
            "killed": self._kill,
            "ended": self._end,
            "asleep": self._sleep,
        }
        for number in range(failovers):
            await asyncio.sleep(self._chance.uniform(0, 0.3))
            way = list(ways)[number % len(ways)]
            await until(lambda: any(one.is_at_work for one, _ in self._pair), "nobody works")
            (leader, proxy), (other, _) = sorted(self._pair, key=lambda item: not item[0].is_at_work)
            await until(lambda one=other: one.is_ready, "no standby")  # type: ignore[misc]
            began = time.monotonic()
            await ways[way](leader, proxy, other)
            self.outcome.ways[way] += 1
            self.outcome.waits.setdefault(way, []).append(time.monotonic() - began)
        load.cancel()
        await self._come_to_rest()
        self.outcome.doubles = self._doubles.found
        self.outcome.allocations = self._doubles.allocations
        return self.outcome

    async def _kill(self, leader: Replica, _: FaultProxy, other: Replica) -> None:
        await leader.kill()
        await until(lambda: other.is_at_work)
        leader.begin()

    async def _end(self, leader: Replica, _: FaultProxy, other: Replica) -> None:
        ending = asyncio.create_task(leader.stop())
        await until(lambda: other.is_at_work)
        await ending
        leader.begin()

    async def _sleep(self, leader: Replica, proxy: FaultProxy, other: Replica) -> None:
        """As if it were stopped, as far as the server can tell: what it had sent comes when it wakes up."""
        hold, ends = Hold(), len(leader.ends)
        held = [
            proxy.faults.add(Fault(verbs=WRITES, resource=resource, times=ENDLESS, hold=hold))
            for resource in (*GUARDED, "")
        ]
        await until(lambda: len(leader.ends) > ends)
        for fault in held:
            fault.times = len(fault.hits)  # its successor in the same place is not meant
        await until(lambda: other.is_at_work)
        hold.released.set()
        await until(lambda: all(len(fault.codes) == len(fault.hits) for fault in held))
        for fault in held:
            proxy.faults.remove(fault)
            if fault.resource:
                self.outcome.late.update(fault.codes)

    async def _load(self) -> None:
        """Pods come, run for a moment, and go with their claims."""
        while True:
            pods = self._here.pods
            for name, found in pods.items():
                if (found.get("status") or {}).get("phase") == "Running" and self._chance.random() < 0.3:
                    self.outcome.served += 1
                    await self._here.delete("pod", name)
            for _ in range(PODS - len(pods)):
                self._number += 1
                self._here.add(pod(f"p{self._number}", by_template("gpu")))
            await asyncio.sleep(0.2)

    async def _come_to_rest(self) -> None:
        """Every device is held by the pod of a claim, and the pods that wait have nothing."""
        whole = NODES * DEVICES_A_NODE
        here = self._here

        def rests() -> bool:
            held = [device for devices in here.devices().values() for device in devices]
            bound = sum(bool(here.node_of(name)) for name in here.pods)
            return len(held) == len(set(held)) == bound == min(whole, len(here.pods))

        await here.until(rests, "rest")

    def _count_leaders(self) -> None:
        self.outcome.pairs += sum(one.leads for one, _ in self._pair) > 1


async def trial(failovers: int, seed: int) -> Outcome:
    """A world, two operators, so many fail-overs."""
    async with World(*STANDINS) as here:
        here.add(device_class(), template("gpu"), policy(), FREE, *_nodes())
        with ExitStack() as stack:
            proxies = [stack.enter_context(FaultProxy(here.server.url)) for _ in range(2)]
            pair = [(Replica(here, proxy.url, **LEASE), proxy) for proxy in proxies]
            async with replicas(here, *(one for one, _ in pair)):
                return await Trial(here, pair, seed).run(failovers)


def _nodes() -> list[Obj]:
    return [
        obj for number in range(NODES) for obj in (node(f"n{number}"), slice_(f"n{number}", DEVICES_A_NODE))
    ]


def main() -> int:
    """Run it by hand. Returns: the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failovers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    outcome = asyncio.run(trial(given.failovers, given.seed))
    print(outcome.text())
    return 1 if outcome.doubles or outcome.pairs else 0


if __name__ == "__main__":
    sys.exit(main())
