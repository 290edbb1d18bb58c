"""What the last look of the storm finds: pods that are forgotten, and what is left over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.ledger import FINALIZER
from tests.chaos.rest import GATE, OPERATOR, Picture, wrong

Object = dict[str, Any]

DRIVER = "d"


def claim(name: str = "c", device: str = "", user: str = "", *, guarded: bool = True, **spec: Any) -> Object:
    result = {"driver": DRIVER, "pool": "n", "device": device}
    allocation = {"allocation": {"devices": {"results": [result]}}} if device else {}
    return {
        "metadata": {"name": name, "namespace": "ns", "finalizers": [FINALIZER] if guarded else []},
        "spec": {"devices": {"requests": [{"exactly": spec}]}},
        "status": {**allocation, "reservedFor": [{"uid": user, "resource": "pods"}] if user else []},
    }


def pod(name: str = "p", of: str = "c", *, gated: bool = True, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {
            "schedulingGates": [{"name": GATE}] if gated else [],
            "resourceClaims": [{"name": "r", "resourceClaimName": of}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def event(uid: str, component: str = OPERATOR) -> Object:
    return {"involvedObject": {"uid": uid}, "source": {"component": component}}


NODE = {"metadata": {"name": "n"}, "spec": {}}
SLICE = {
    "spec": {
        "driver": DRIVER,
        "nodeName": "n",
        "pool": {"name": "n"},
        "devices": [{"name": "x"}, {"name": "y"}],
    }
}
BARE = Picture(pods=[], claims=[], slices=[SLICE], nodes=[NODE], events=[], namespace="ns", driver=DRIVER)


def test_served_and_waiting_pods_are_at_rest() -> None:
    served = pod("served", "mine", gated=False, nodeName="n")
    waiting = pod("waiting", "also")
    claims = [claim("mine", "x", "served"), claim("other", "y", "served"), claim("also", guarded=False)]
    picture = replace(BARE, pods=[served, waiting], claims=claims, events=[event("waiting")])
    assert wrong(picture) == []


@pytest.mark.parametrize("told", [[], [event("p", "somebody-else")], [event("q")]])
def test_pod_that_waits_without_a_word(told: list[Object]) -> None:
    picture = replace(BARE, pods=[pod()], events=told)
    assert wrong(picture) == ["pod p waits, and nobody has said why"]


def test_word_in_the_condition_is_enough_but_not_that_it_is_gated() -> None:
    bound_by_us = pod(gated=False, schedulerName=OPERATOR)
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no device"}
    bound_by_us["status"]["conditions"] = [gated]
    assert wrong(replace(BARE, pods=[bound_by_us])) == ["pod p waits, and nobody has said why"]
    bound_by_us["status"]["conditions"] = [told]
    assert wrong(replace(BARE, pods=[bound_by_us])) == []


def test_released_pod_that_is_not_bound() -> None:
    assert wrong(replace(BARE, pods=[pod(gated=False)])) == ["pod p was released and is not bound"]


def test_pod_that_waits_beside_devices_that_nobody_holds() -> None:
    picture = replace(BARE, pods=[pod()], claims=[claim(guarded=False)], events=[event("p")])
    assert wrong(picture) == ["pod p waits for 1, and node n has 2 devices that nobody holds"]
    three = claim(guarded=False, count=3)
    assert wrong(replace(picture, claims=[three])) == []
    cordoned = {**NODE, "spec": {"unschedulable": True}}
    assert wrong(replace(picture, nodes=[cordoned])) == []


def test_leftovers() -> None:
    assert wrong(replace(BARE, claims=[claim()])) == ["claim ns/c has a finalizer and no allocation"]
    assert wrong(replace(BARE, claims=[claim(device="x")])) == [
        "claim ns/c is allocated but reserved for nobody"
    ]
    gone = wrong(replace(BARE, claims=[claim(device="x", user="gone")]))
    assert gone == ["claim ns/c is reserved for pods that do not exist: gone"]


def test_device_of_a_ghost() -> None:
    picture = replace(BARE, claims=[claim(device="z", user="p")], pods=[pod(gated=False, nodeName="n")])
    assert wrong(picture) == ["device d/n/z is held by ns/c and published by nobody"]


def test_devices_of_other_drivers_lie_idle_for_nobody_who_waits() -> None:
    other = claim(guarded=False, deviceClassName="other")
    assert wrong(replace(BARE, pods=[pod()], claims=[other], events=[event("p")])) == []
