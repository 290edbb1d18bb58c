"""Admin access: requests that look at devices, whoever uses them (alloc R-8, S-11…S-13, O-4)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Allocator, Collector, Options, Rejection, RequestRef, Why
from dra_operator.errors import InvalidClaim, NoSolution
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.testing import builders as make

from .worlds import NODE, allocate, claim, gpus, inputs, request

TAINT = {"key": "broken", "effect": "NoSchedule"}


def look(name: str = "r", **more: Any) -> Any:
    """A request with admin access."""
    return request(name, adminAccess=True, **more)


def test_a_device_in_use_is_looked_at_and_the_result_says_so() -> None:
    world = inputs([gpus(make.device("a"))], used=["a"])
    (result,) = Allocator(world, Options()).allocate(NODE, [claim(look())])
    (device,) = result.devices.results
    assert (device.device, device.admin_access) == ("a", True)


def test_false_is_an_ordinary_request_and_the_result_says_nothing() -> None:
    """`adminAccess` is true or absent in results, never false (alloc O-4)."""
    world = inputs([gpus(make.device("a"), make.device("b"))], used=["a"])
    (result,) = Allocator(world, Options()).allocate(NODE, [claim(request("r", adminAccess=False))])
    (device,) = result.devices.results
    assert (device.device, device.admin_access) == ("b", None)


def test_all_devices_free_or_not() -> None:
    world = inputs([gpus(*make.devices(3))], used=["gpu-1"])
    assert allocate(world, claim(look(allocationMode="All"))) == [["gpu-0", "gpu-1", "gpu-2"]]


def test_one_claim_never_holds_a_device_twice() -> None:
    world = inputs([gpus(make.device("a"))], used=["a"])
    heard = Collector()
    with pytest.raises(NoSolution):
        allocate(world, claim(look("r"), look("q")), reporter=heard)
    assert list(heard.devices[RequestRef("default/c", "q")].values()) == [Rejection(Why.TAKEN)]


def test_an_ordinary_claim_first_shares_its_device_with_one_that_looks() -> None:
    world = inputs([gpus(make.device("a"))])
    assert allocate(world, claim(request("r")), claim(look(), name="eye")) == [["a"], ["a"]]


def test_a_claim_that_looks_first_takes_the_device_away_from_an_ordinary_one() -> None:
    """Upstream's order matters (alloc S-13)."""
    world = inputs([gpus(make.device("a"), make.device("b"))])
    assert allocate(world, claim(look(), name="eye"), claim(request("r"))) == [["a"], ["b"]]


def test_going_back_gives_the_device_back_to_the_right_claim() -> None:
    """The second request of the looking claim cannot be had with the first device, so both change places."""
    big = 'device.attributes["gpu.dra.test"].size == "big"'
    world = inputs(
        [gpus(make.device("a", attributes={"size": "big"}), make.device("b", attributes={"size": "small"}))]
    )
    eye = claim(look("any"), request("big", "gpu", big, adminAccess=True), name="eye")
    assert allocate(world, claim(request("r", "gpu", big)), eye) == [["a"], ["b", "a"]]


def test_taints_keep_it_off_as_they_do_anybody() -> None:
    world = inputs([gpus(make.device("a", taints=[TAINT]))])
    with pytest.raises(NoSolution):
        allocate(world, claim(look()))  # alloc T-6
    tolerated = look(tolerations=[{"key": "broken", "operator": "Exists"}])
    assert allocate(world, claim(tolerated)) == [["a"]]


@pytest.mark.parametrize("value", [True, False])
def test_with_the_gate_off_the_field_alone_is_an_error(value: bool) -> None:  # noqa: FBT001 - a case
    world = inputs(
        [gpus(make.device("a"))], features=Features(prioritized_list=DEFAULT_1_37.prioritized_list)
    )
    with pytest.raises(InvalidClaim, match="admin access is requested, but the feature is disabled"):
        allocate(world, claim(request("r", adminAccess=value)))
