"""Everything at once, by dice that fall the same each time: users, faults, crashes. Whatever happens, no device is held twice; and once
the storm is over, every pod gets through, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from dra_operator.errors import ApiError
from dra_operator.kube.api import Api
from dra_operator.testing.fakeapi.faults import Fault, throttled, unavailable

from .objects import by_name, by_template, claim, device_class, node, pod, policy, requests, slice_, template
from .world import World

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.faults import Call

    from .objects import Obj

NODES = {"n1": 3, "n2": 2, "n3": 1}
SHARED = ("c0", "c1")
RESOURCES = ("resourceclaims", "resourceclaims/status", "pods", "pods/status", "devicetaintrules", "")
VERBS = ("patch", "patch", "patch", "create", "get", "list", "delete")
DEEDS = ("arrive",) * 6 + ("leave",) * 3 + ("fault",) * 5
RARE = ("end", "end", "crash", "unrule", "unclaim", "cordon", "touch", "pause", "pause")


class Trouble(Fault):
    """Hits the operator only, not the users of this test."""

    def matches(self, call: Call) -> bool:
        return call.user_agent.startswith(("dra-operator", "kopf")) and super().matches(call)


class Storm:
    """The deeds, each at random."""

    def __init__(self, here: World, dice: random.Random) -> None:
        self.here = here
        self.dice = dice
        self.doubles: set[str] = set()
        here.server.store.listen_all(lambda *_: self.doubles.update(here.held_twice()))
        self._arrived = 0

    async def blow(self, deeds: int) -> None:
        for _ in range(deeds):
            deed = self.dice.choice(DEEDS + RARE)
            try:
                await getattr(self, deed)()
            except ApiError:
                continue  # it has just gone
            await asyncio.sleep(self.dice.choice((0, 0, 0.005, 0.02)))

    async def arrive(self) -> None:
        self._arrived += 1
        choice = [by_template("one"), by_template("two"), *(by_name(name) for name in SHARED)]
        chosen = self.dice.sample(choice, self.dice.choice((1, 1, 2)))
        entries = [{**entry, "name": f"e{at}"} for at, entry in enumerate(chosen)]
        self.here.add(pod(f"p{self._arrived:02}", *entries, cpu=self.dice.choice(("100m", "400m"))))

    async def leave(self) -> None:
        await self.here.delete("pod", self.any_of(self.here.pods))

    async def end(self) -> None:
        running = [name for name in self.here.pods if self.here.node_of(name)]
        await self.here.finish(self.any_of(running))

    async def fault(self) -> None:
        how = self.dice.choice(
            (
                {"error": unavailable()},
                {"error": throttled(0)},
                {"lose_answer": True},
                {"cut": True},
                {"delay": 0.1},
            )
        )
        verbs = frozenset({self.dice.choice(VERBS)})
        trouble = Trouble(
            verbs=verbs, resource=self.dice.choice(RESOURCES), times=self.dice.randint(1, 3), **how
        )
        self.here.server.faults.add(trouble)

    async def crash(self) -> None:
        await self.here.kill()
        self.here.server.faults.clear()
        # Kopf ends the tasks of this process that are younger than itself, those that serve our connections, too.
        await self.here.user.close()
        self.here.user = Api.at(self.here.server.url)
        await self.here.start()

    async def unrule(self) -> None:
        await self.here.delete("rule", self.any_of(self.here.rules))

    async def unclaim(self) -> None:
        await self.here.delete("claim", self.any_of(self.here.claims))

    async def cordon(self) -> None:
        await self.schedulable(self.any_of(NODES), be=self.dice.random() < 0.5)

    async def touch(self) -> None:
        name = self.any_of(self.here.pods)
        await self.here.patch("pod", name, {"metadata": {"labels": {"at": str(self._arrived)}}})

    async def pause(self) -> None:
        await asyncio.sleep(self.dice.choice((0.02, 0.1, 0.3)))

    async def schedulable(self, name: str, *, be: bool) -> None:
        body = {"spec": {"unschedulable": not be}}
        path = f"/api/v1/nodes/{name}"
        await self.here.user.request("PATCH", path, body=body, content_type="application/merge-patch+json")

    def any_of(self, names: object) -> str:
        found = sorted(names)  # type: ignore[call-overload]  # dicts and lists of names alike
        if not found:
            raise ApiError("nothing there yet")
        return str(self.dice.choice(found))

    async def calm(self) -> None:
        """The weather clears: nodes are mended, users put back what they took."""
        self.here.server.faults.clear()
        for name in NODES:
            await self.schedulable(name, be=True)

    async def clear(self) -> None:
        """Running pods go, so that those that wait get through, until none waits."""
        async with asyncio.timeout(30.0):
            while any(self.here.is_gated(name) for name in self.here.pods):
                self.here.add(*(claim(name) for name in SHARED if name not in self.here.claims))
                for name in [name for name in self.here.pods if not self.here.is_gated(name)]:
                    await self.here.delete("pod", name)
                await asyncio.sleep(0.1)


def cluster() -> list[Obj]:
    found = [device_class(), policy(), template("one"), template("two", requests(count=2))]
    for name, devices in NODES.items():
        found += [node(name, cpu="2"), slice_(name, devices)]
    return [*found, *(claim(name) for name in SHARED)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("generate", ["never", "always"])
async def test_after_the_storm_all_is_well(seed: int, generate: str) -> None:
    standins = ("binding", "kubelet") + (("claims",) if generate == "never" else ())
    async with World(*standins, settle_seconds=0.05, generate_claims=generate, sweep_seconds=0.2) as here:
        here.add(*cluster())
        await here.start()
        storm = Storm(here, random.Random(seed))
        await storm.blow(40)
        await storm.calm()
        await storm.clear()
        for name in list(here.pods):
            await here.delete("pod", name)
        await here.until(lambda: here.devices() == {})
        assert here.operator is not None
        taken = here.operator.cluster.allocated_state()
        await here.until(lambda: not taken.devices)
        assert storm.doubles == set()
