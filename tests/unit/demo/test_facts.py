"""What the demo reads out of raw objects."""

from __future__ import annotations

import pytest

from dra_operator.testing.builders import (
    allocation,
    claim,
    device,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
)
from dra_operator.testing.demo.facts import Held, Obj, attribute, devices_of, held_by, held_twice, in_words


def generated(name: str, owner: str, *devices: str, reserved: bool = True) -> Obj:
    """A claim of the pod with uid `owner`, with these devices of pool n1."""
    made = claim(name, request("gpu", "gpu"))
    made["metadata"] |= {"uid": f"uid-{name}", "ownerReferences": [{"uid": owner}]}
    if devices:
        results = (result("gpu", "gpu.example.com", "n1", device) for device in devices)
        made["status"] = {"allocation": allocation(*results, node="n1")}
    if reserved:
        made.setdefault("status", {})["reservedFor"] = [{"resource": "pods", "name": "p", "uid": owner}]
    return made


def held(*names: str, driver: str = "gpu.example.com") -> tuple[Held, ...]:
    return tuple(Held(driver, "n1", name, "gpu") for name in names)


POD = pod("p", pod_claim("gpu", template="gpu"))
POD["metadata"]["uid"] = "1"


def test_devices_of_a_claim_are_those_of_its_results() -> None:
    assert held_by(generated("a", "1", "gpu-0", "gpu-1")) == held("gpu-0", "gpu-1")


def test_a_claim_without_allocation_holds_nothing() -> None:
    assert held_by(generated("a", "1", reserved=False)) == ()


def test_devices_of_a_pod_are_those_reserved_for_it() -> None:
    claims = {
        "default/a": generated("a", "1", "gpu-0"),
        "default/b": generated("b", "1", "gpu-1", reserved=False),
        "default/c": generated("c", "2", "gpu-2"),
    }
    assert devices_of(POD, claims) == held("gpu-0")


def test_a_device_of_two_claims_is_found() -> None:
    claims = [generated("a", "1", "gpu-0", "gpu-1"), generated("b", "2", "gpu-1")]
    assert held_twice(claims) == ["gpu.example.com/n1/gpu-1"]


@pytest.mark.parametrize(("name", "value"), [("root", "pci0000:10"), ("index", 3), ("absent", None)])
def test_attributes_are_looked_up_by_device(name: str, value: object) -> None:
    published = device("gpu-0", attributes={"root": "pci0000:10", "index": 3})
    slices = [resource_slice("s", "gpu.example.com", [device("other"), published], node="n1")]
    assert attribute(slices, held("gpu-0")[0], name) == value


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ((), ""),
        (held("gpu-0", "gpu-1"), "gpu-0, gpu-1 (gpu.example.com)"),
        (held("gpu-0", "gpu-1", "gpu-2", "gpu-7"), "gpu-0…gpu-2, gpu-7 (gpu.example.com)"),
        (
            (*held("gpu-9"), *held("nic", driver="nic.example.com")),
            "gpu-9 (gpu.example.com) + nic (nic.example.com)",
        ),
    ],
)
def test_runs_of_devices_fold(devices: tuple[Held, ...], text: str) -> None:
    assert in_words(devices) == text
