"""Checks of what was asked for: requests, alternatives, counts, All, order, limit, gates (alloc sections 3 and 5)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from .amounts import AmountError, amounts
from .devices import is_selected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Claim, Facts, Wanted
    from .places import Place
    from .snapshot import Broken

LIMIT: Final = 32
"""Devices of a claim (alloc X-1)."""


def check_requests(facts: Facts) -> Iterator[Broken]:
    """Rules `request`, `alternative`, `count`, `order`, `different`, `limit`."""
    for claim in facts.claims:
        yield from _names(claim)
        yield from _counts(claim)
        yield from _order(claim)
        if len(claim.results) > LIMIT:
            yield claim.broken("limit", f"it has {len(claim.results)} devices")


def _names(claim: Claim) -> Iterator[Broken]:
    for result in claim.results:
        wanted = claim.wanted.get(result.request)
        if wanted is None:
            yield claim.broken("request", "there is no such request", result.request, result.device_id)
        elif wanted.device_class is None:
            text = f"there is no class {wanted.entry.device_class_name!r}"
            yield claim.broken("request", text, result.request, result.device_id)


def _counts(claim: Claim) -> Iterator[Broken]:
    devices: dict[str, list[object]] = {}
    for result in claim.results:
        devices.setdefault(result.request, []).append(result.device_id)
    for wanted in claim.chosen:
        found = devices.get(wanted.ref, [])
        yield from _alternatives(claim, wanted, devices)
        yield from _count(claim, wanted, len(found))
        for device, number in Counter(found).items():
            if number > 1:
                yield claim.broken("different", f"it has {device} {number} times", wanted.ref)


def _alternatives(claim: Claim, chosen: Wanted, devices: dict[str, list[object]]) -> Iterator[Broken]:
    used = [each.ref for each in claim.wanted.values() if each.base == chosen.base and each.ref in devices]
    if len(used) > 1:
        yield claim.broken("alternative", f"{' and '.join(used)} are used", chosen.base)


def _count(claim: Claim, wanted: Wanted, found: int) -> Iterator[Broken]:
    if wanted.entry.allocation_mode != "All":
        if found != wanted.entry.count:
            yield claim.broken("count", f"{found} devices instead of {wanted.entry.count}", wanted.ref)
    elif not found:
        yield claim.broken("count", "it asks for all devices, and has none", wanted.ref)


def _order(claim: Claim) -> Iterator[Broken]:
    indexes = [claim.wanted[each.request].index for each in claim.results if each.request in claim.wanted]
    if indexes != sorted(indexes):
        yield claim.broken("order", "results of a later request come before those of an earlier one")


def check_all(facts: Facts) -> Iterator[Broken]:
    """Rule `all`: every device that the request selects and whose capacities suffice in themselves (as in 0.37.2; alloc R-5)."""
    for claim in facts.claims:
        node = claim.node
        if node is None:
            continue
        for wanted in claim.chosen:
            if wanted.entry.allocation_mode != "All" or wanted.device_class is None:
                continue
            has = {each.device_id for each in claim.results if each.request == wanted.ref}
            members = {place.id for place in facts.devices_on(node) if _is_member(claim, wanted, place)}
            for device in sorted(members - has):
                yield claim.broken("all", "it is selected, and not there", wanted.ref, device)


def _is_member(claim: Claim, wanted: Wanted, place: Place) -> bool:
    if not is_selected(claim, wanted, place):
        return False
    if not claim.snapshot.features.consumable_capacity:
        return True
    if missing_names(wanted, place):
        return False
    try:
        found = amounts(wanted.entry.capacity, place.device, claim.snapshot.features)
    except AmountError:
        return False
    return all(
        each.amount <= place.device.capacity[each.name].value.nano and not each.problem for each in found
    )


def missing_names(wanted: Wanted, place: Place) -> list[str]:
    """Capacities that are asked for, and that the device has not; names are taken literally (alloc Q-1)."""
    asked = wanted.entry.capacity
    return sorted(asked.requests.keys() - place.device.capacity.keys()) if asked is not None else []


def check_gates(facts: Facts) -> Iterator[Broken]:
    """Rule `gate`, about what claims use; `devices` has what devices use."""
    for claim in facts.claims:
        for wanted in claim.chosen:
            for name, uses, on in _uses(claim, wanted):
                if uses and not on:
                    yield claim.broken("gate", f"{name} is off", wanted.ref)


def _uses(claim: Claim, wanted: Wanted) -> Iterator[tuple[str, bool, bool]]:
    features, entry = claim.snapshot.features, wanted.entry
    yield "DRAPrioritizedList", wanted.ref != wanted.base, features.prioritized_list
    yield "DRAConsumableCapacity", entry.capacity is not None, features.consumable_capacity
    yield "DRAAdminAccess", getattr(entry, "admin_access", None) is not None, features.admin_access
    yield "DRADerivedAttributes", bool(entry.derived_attributes), features.derived_attributes
