"""Problems whose plain search does not come back (oracle 5, alloc B.2 no. 2), in families that grow: what upstream needs doubles with each device.

Used by the bench and by tests of step counts. Devices, claims, and what else the pool's slices have.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_operator.testing import builders as make

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = dict[str, Any]
Hard: TypeAlias = "tuple[Sequence[Json], Sequence[Json], dict[str, Any]]"

DRIVER: Final = "gpu.example.com"
COUNTED: Final = {"allocationMode": "ExactCount"}


def has(name: str, value: object) -> str:
    """A selector by an attribute."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return f'device.attributes["{DRIVER}"].{name} == {text}'


def want(name: str, *selectors: str, count: int = 1, **more: Any) -> Json:
    """A request."""
    return make.request(name, "gpu", *selectors, count=count, **COUNTED, **more)


def published(driver: str, devices: Sequence[Json], **spec: Any) -> list[Json]:
    """A pool of slices of at most 64 devices, and one more for counters."""
    parts_ = [devices[at : at + 64] for at in range(0, len(devices), 64)]
    count = len(parts_) + bool(spec)
    slices = [
        make.resource_slice(f"s{at}", driver, part, node="n1", resourceSliceCount=count)
        for at, part in enumerate(parts_)
    ]
    if spec:
        slices.append(make.resource_slice("sets", driver, [], node="n1", resourceSliceCount=count, **spec))
    return slices


def plain(count: int, **attributes: object) -> list[Json]:
    """Devices by number."""
    return [make.device(f"d{at:02}", attributes={"at": at, **attributes}) for at in range(count)]


def pairs(count: int, nics: int, *, grouped: bool) -> Hard:
    """GPUs on 16 roots, NICs from the far end on, so many pairs wanted on one root each."""
    gpus = [make.device(f"g{at:02}", attributes={"kind": "gpu", "root": at}) for at in range(16)]
    others = [make.device(f"n{at:02}", attributes={"kind": "nic", "root": 15 - at}) for at in range(nics)]
    wanted = [(want(f"g{at}", has("kind", "gpu")), want(f"n{at}", has("kind", "nic"))) for at in range(count)]
    order = zip(*wanted, strict=True) if grouped else wanted
    requests = [one for kind in order for one in kind]
    constraints = [
        {"matchAttribute": f"{DRIVER}/root", "requests": [f"g{at}", f"n{at}"]} for at in range(count)
    ]
    return gpus + others, [make.claim("c", *requests, constraints=constraints)], {}


def parts(gpus: int) -> tuple[list[Json], dict[str, Any]]:
    """Each GPU as a whole, as halves, quarters and eighths, the large ones first; and their counters."""
    devices = []
    for gpu, size in product(range(gpus), (8, 4, 2, 1)):
        for first in range(0, 8, size):
            counters: Json = {"memory": {"value": f"{10 * size}Gi"}}
            counters |= {f"slot-{slot}": {"value": "1"} for slot in range(first, first + size)}
            taken = [{"counterSet": f"gpu-{gpu}", "counters": counters}]
            name = f"gpu-{gpu}-p{size}-{first}"
            devices.append(make.device(name, attributes={"size": size}, consumesCounters=taken))
    whole = {"memory": {"value": "80Gi"}, **{f"slot-{slot}": {"value": "1"} for slot in range(8)}}
    sets = [{"name": f"gpu-{gpu}", "counters": whole} for gpu in range(gpus)]
    return devices, {"sharedCounters": sets}


def any_parts(gpus: int, count: int) -> Hard:
    """So many partitions of any size."""
    devices, spec = parts(gpus)
    return devices, [make.claim("c", want("r", count=count))], spec


def distinct(count: int) -> Hard:
    """Eight different boards of seven."""
    devices = [make.device(f"d{at:02}", attributes={"board": at % 7}) for at in range(count)]
    claim = make.claim("c", want("r", count=8), constraints=[{"distinctAttribute": f"{DRIVER}/board"}])
    return devices, [claim], {}


def shares(count: int) -> Hard:
    """Requests for more than half of a device each, one more than there are devices."""
    devices = [
        {"name": f"d{at:02}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
        for at in range(count)
    ]
    requests = [want(f"r{at}", capacity={"requests": {"memory": "6Gi"}}) for at in range(count + 1)]
    return devices, [make.claim("c", *requests)], {}


def lists(count: int) -> Hard:
    """Prioritized lists that cannot all be had."""
    devices = [make.device(f"d{at:02}", attributes={"kind": "ab"[at % 2]}) for at in range(2 * count - 1)]
    options = [
        make.alternative(f"a{at}", "gpu", has("kind", kind), count=number, **COUNTED)
        for at, (number, kind) in enumerate(((4, "a"), (3, "b"), (2, "a"), (2, "b")))
    ]
    return devices, [make.claim("c", *(make.first_available(f"r{at}", *options) for at in range(count)))], {}


def late(count: int) -> Hard:
    """Half of the devices, then one that does not exist."""
    requests = (want("r", count=min(count // 2, 31)), want("q", has("at", 99)))
    return plain(count), [make.claim("c", *requests)], {}


def greedy(count: int) -> Hard:
    """The first request takes what the second must have."""
    return plain(count), [make.claim("c", want("r", count=count // 4), want("q", has("at", 0)))], {}


def too_many(count: int) -> Hard:
    """One more than there are."""
    return plain(count), [make.claim("c", want("r", count=count + 1))], {}


def claims(count: int) -> Hard:
    """Claims of one device each, and a device too few."""
    return plain(count - 1), [make.claim(f"c{at}", want("r")) for at in range(count)], {}


FAMILIES: Final[Mapping[str, Hard]] = {
    "32 of 31": too_many(31),
    "half of 64, one that is missing": late(64),
    "what the second must have, of 64": greedy(64),
    "32 claims, 31 devices": claims(32),
    "16 pairs, 15 NICs, grouped": pairs(16, 15, grouped=True),
    "16 pairs, 15 NICs, interleaved": pairs(16, 15, grouped=False),
    "8 of 7 different, of 32": distinct(32),
    "17 partitions of two GPUs": any_parts(2, 17),
    "32 partitions of four GPUs": any_parts(4, 32),
    "31 shares of 30 devices": shares(30),
    "8 prioritized lists": lists(8),
}
