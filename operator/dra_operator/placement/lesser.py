"""What a request could have if it asked for less: smaller amounts of capacities that devices have left (alloc section 8).

Called by `market` for explanations, once a device was refused for its capacity. It names amounts that are worth a try; whether the pod can be
served with them only a search knows. It must not search.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dra_operator.allocator import Why
from dra_operator.allocator.capacity import Rules, consumed
from dra_operator.errors import InvalidCapacity
from dra_operator.model import CapacityRequirements, base_request
from dra_operator.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dra_operator.allocator import Rejection
    from dra_operator.model import (
        Device,
        DeviceCapacity,
        DeviceId,
        DeviceRequest,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
    )


@dataclass(frozen=True, slots=True)
class Lesser:
    """Amounts that a device has left, where it has less than is asked for.

    Args:
        amounts: of the capacities of which there is too little.
        part: of what is asked for; the smallest, where it is several capacities.
    """

    amounts: Mapping[str, Quantity]
    part: Fraction


def lesser(
    entry: ExactDeviceRequest | DeviceSubRequest,
    devices: Iterable[tuple[DeviceId, Device]],
    refused: Mapping[DeviceId, Rejection],
    used: Mapping[DeviceId, Mapping[str, Quantity]],
) -> Sequence[Lesser]:
    """Different amounts that are worth a try, those that give most first.

    Args:
        entry: the request, or one alternative.
        devices: those that it could see.
        refused: why the search did not take them.
        used: what claims take of their capacities.
    """
    found: dict[tuple[tuple[str, int], ...], Lesser] = {}
    for device_id, device in devices:
        if device_id in refused and refused[device_id].why is Why.CAPACITY:
            offer = _offer(entry.capacity, device, used.get(device_id, {}))
            if offer is not None:
                key = tuple((name, amount.nano) for name, amount in offer.amounts.items())
                found.setdefault(key, offer)
    return sorted(found.values(), key=lambda offer: (len(offer.amounts), -offer.part))


def edited(claim: ResourceClaim, form: str, **fields: object) -> ResourceClaim:
    """The claim with other fields in one request or alternative (`gpu`, `gpu/small`)."""
    requests = tuple(
        _edited(request, form, fields) if request.name == base_request(form) else request
        for request in claim.spec.devices.requests
    )
    return replace(claim, spec=replace(claim.spec, devices=replace(claim.spec.devices, requests=requests)))


def _edited(request: DeviceRequest, form: str, fields: Mapping[str, object]) -> DeviceRequest:
    if request.exactly is not None:
        return replace(request, exactly=replace(request.exactly, **fields))
    alternatives = tuple(
        replace(one, **fields) if f"{request.name}/{one.name}" == form else one
        for one in request.first_available
    )
    return replace(request, first_available=alternatives)


def asking(
    claim: ResourceClaim,
    form: str,
    entry: ExactDeviceRequest | DeviceSubRequest,
    amounts: Mapping[str, Quantity],
) -> ResourceClaim:
    """The claim with other amounts of capacities in one request or alternative, which is `entry`."""
    return edited(claim, form, capacity=_with(entry, amounts))


def _with(
    entry: ExactDeviceRequest | DeviceSubRequest, amounts: Mapping[str, Quantity]
) -> CapacityRequirements:
    return CapacityRequirements({**(entry.capacity.requests if entry.capacity else {}), **amounts})


def _offer(
    wanted: CapacityRequirements | None, device: Device, used: Mapping[str, Quantity]
) -> Lesser | None:
    """What the device has left of that of which it has too little; None if it is nothing, or if it has enough."""
    asked = wanted.requests if wanted is not None else {}
    if any(name not in device.capacity for name in asked):
        return None
    amounts: dict[str, Quantity] = {}
    parts: list[Fraction] = []
    for name, capacity in device.capacity.items():
        left = capacity.value - used[name] if name in used else capacity.value
        try:
            wished = consumed(asked.get(name), capacity, Rules())
        except InvalidCapacity:
            return None
        if wished <= left and wished in _allowed(capacity, wished):
            continue
        amount = max(_allowed(capacity, left), default=None)
        if amount is None or amount.nano <= 0 or amount >= wished:
            return None
        amounts[name] = amount
        parts.append(Fraction(amount.nano, wished.nano))
    return Lesser(amounts, min(parts)) if parts else None


def _allowed(capacity: DeviceCapacity, left: Quantity) -> list[Quantity]:
    """The largest amounts that the request policy allows and that are no more than what is left (alloc Q-3, Q-6)."""
    policy = capacity.request_policy
    if policy is None:
        return [left]
    found = [policy.default] if policy.default is not None and policy.default <= left else []
    if policy.valid_range is not None:
        found += _in_range(left, policy.valid_range.min, policy.valid_range.max, policy.valid_range.step)
    else:
        found += [value for value in policy.valid_values if value <= left] if policy.valid_values else [left]
    return found


def _in_range(
    left: Quantity, least: Quantity | None, most: Quantity | None, step: Quantity | None
) -> Iterator[Quantity]:
    limit = min(left, most) if most is not None else left
    if least is None or step is None or step.nano <= 0:
        if least is None or limit >= least:
            yield limit
    elif limit >= least:
        steps = (limit.nano - least.nano) // step.nano
        yield Quantity(least.nano + steps * step.nano, limit.notation)
