"""What a new operator touches before its first decision: what the one before it may have had in hand, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.model.marks import EPOCH
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault

from .objects import by_name, claim, device_class, node, pod, policy, slice_
from .world import World

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.store import Change

STOCK = ("claims", "binding", "kubelet")
CLUSTER = (
    node("n1"),
    slice_("n1", 2),
    device_class(),
    policy(),
    *(claim(name) for name in ("runs", "half", "waits")),
)


class Touched:
    """Names of the objects whose epoch has changed, in order."""

    def __init__(self, here: World) -> None:
        self.names: list[str] = []
        here.server.store.listen_all(self._changed)

    def _changed(self, change: Change, resource: tuple[str, str]) -> None:
        before = change.previous.obj["metadata"] if change.previous else {}
        after = change.record.obj["metadata"]
        if epoch(after) and epoch(after) != epoch(before):
            self.names.append(f"{resource[1]} {after['name']}")


def epoch(metadata: dict[str, dict[str, str]]) -> str:
    return metadata.get("annotations", {}).get(EPOCH, "")


@pytest.mark.parametrize("step", ["resourceclaims", "resourceclaims/status", "pods"])
async def test_what_was_in_flight_is_touched_and_what_waits_or_runs_is_not(step: str) -> None:
    """The predecessor died with one pod half served: its claim not marked yet, marked, or allocated."""
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        await here.start()
        here.add(pod("runs", by_name("runs")))
        await here.until(lambda: here.node_of("runs"))
        await here.settle()
        trap = here.trap(step, name="half", cut=True, times=1_000)
        here.add(pod("half", by_name("half")))
        await here.trapped(trap)
        await here.kill()
        here.server.faults.clear()
        here.add(pod("waits", by_name("waits"), cpu="1000"))
        touched = Touched(here)

        await here.start()

        (rule,) = here.rules
        in_flight = {
            "resourceclaims": set(),
            "resourceclaims/status": {"resourceclaims half", "pods half"},
            "pods": {"resourceclaims half", "pods half"},
        }
        first = touched.names[: len(in_flight[step]) + 1]
        assert set(first) == in_flight[step] | {f"devicetaintrules {rule}"}
        await here.until(lambda: here.node_of("half"))
        await here.settle_but_timers()
        assert not [name for name in touched.names if name.endswith(("runs", "waits"))]
        assert here.held_twice() == []


async def test_a_pod_that_waits_for_our_binding_is_touched_with_its_claim() -> None:
    async with World("claims", "kubelet") as here:
        here.add(*CLUSTER)
        await here.start()
        trap = here.trap("pods/binding", verb="create", cut=True, times=1_000)
        here.add(pod("half", by_name("half"), gates=(), schedulerName="dra-operator"))
        await here.trapped(trap)
        await here.kill()
        here.server.faults.clear()
        touched = Touched(here)

        await here.start()

        assert {"resourceclaims half", "pods half"} <= set(touched.names)
        await here.until(lambda: here.node_of("half"))


async def test_a_conflict_about_what_has_not_changed_is_no_touch() -> None:
    """Admission, or something between us and the server, may answer so; the predecessor's write would still be served."""
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        await here.start()
        trap = here.trap("resourceclaims/status", name="half", cut=True, times=1_000)
        here.add(pod("half", by_name("half")))
        await here.trapped(trap)
        await here.kill()
        here.server.faults.clear()
        (rule,) = here.rules
        conflict = StatusError(409, "Conflict", "not now")
        for kind in ("resourceclaims", "pods", "devicetaintrules"):
            here.server.faults.add(Fault(error=conflict, verbs=frozenset({"patch"}), resource=kind, times=2))
        touched = Touched(here)

        await here.start()

        assert set(touched.names[:3]) == {"resourceclaims half", "pods half", f"devicetaintrules {rule}"}
        await here.until(lambda: here.node_of("half"))
