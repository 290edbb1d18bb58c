"""A few lines to an allocation: what the allocator's unit tests are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.allocator import SILENT, AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import DeviceClass, DeviceId, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.allocator import Reporter
    from dra_operator.features import Features

DRIVER = "gpu.dra.test"
NODE = from_object(Node, make.node("n1", labels={"zone": "east", "cores": "64"}))
CLASSES = [make.device_class("gpu", driver=DRIVER), make.device_class("nic", driver="nic.dra.test")]
COMPILER = default_compiler()


def request(name: str, device_class: str = "gpu", *expressions: str, count: int = 1, **more: Any) -> Any:
    """A request with the defaults of the API server."""
    return make.request(
        name, device_class, *expressions, count=count, **{"allocationMode": "ExactCount", **more}
    )


def alternative(name: str, device_class: str = "gpu", *expressions: str, count: int = 1, **more: Any) -> Any:
    return make.alternative(
        name, device_class, *expressions, count=count, **{"allocationMode": "ExactCount", **more}
    )


def inputs(
    slices: Iterable[Any],
    *,
    features: Features = DEFAULT_1_37,
    used: Iterable[str] = (),
    state: AllocatedState | None = None,
) -> Inputs:
    """`used` are device names in pool `n1`."""
    classes = [from_object(DeviceClass, raw) for raw in CLASSES]
    taken = frozenset(DeviceId(DRIVER, "n1", name) for name in used)
    return Inputs(
        features=features,
        classes={each.metadata.name: each for each in classes},
        slices=SliceList(from_object(ResourceSlice, raw) for raw in slices),
        allocated=state or AllocatedState(devices=taken),
        selectors=COMPILER,
    )


def gpus(*devices: Any, **spec: Any) -> Any:
    """The slice `s` of pool `n1` with these devices, for node n1."""
    return make.resource_slice("s", DRIVER, devices, **({"node": "n1"} | spec))


def claim(*requests: Any, name: str = "c", **devices: Any) -> ResourceClaim:
    return from_object(ResourceClaim, make.claim(name, *requests, **devices))


def allocate(
    world: Inputs, *claims: ResourceClaim, options: Options | None = None, reporter: Reporter = SILENT
) -> list[list[str]]:
    """Names of the devices that each claim gets."""
    results = Allocator(world, options or Options(), reporter).allocate(NODE, claims)
    return [names(result.devices.results) for result in results]


def names(results: Sequence[Any]) -> list[str]:
    return [entry.device for entry in results]
