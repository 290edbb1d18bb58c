"""What drivers report in `status.devices` of a claim is theirs: no write of ours changes it but by giving the device back (cp V-61, V-62)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.testing.fakeapi.options import WriteOptions

from .objects import by_name, claim, device_class, node, pod, policy, requests, slice_
from .world import Interloper, World, world

if TYPE_CHECKING:
    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy(), claim("c", requests(count=2)))
COOPERATE = ("claims", "binding", "kubelet")
REPLACE = ("binding", "kubelet")


def reports(here: World, name: str, port: int) -> list[Obj]:
    """What a driver has to say of each device: conditions, data of its own, addresses."""
    results = here.claims[name]["status"]["allocation"]["devices"]["results"]
    return [
        {
            "driver": result["driver"],
            "pool": result["pool"],
            "device": result["device"],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Up",
                    "message": "",
                    "lastTransitionTime": "2026-11-01T12:00:00Z",
                }
            ],
            "data": {"port": port + index, "unknown": {"to": ["us"]}},
            "networkData": {"interfaceName": f"net{index}", "ips": ["10.9.8.1/24"]},
        }
        for index, result in enumerate(results)
    ]


async def report(here: World, name: str, port: int = 7) -> list[Obj]:
    """Have the driver report; returns what it said, as stored."""
    await here.patch("claim", name, {"status": {"devices": reports(here, name, port)}}, "status")
    return devices(here, name)


def devices(here: World, name: str) -> list[Obj]:
    found: list[Obj] = here.claims[name].get("status", {}).get("devices") or []
    return found


def consumers(here: World, name: str) -> list[str]:
    return sorted(entry["name"] for entry in here.claims[name].get("status", {}).get("reservedFor") or [])


@pytest.mark.parametrize("mode", ["cooperate", "replace"])
async def test_reservations_come_and_go_beside_it(mode: str) -> None:
    standins = COOPERATE if mode == "cooperate" else REPLACE
    async with world(*standins, objects=CLUSTER, mode=mode) as here:
        here.add(pod("a", by_name("c")))
        await here.until(lambda: here.node_of("a"))
        said = await report(here, "c")
        assert len(said) == 2
        here.add(
            pod("b", by_name("c")),
            pod("d", by_name("c"), gates=(), schedulerName="dra-operator"),
            pod("e", by_name("c"), gates=(), nodeName="n1"),
        )
        await here.until(lambda: consumers(here, "c") == ["a", "b", "d", "e"])
        assert devices(here, "c") == said
        await here.finish("b")
        await here.until(lambda: consumers(here, "c") == ["a", "d", "e"])
        await here.settle_but_timers()
        assert devices(here, "c") == said


async def test_a_report_between_our_read_and_our_write_is_not_lost() -> None:
    """The reservation is refused, and made anew on what is there then."""
    async with world(*COOPERATE, objects=CLUSTER) as here:
        here.add(pod("a", by_name("c")))
        await here.until(lambda: here.node_of("a"))
        machinery = here.server.machinery
        kind = machinery.kinds.stored(("resource.k8s.io", "resourceclaims"))
        said = reports(here, "c", 9)

        def speak() -> None:
            record = machinery.get(kind, ("default", "c"))
            changed: dict[str, Any] = {**record.obj, "status": {**record.obj["status"], "devices": said}}
            machinery.update(kind, ("default", "c"), changed, WriteOptions("driver", "status"))

        here.server.faults.add(Interloper("resourceclaims/status", speak))
        here.add(pod("b", by_name("c")))
        await here.until(lambda: here.node_of("b"))
        assert devices(here, "c") == said


async def test_a_restart_and_its_touches_leave_it() -> None:
    async with World(*COOPERATE) as here:
        here.add(*CLUSTER)
        await here.start()
        here.add(pod("a", by_name("c")))
        await here.until(lambda: here.node_of("a"))
        said = await report(here, "c")
        await here.kill()
        await here.start()
        here.add(pod("b", by_name("c")))
        await here.until(lambda: here.node_of("b"))
        assert devices(here, "c") == said


async def test_it_goes_with_the_device_and_not_before() -> None:
    """The last pod ends: the API server takes the entries away with the allocation; the next pod finds none of them."""
    async with world(*REPLACE, objects=CLUSTER, mode="replace") as here:
        here.add(pod("a", by_name("c")))
        await here.until(lambda: here.node_of("a"))
        said = await report(here, "c")
        await here.settle_but_timers()
        assert devices(here, "c") == said
        await here.finish("a")
        await here.until(lambda: not here.claims["c"].get("status", {}).get("allocation"))
        assert devices(here, "c") == []
