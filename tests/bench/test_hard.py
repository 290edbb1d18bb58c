"""Problems whose plain search does not come back (oracle 5, alloc B.2 no. 2): solved or refuted within some hundred steps, by the product's own limits.

Families that grow: what upstream needs doubles with each device. Step counts are exact and the same on every machine.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.allocator import AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER = "gpu.dra.test"
COUNTED = {"allocationMode": "ExactCount"}
NODE = from_object(Node, make.node("n1"))
MOST = 500
"""Steps: five times as many as are taken plainly."""

COMPILER = default_compiler()


def has(name: str, value: object) -> str:
    """A selector by an attribute."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return f'device.attributes["{DRIVER}"].{name} == {text}'


def want(name: str, *selectors: str, count: int = 1, **more: Any) -> Any:
    return make.request(name, "any", *selectors, count=count, **COUNTED, **more)


def published(devices: Sequence[Any], **spec: Any) -> list[Any]:
    """A pool of slices of at most 64 devices, and one more for counters."""
    parts = [devices[at : at + 64] for at in range(0, len(devices), 64)]
    count = len(parts) + bool(spec)
    slices = [
        make.resource_slice(f"s{at}", DRIVER, part, node="n1", resourceSliceCount=count)
        for at, part in enumerate(parts)
    ]
    if spec:
        slices.append(make.resource_slice("sets", DRIVER, [], node="n1", resourceSliceCount=count, **spec))
    return slices


def solve(devices: Sequence[Any], *claims: Any, **spec: Any) -> list[str] | None:
    """Devices of all claims, None if it is impossible; within `MOST` steps."""
    inputs = Inputs(
        features=DEFAULT_1_37,
        classes={"any": from_object(DeviceClass, make.device_class("any", driver=DRIVER))},
        slices=SliceList(from_object(ResourceSlice, raw) for raw in published(devices, **spec)),
        allocated=AllocatedState(),
        selectors=COMPILER,
    )
    allocator = Allocator(inputs, Options(max_steps=MOST, max_looks=200 * MOST))
    try:
        results = allocator.allocate(NODE, [from_object(ResourceClaim, raw) for raw in claims])
    except NoSolution:
        return None
    return [entry.device for result in results for entry in result.devices.results]


def plain(count: int, prefix: str = "d", **attributes: object) -> list[Any]:
    return [make.device(f"{prefix}{at:02}", attributes={"at": at, **attributes}) for at in range(count)]


@pytest.mark.parametrize("count", [8, 16, 31])
def test_one_more_than_there_are(count: int) -> None:
    assert solve(plain(count), make.claim("c", want("r", count=count + 1))) is None


