"""What a listener hears, and what is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.allocator import (
    AllocatedState,
    Allocator,
    Collector,
    Options,
    Rejection,
    RequestRef,
    Why,
)
from dra_operator.errors import NodeFailure, NoSolution, SearchLimitReached
from dra_operator.model import OWNED_TAINT, AllocationResult, DeviceId, PoolId
from dra_operator.model import ResourceClaimStatus as Status
from dra_operator.testing import builders as make

from .worlds import DRIVER, NODE, allocate, alternative, claim, gpus, inputs, request

if TYPE_CHECKING:
    from dra_operator.allocator import Inputs
    from dra_operator.model import ResourceClaim

REF = RequestRef("default/c", "r")


def heard(world: Inputs, *claims: ResourceClaim) -> Collector:
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(world, *claims, reporter=collector)
    return collector


def reasons(collector: Collector, ref: RequestRef = REF) -> dict[str, Rejection]:
    return {device.device: rejection for device, rejection in collector.devices[ref].items()}


def test_every_refused_device_has_its_reason() -> None:
    model = f'device.attributes["{DRIVER}"].model == "big"'
    taint = {"key": "sick", "value": "yes", "effect": "NoExecute"}
    world = inputs(
        [
            gpus(
                make.device("used", attributes={"model": "big"}),
                make.device("small", attributes={"model": "small"}),
                make.device("sick", attributes={"model": "big"}, taints=[taint]),
            ),
            make.resource_slice("t", "nic.dra.test", [make.device("nic")], node="n1"),
        ],
        used=["used"],
    )
    assert reasons(heard(world, claim(request("r", "gpu", model)))) == {
        "used": Rejection(Why.IN_USE),
        "small": Rejection(Why.REQUEST_SELECTOR, model),
        "sick": Rejection(Why.TAINT, "sick=yes:NoExecute"),
        "nic": Rejection(Why.CLASS_SELECTOR, f'device.driver == "{DRIVER}"'),
    }


def test_a_device_that_another_request_of_the_pod_takes() -> None:
    collector = heard(inputs([gpus(make.device("a"))]), claim(request("q"), request("r")))
    assert reasons(collector) == {"a": Rejection(Why.TAKEN)}
    assert collector.fitted == {RequestRef("default/c", "q"): {DeviceId(DRIVER, "n1", "a")}}


def test_a_lasting_reason_outlives_taken() -> None:
    """`a` is taken by q first; when q gives it back, r still refuses it for its constraint."""
    slices = [gpus(make.device("a"), make.device("b"))]
    collector = heard(
        inputs(slices),
        claim(
            request("q"),
            request("r", count=2),
            constraints=[{"matchAttribute": f"{DRIVER}/numa", "requests": ["r"]}],
        ),
    )
    assert reasons(collector)["a"] == Rejection(
        Why.CONSTRAINT,
        f"spec.devices.constraints[0].matchAttribute {DRIVER}/numa: the device does not have it",
    )


def test_pools_and_requests_have_reasons_of_their_own() -> None:
    incomplete = make.resource_slice("s", DRIVER, [make.device("a")], node="n1", resourceSliceCount=2)
    twice = [
        make.resource_slice(name, "nic.dra.test", [make.device("x")], node="n1", resourceSliceCount=2)
        for name in "ab"
    ]
    collector = Collector()
    with pytest.raises(NodeFailure, match=r"pool nic\.dra\.test/n1: duplicate device name x"):
        allocate(inputs([incomplete, *twice]), claim(request("r", "nic")), reporter=collector)
    assert collector.pools == {
        PoolId(DRIVER, "n1"): Rejection(Why.POOL_INCOMPLETE, "1 of 2 slices are published"),
        PoolId("nic.dra.test", "n1"): Rejection(
            Why.POOL_INVALID,
            "duplicate device name x: ResourceSlice b has it in spec.devices[0], ResourceSlice a as well",
        ),
    }


def test_mode_all_without_members() -> None:
    collector = heard(inputs([]), claim(request("r", allocationMode="All")))
    assert collector.requests == {REF: Rejection(Why.NO_MEMBERS)}


def test_the_end_is_told_with_the_steps() -> None:
    collector = Collector()
    tried = Allocator(inputs([gpus(make.device("a"))]), Options(), collector)
    tried.allocate(NODE, [claim(request("r"))])
    assert (collector.steps, tried.steps) == (4, 4)
    tried.allocate(NODE, [claim(request("r"))])
    assert tried.steps == 8


# --- options


def test_the_mark_on_our_own_pools_does_not_keep_us_off() -> None:
    """Architecture, section 2."""
    world = inputs([gpus(make.device("a", taints=[{"key": OWNED_TAINT, "effect": "NoSchedule"}]))])
    assert allocate(world, claim(request("r")), options=Options(ignored_taints=frozenset({OWNED_TAINT}))) == [
        ["a"]
    ]
    assert reasons(heard(world, claim(request("r")))) == {
        "a": Rejection(Why.TAINT, f"{OWNED_TAINT}:NoSchedule")
    }


def test_a_step_limit_says_that_nothing_is_known() -> None:
    world = inputs([gpus(*make.devices(12))])
    with pytest.raises(SearchLimitReached, match="after 50 search steps"):
        allocate(world, claim(request("r", count=13)), options=Options(max_steps=50))


def test_looks_at_devices_end_a_search_that_takes_few_steps() -> None:
    """One step looks at all devices that are left: among many that do not go together, the square of their number."""
    devices = [make.device(f"d{number}", attributes={"serial": f"{number}"}) for number in range(300)]
    wanted = claim(request("r", count=2), constraints=[{"matchAttribute": f"{DRIVER}/serial"}])
    with pytest.raises(SearchLimitReached, match="after 5000 looks at devices") as caught:
        allocate(inputs([gpus(*devices)]), wanted, options=Options(max_looks=5_000))
    assert caught.value.steps < 50


def test_each_constraint_is_a_look_of_its_own() -> None:
    devices = [
        make.device(f"d{number}", attributes={"serial": f"{number}", "model": "x"}) for number in range(100)
    ]
    same = {"matchAttribute": f"{DRIVER}/model"}
    wanted = claim(request("r", count=2), constraints=[same] * 20 + [{"matchAttribute": f"{DRIVER}/serial"}])
    with pytest.raises(SearchLimitReached) as caught:
        allocate(inputs([gpus(*devices)]), wanted, options=Options(max_looks=5_000))
    assert caught.value.steps < 10


def test_no_step_limit() -> None:
    with pytest.raises(NoSolution):
        allocate(
            inputs([gpus(*make.devices(8))]), claim(request("r", count=9)), options=Options(max_steps=None)
        )


# --- inputs


def test_a_pod_of_many_large_claims_is_no_problem_for_the_stack() -> None:
    """The search keeps its own stack: 40 claims of 32 devices are 1,280 choices deep."""
    slices = [
        make.resource_slice(f"s{number:02}", DRIVER, make.devices(32), node="n1", pool=f"p{number:02}")
        for number in range(40)
    ]
    claims = [claim(request("r", count=32), name=f"c{number}") for number in range(40)]
    assert [len(names) for names in allocate(inputs(slices), *claims)] == [32] * 40


def test_the_status_of_a_claim_is_not_looked_at() -> None:
    """It may hold an allocation (alloc I-3)."""
    allocated = claim(request("r"))
    again = type(allocated)(allocated.metadata, allocated.spec, Status(allocation=AllocationResult()))
    assert allocate(inputs([gpus(make.device("a"))]), again) == [["a"]]


def test_no_claims() -> None:
    """An empty answer, not an error (alloc I-4)."""
    assert allocate(inputs([])) == []


def test_a_device_with_shares_in_use_does_not_become_dedicated() -> None:
    """Upstream hands it out under its users (alloc Q-8)."""
    state = AllocatedState(shared=frozenset({DeviceId(DRIVER, "n1", "a")}))
    collector = heard(inputs([gpus(make.device("a"))], state=state), claim(request("r")))
    assert reasons(collector) == {"a": Rejection(Why.IN_USE, "shares of it")}


def test_the_second_choice_of_a_list() -> None:
    world = inputs([gpus(make.device("a"))])
    wanted = make.first_available("r", alternative("two", count=2), alternative("one"))
    assert allocate(world, claim(wanted)) == [["a"]]
