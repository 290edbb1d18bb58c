"""What became of the devices that a request could see on a node: figures for explanations, gathered only after a failure.

Called by `Placer` when a node does not serve a pod. Reasons are one vocabulary of short participles ("in use", "not matching
selector #0 of class gpu.example.com"), so that equal reasons of different nodes fold. It must not decide anything.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import Rejection, RequestRef, Why
from dra_operator.errors import CelError

from .census import SHARED
from .faults import one_line, selector_fault
from .outcomes import DeviceTally
from .vocabulary import IN_USE, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.allocator import Collector
    from dra_operator.errors import DraError
    from dra_operator.model import DeviceId, ResourceSlice

    from .candidates import Form, Need
    from .census import Census, SliceFit

COMBINATION: Final = "free, but not in a combination that serves the whole pod"

_ELSEWHERE: Final = in_words(Rejection(Why.NODE))


def tallies(
    census: Census,
    need: Need,
    slices: Sequence[ResourceSlice],
    taken: AbstractSet[DeviceId],
    heard: Collector | None = None,
    node_name: str = SHARED,
) -> tuple[DeviceTally, ...]:
    """One tally a form of the need, over the devices of these slices, without drivers of which the class takes no device anywhere.

    Args:
        census: who judges devices.
        need: the request that could not be met.
        slices: the slices that the request could see.
        taken: devices in use.
        heard: what the search reported; None if there was none.
        node_name: the node; devices that name another are told apart. SHARED: all nodes.
    """
    return tuple(_tally(census, need, form, slices, (taken, heard, node_name)) for form in need.forms)


def _tally(
    census: Census,
    need: Need,
    form: Form,
    slices: Iterable[ResourceSlice],
    known: tuple[AbstractSet[DeviceId], Collector | None, str],
) -> DeviceTally:
    taken, heard, node_name = known
    found = census.fits(form.wish)
    # GPUs that a user counts are not joined by the NICs beside them; a class that takes nothing at all shows what it refuses.
    counted = (item for item in slices if not found.drivers or item.spec.driver in found.drivers)
    counts: Counter[str] = Counter()
    seen = 0
    for slice_ in counted:
        fit = found.by_slice[slice_.metadata.name]
        seen += len(slice_.spec.devices)
        counts.update(item.reason for item in fit.rejected)
        away = _away(fit, node_name)
        counts[_ELSEWHERE] += len(away)
        counts.update(
            _reason(device, taken, _heard_of(heard, need, form), heard)
            for device in fit.usable
            if device not in away
        )
        if fit.error is not None:
            counts[f"not judged: {_fault(fit.error, need.claim)}"] += fit.unclear
            counts[""] -= fit.unclear
    free = max(counts.pop("", 0), 0)
    if free and heard is not None:
        counts[COMBINATION] += free
    return DeviceTally(
        need.claim, form.name, form.wish.device_class, form.wanted, seen, dict(_ranked(+counts))
    )


def _fault(error: DraError, claim: str) -> str:
    return selector_fault(error, claim) if isinstance(error, CelError) else one_line(error)


def _away(fit: SliceFit, node_name: str) -> set[DeviceId]:
    """Devices that name another node (alloc P-4); none where the figures are about all nodes."""
    if node_name == SHARED:
        return set()
    return {device for home, part in fit.parts if home not in {SHARED, node_name} for device in part.usable}


def _reason(
    device: DeviceId,
    taken: AbstractSet[DeviceId],
    rejected: dict[DeviceId, Rejection],
    heard: Collector | None,
) -> str:
    if device in taken:
        return IN_USE
    if heard is not None and device.pool_id in heard.pools:
        return in_words(heard.pools[device.pool_id])
    return in_words(rejected[device]) if device in rejected else ""


def _heard_of(heard: Collector | None, need: Need, form: Form) -> dict[DeviceId, Rejection]:
    return {} if heard is None else heard.devices.get(RequestRef(need.claim, form.name), {})


def _ranked(counts: Counter[str]) -> Iterator[tuple[str, int]]:
    return iter(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
