"""Whom a taint of devices touches (cp T-1…T-9): allocations with their tolerations in, claims and pods with the time that is left to them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.model import (
    DeviceId,
    DeviceTaint,
    DeviceTaintSelector,
    Pod,
    ResourceClaim,
    ResourceSlice,
    from_object,
)
from dra_operator.simulation.eviction import published, selects, touched
from dra_operator.testing.builders import (
    allocation,
    claim,
    devices,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
)

if TYPE_CHECKING:
    from dra_operator.testing.builders import Obj

DRIVER = "gpu.test"
ALL = DeviceTaintSelector()
HOT = DeviceTaint("hot", "yes", "NoExecute")


def toleration(**more: Any) -> Obj:
    return {"key": "hot", "operator": "Exists", "effect": "NoExecute", **more}


def held(
    *tolerations: Obj, device: str = "gpu-0", users: tuple[str, ...] = ("p",), **more: Any
) -> ResourceClaim:
    """A claim `c` that holds a device, reserved for pods."""
    raw = claim("c", request("gpu", "gpu"))
    found = result("gpu", DRIVER, "n1", device, **({"tolerations": list(tolerations)} if tolerations else {}))
    consumers = [{"resource": "pods", "name": name, "uid": f"{name}-uid"} for name in users]
    raw["status"] = {"allocation": allocation(found, node="n1"), "reservedFor": consumers, **more}
    return from_object(ResourceClaim, raw)


def running(name: str = "p", *, bound: bool = True, **more: Any) -> Pod:
    spec: dict[str, Any] = {"nodeName": "n1"} if bound else {}
    raw = pod(name, pod_claim("gpu", claim="c"), **spec, **more)
    raw["metadata"]["uid"] = f"{name}-uid"
    return from_object(Pod, raw)


def seconds(*tolerations: Obj, taint: DeviceTaint = HOT) -> int | None:
    (one,) = touched(taint, ALL, [held(*tolerations)], [running()])
    return one.seconds


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (None, False),
        (DeviceTaintSelector(), True),
        (DeviceTaintSelector(driver=DRIVER), True),
        (DeviceTaintSelector(driver=DRIVER, pool="n1", device="gpu-0"), True),
        (DeviceTaintSelector(driver=DRIVER, pool="n2"), False),
        (DeviceTaintSelector(device="gpu-1"), False),
    ],
)
def test_a_rule_selects_by_each_field_that_is_set_and_without_a_selector_nothing(
    selector: DeviceTaintSelector | None, *, found: bool
) -> None:
    """Cp T-2."""
    assert selects(selector, DeviceId(DRIVER, "n1", "gpu-0")) is found
    assert bool(touched(HOT, selector, [held()], [running()])) is found


def test_a_pod_goes_at_once_if_nothing_tolerates_the_taint() -> None:
    """Cp T-7."""
    (one,) = touched(HOT, ALL, [held()], [running()])

    assert (one.claim, one.seconds, [pod.key for pod in one.pods]) == ("default/c", 0, ["default/p"])
    assert one.devices == (DeviceId(DRIVER, "n1", "gpu-0"),)


def test_only_a_toleration_that_names_the_effect_counts() -> None:
    """Cp T-5, T-6: one for any effect lets the device be allocated, and does not keep the pod."""
    assert seconds(toleration()) is None
    assert seconds({"key": "hot", "operator": "Exists"}) == 0
    assert seconds(toleration(key="cold")) == 0
    assert seconds({"key": "hot", "value": "no", "effect": "NoExecute"}) == 0
    assert seconds({"key": "hot", "value": "yes", "effect": "NoExecute"}) is None


def test_the_shortest_of_several_tolerations_counts_unless_one_is_for_ever() -> None:
    """Cp T-7."""
    assert seconds(toleration(tolerationSeconds=300), toleration(tolerationSeconds=20)) == 20
    assert seconds(toleration(tolerationSeconds=-5)) == 0
    assert seconds(toleration(tolerationSeconds=20), toleration()) is None


@pytest.mark.parametrize("effect", ["NoSchedule", "None", "Later"])
def test_other_effects_touch_claims_and_evict_nobody(effect: str) -> None:
    """Cp T-3."""
    (one,) = touched(DeviceTaint("hot", "", effect), ALL, [held()], [running()])

    assert one.seconds is None


def test_only_pods_on_nodes_for_which_the_claim_is_reserved_go() -> None:
    """Cp T-9."""
    waiting, other = running("waits", bound=False), running("other")
    (one,) = touched(HOT, ALL, [held(users=("p", "waits"))], [running(), waiting, other])

    assert [pod.metadata.name for pod in one.pods] == ["p"]


def test_pods_of_a_group_for_which_the_claim_is_reserved_go() -> None:
    """Cp T-9."""
    member = running("member", schedulingGroup={"podGroupName": "g"})
    group = [{"resource": "podgroups", "apiGroup": "scheduling.k8s.io", "name": "g", "uid": "g-uid"}]
    (one,) = touched(HOT, ALL, [held(reservedFor=group)], [member, running("other")])

    assert [pod.metadata.name for pod in one.pods] == ["member"]


def test_what_holds_no_such_device_or_nothing_is_not_touched() -> None:
    selector = DeviceTaintSelector(device="gpu-1")
    pending = from_object(ResourceClaim, claim("c", request("gpu", "gpu")))

    assert touched(HOT, selector, [held(), pending], [running()]) == []


def test_of_a_pool_only_the_newest_generation_is_published() -> None:
    """Cp T-19."""
    slices = [
        from_object(ResourceSlice, resource_slice(name, DRIVER, found, node="n1", generation=generation))
        for name, found, generation in (("a", devices(3), 1), ("b", devices(1), 2))
    ]

    assert published(ALL, slices) == [DeviceId(DRIVER, "n1", "gpu-0")]
    assert published(None, slices) == []