@pytest.mark.parametrize("count", [16, 32, 64])
def test_a_late_request_that_nothing_matches(count: int) -> None:
    requests = (want("r", count=min(count // 2, 31)), want("q", has("at", 99)))
    assert solve(plain(count), make.claim("c", *requests)) is None


@pytest.mark.parametrize("count", [16, 32, 64])
def test_the_first_request_takes_what_the_second_must_have(count: int) -> None:
    requests = (want("r", count=count // 4), want("q", has("at", 0)))
    found = solve(plain(count), make.claim("c", *requests))
    assert found == [*(f"d{at:02}" for at in range(1, count // 4 + 1)), "d00"]


@pytest.mark.parametrize("claims", [8, 12, 32])
def test_claims_of_one_device_each_and_a_device_too_few(claims: int) -> None:
    made = [make.claim(f"c{at}", want("r")) for at in range(claims)]
    assert solve(plain(claims - 1), *made) is None


@pytest.mark.parametrize(("pairs", "nics"), [(8, 7), (8, 8), (16, 15), (16, 16)])
@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "interleaved"])
def test_pairs_on_one_root_each(pairs: int, nics: int, *, grouped: bool) -> None:
    """FR-36, FR-40: the NICs are at the far end."""
    gpus = [make.device(f"g{at:02}", attributes={"kind": "gpu", "root": at}) for at in range(16)]
    others = [make.device(f"n{at:02}", attributes={"kind": "nic", "root": 15 - at}) for at in range(nics)]
    wanted = [(want(f"g{at}", has("kind", "gpu")), want(f"n{at}", has("kind", "nic"))) for at in range(pairs)]
    requests = [one for kind in zip(*wanted, strict=True) for one in kind] if grouped else sum(wanted, ())
    constraints = [
        {"matchAttribute": f"{DRIVER}/root", "requests": [f"g{at}", f"n{at}"]} for at in range(pairs)
    ]
    found = solve(gpus + others, make.claim("c", *requests, constraints=constraints))
    assert (found is not None) == (pairs <= nics)


def test_three_constraints_at_once() -> None:
    """FR-31: one socket, one generation, different boards; only the last socket has them all."""
    devices = [
        make.device(
            f"d{at:02}",
            attributes={"socket": at // 8, "made": (at // 4) % 2 if at < 24 else 3, "board": at % 8},
        )
        for at in range(32)
    ]
    constraints = [
        {"matchAttribute": f"{DRIVER}/socket"},
        {"matchAttribute": f"{DRIVER}/made"},
        {"distinctAttribute": f"{DRIVER}/board"},
    ]
    requests = (want("r", count=4), want("q", count=4))
    found = solve(devices, make.claim("c", *requests, constraints=constraints))
    assert found == [f"d{at}" for at in range(24, 32)]
    assert solve(devices, make.claim("c", *requests, want("x"), constraints=constraints)) is None


@pytest.mark.parametrize("count", [16, 24, 32])
def test_more_different_values_than_there_are(count: int) -> None:
    devices = [make.device(f"d{at:02}", attributes={"board": at % 7}) for at in range(count)]
    claim = make.claim("c", want("r", count=8), constraints=[{"distinctAttribute": f"{DRIVER}/board"}])
    assert solve(devices, claim) is None


# --- partitions


def parts(gpus: int) -> tuple[list[Any], dict[str, Any]]:
    """Each GPU as a whole, as halves, quarters and eighths, the large ones first; and their counters."""
    devices, sets = [], []
    for gpu, size in product(range(gpus), (8, 4, 2, 1)):
        for first in range(0, 8, size):
            counters = {"memory": {"value": f"{10 * size}Gi"}}
            counters |= {f"slot-{slot}": {"value": "1"} for slot in range(first, first + size)}
            taken = [{"counterSet": f"gpu-{gpu}", "counters": counters}]
            device = make.device(
                f"gpu-{gpu}-p{size}-{first}", attributes={"size": size}, consumesCounters=taken
            )
            devices.append(device)
    for gpu in range(gpus):
        counters = {"memory": {"value": "80Gi"}, **{f"slot-{slot}": {"value": "1"} for slot in range(8)}}
        sets.append({"name": f"gpu-{gpu}", "counters": counters})
    return devices, {"sharedCounters": sets}


@pytest.mark.parametrize(("count", "possible"), [(15, True), (16, True), (17, False)])
def test_as_many_partitions_of_two_gpus_as_there_can_be(count: int, *, possible: bool) -> None:
    devices, spec = parts(2)
    found = solve(devices, make.claim("c", want("r", count=count)), **spec)
    assert (found is not None) == possible


@pytest.mark.parametrize(
    ("count", "first"), [(30, ["gpu-0-p2-0", "gpu-0-p2-2"]), (32, ["gpu-0-p1-0", "gpu-0-p1-1"])]
)
def test_as_many_partitions_of_four_gpus_as_there_can_be(count: int, first: list[str]) -> None:
    devices, spec = parts(4)
    found = solve(devices, make.claim("c", want("r", count=count)), **spec)
    assert found is not None
    assert found[:2] == first


def test_partitions_of_two_sizes_that_do_not_fit_together() -> None:
    devices, spec = parts(4)
    requests = (want("r", has("size", 2), count=15), want("q", has("size", 1), count=3))
    assert solve(devices, make.claim("c", *requests), **spec) is None


def test_sixty_four_partitions_for_the_pods_of_a_node() -> None:
    """FR-37: claims of an eighth each, one too many for eight GPUs."""
    devices, spec = parts(8)
    claims = [make.claim(f"c{at:02}", want("r", has("size", 1))) for at in range(65)]
    assert solve(devices, *claims[:64], **spec) is not None
    assert solve(devices, *claims, **spec) is None


# --- capacity, lists


def shared(count: int, memory: str) -> list[Any]:
    return [
        {"name": f"d{at:02}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}
        for at in range(count)
    ]


@pytest.mark.parametrize("count", [8, 12, 30])
def test_shares_of_more_than_half_of_a_device(count: int) -> None:
    """FR-38: one more than there are devices."""
    requests = [want(f"r{at}", capacity={"requests": {"memory": "6Gi"}}) for at in range(count + 1)]
    assert solve(shared(count, "10Gi"), make.claim("c", *requests)) is None


@pytest.mark.parametrize(("count", "possible"), [(32, True), (33, False)])
def test_shares_that_fill_four_devices(count: int, *, possible: bool) -> None:
    claims = [
        make.claim(f"c{at:02}", want("r", capacity={"requests": {"memory": "1Gi"}})) for at in range(count)
    ]
    assert (solve(shared(4, "8Gi"), *claims) is not None) == possible


@pytest.mark.parametrize("lists", [5, 6, 8])
def test_prioritized_lists_that_cannot_all_be_had(lists: int) -> None:
    devices = [make.device(f"d{at:02}", attributes={"kind": "ab"[at % 2]}) for at in range(2 * lists - 1)]
    options = [
        make.alternative(f"a{count}", "any", has("kind", kind), count=count, **COUNTED)
        for count, kind in ((4, "a"), (3, "b"), (2, "a"), (2, "b"))
    ]
    requests = [make.first_available(f"r{at}", *options) for at in range(lists)]
    assert solve(devices, make.claim("c", *requests)) is None
