"""What is kept between calls: the same for requests that ask for the same, and only for those; nothing that one call took or whose claim asked."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Allocator, Options
from dra_operator.errors import CelRuntimeError, DraError, NoSolution
from dra_operator.testing import builders as make

from .worlds import NODE, allocate, claim, gpus, inputs, request

SMALL = 'device.attributes["gpu.dra.test"].size == "small"'
BIG = 'device.attributes["gpu.dra.test"].size == "big"'
TOLERATING: dict[str, Any] = {"tolerations": [{"key": "broken", "operator": "Exists"}]}
TAINT = {"key": "broken", "effect": "NoSchedule"}

DEVICES = gpus(
    make.device("a", attributes={"size": "small"}, capacity={"memory": "10Gi"}, taints=[TAINT]),
    make.device("b", attributes={"size": "small"}, capacity={"memory": "10Gi"}),
    make.device("c", attributes={"size": "big"}, capacity={"memory": "40Gi"}),
)

ASKS: dict[str, Any] = {
    "anything": request("r"),
    "small": request("r", "gpu", SMALL),
    "big": request("r", "gpu", BIG),
    "tolerating": request("r", "gpu", SMALL, **TOLERATING),
    "20Gi": request("r", capacity={"requests": {"memory": "20Gi"}}),
    "5Gi": request("r", capacity={"requests": {"memory": "5Gi"}}),
    "all small, tolerating": request("r", "gpu", SMALL, allocationMode="All", **TOLERATING),
    "all big": request("r", "gpu", BIG, allocationMode="All"),
    "a look": request("r", "gpu", SMALL, adminAccess=True),
}


def answer(allocator: Allocator, asked: Any, name: str = "c") -> list[str] | str:
    """Names of the devices that a claim gets, or what is raised."""
    try:
        (result,) = allocator.allocate(NODE, [claim(asked, name=name)])
    except DraError as error:
        return type(error).__name__
    return [device.device for device in result.devices.results]


@pytest.mark.parametrize("first", ASKS)
@pytest.mark.parametrize("then", ASKS)
def test_an_answer_is_what_it_would_be_without_a_call_before(first: str, then: str) -> None:
    asked, kept = inputs([DEVICES], used=["b"]), Allocator(inputs([DEVICES], used=["b"]), Options())
    answer(kept, ASKS[first])
    assert answer(kept, ASKS[then]) == answer(Allocator(asked, Options()), ASKS[then])


@pytest.mark.parametrize("ask", ASKS)
def test_what_a_call_took_the_next_one_can_have(ask: str) -> None:
    """A call's decision is its caller's to write: nothing is held by having been found (alloc I-5)."""
    allocator = Allocator(inputs([DEVICES]), Options())
    assert answer(allocator, ASKS[ask]) == answer(allocator, ASKS[ask])


def test_an_error_names_the_claim_that_asks_now() -> None:
    """Also where an equal request has met it before (alloc L-4)."""
    missing = 'device.attributes["gpu.dra.test"].speed == 1'
    allocator = Allocator(inputs([DEVICES]), Options())
    for name in ("one", "two"):
        with pytest.raises(CelRuntimeError, match=f"claim default/{name}: selector #0 on device"):
            allocator.allocate(NODE, [claim(request("r", "gpu", missing), name=name)])


def test_equal_requests_of_one_call_do_not_share_what_they_take() -> None:
    world = inputs([DEVICES])
    assert allocate(world, claim(ASKS["tolerating"], name="one"), claim(ASKS["tolerating"], name="two")) == [
        ["a"],
        ["b"],
    ]
    with pytest.raises(NoSolution):
        allocate(world, *(claim(ASKS["tolerating"], name=name) for name in ("one", "two", "three")))
