"""What the demo tells about pods, in whatever order pods, claims and events arrive."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.kube import Api
from dra_operator.testing.builders import allocation, claim, pod, pod_claim, request, result
from dra_operator.testing.demo.errors import DemoFailed
from dra_operator.testing.demo.mirror import Mirror
from dra_operator.testing.demo.narrator import Narrator
from dra_operator.testing.demo.screen import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dra_operator.testing.demo.facts import Obj

SERVED = "pod default/p → n1: gpu-0 (gpu.example.com)"
GONE = "pod default/p is gone; came free on n1: gpu-0 (gpu.example.com)"


class Audience(Screen):
    """Keeps the news."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def news(self, text: str) -> None:
        self.heard.append(text)


class Theatre:
    """A mirror that tests write into, and a narrator."""

    def __init__(self, api: Api) -> None:
        self.mirror = Mirror(api)
        self.audience = Audience()
        self.narrator = Narrator(self.mirror, self.audience)

    def see(self, kind: str, obj: Obj, event: str = "MODIFIED") -> None:
        self.mirror._apply(kind, {"type": event, "object": obj})


@pytest.fixture
async def theatre() -> AsyncIterator[Theatre]:
    async with Api.at("http://127.0.0.1:1") as api:
        yield Theatre(api)


def running(name: str = "p") -> Obj:
    made = pod(name, pod_claim("gpu", template="gpu"), nodeName="n1")
    made["metadata"]["uid"] = f"uid-{name}"
    return made | {"status": {"phase": "Running"}}


def allocated(owner: str = "p") -> Obj:
    made = claim(f"{owner}-gpu", request("gpu", "gpu"))
    made["metadata"] |= {"uid": f"uid-{owner}-gpu", "ownerReferences": [{"uid": f"uid-{owner}"}]}
    consumer = {"resource": "pods", "name": owner, "uid": f"uid-{owner}"}
    held = allocation(result("gpu", "gpu.example.com", "n1", "gpu-0"), node="n1")
    return made | {"status": {"allocation": held, "reservedFor": [consumer]}}


def warning(message: str, component: str = "dra-operator", **more: Any) -> Obj:
    return {
        "metadata": {"name": f"e-{message}", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "type": "Warning",
        "reason": "AllocationFailed",
        "message": message,
        "source": {"component": component},
        **more,
    }


@pytest.mark.parametrize("order", list(itertools.permutations([("pods", 0), ("claims", 1)])))
def test_a_served_pod_is_told_once_in_any_order(theatre: Theatre, order: list[tuple[str, int]]) -> None:
    objects = [running(), allocated()]
    for kind, number in [*order, *order]:
        theatre.see(kind, objects[number])
    assert theatre.audience.heard == [SERVED]


def test_a_pod_that_does_not_run_yet_is_not_told(theatre: Theatre) -> None:
    theatre.see("claims", allocated())
    theatre.see("pods", running() | {"status": {"phase": "Pending"}})
    assert theatre.audience.heard == []


def test_devices_are_free_when_pod_and_claim_are_gone(theatre: Theatre) -> None:
    theatre.see("pods", running())
    theatre.see("claims", allocated())
    theatre.see("pods", running(), "DELETED")
    assert theatre.audience.heard == [SERVED]
    theatre.see("claims", allocated(), "DELETED")
    assert theatre.audience.heard == [SERVED, GONE]


def test_devices_came_free_although_the_next_pod_has_them_already(theatre: Theatre) -> None:
    theatre.see("pods", running())
    theatre.see("claims", allocated())
    theatre.see("claims", allocated("q"))
    theatre.see("claims", allocated(), "DELETED")
    theatre.see("pods", running(), "DELETED")
    assert theatre.audience.heard == [SERVED, GONE]


def test_reasons_are_told_when_they_change(theatre: Theatre) -> None:
    for event in (warning("a"), warning("a", count=2), warning("b")):
        theatre.see("events", event)
    heard = [text.rpartition(": ")[2] for text in theatre.audience.heard]
    assert heard == ["a", "b"]


def test_events_of_others_are_not_told(theatre: Theatre) -> None:
    theatre.see("events", warning("a", component="default-scheduler"))
    assert theatre.audience.heard == []


async def test_what_does_not_happen_in_time_ends_the_demo(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_operator.testing.demo.mirror.PATIENCE", 0.0)
    with pytest.raises(DemoFailed, match="in vain until pigs fly"):
        await theatre.mirror.until(lambda: False, "pigs fly")


def test_an_error_in_a_watch_ends_the_demo(theatre: Theatre) -> None:
    with pytest.raises(DemoFailed, match="too old"):
        theatre.see("pods", {"message": "too old resource version"}, "ERROR")
