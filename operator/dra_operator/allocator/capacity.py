"""How much of a device's capacities a request takes, and whether that is still there (alloc section 8, KEP 5075).

Called by `search` and `requests`, and by who counts capacity himself. Every device is asked, dedicated ones, too (Q-1). Amounts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import InvalidCapacity
from dra_operator.quantity import NANO, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import (
        CapacityRequestPolicy,
        CapacityRequestPolicyRange,
        CapacityRequirements,
        Device,
        DeviceCapacity,
        DeviceId,
    )

_MILLI: Final = NANO // 1000
_INT64_MAX: Final = 2**63 - 1


class Rules(NamedTuple):
    """How capacities are counted.

    Attributes:
        fractional: whether ranges count in thousandths where they can (alloc Q-4).
        upstream_0_37: a policy's default is told from other amounts by how it is written (oracle 7 no. 3).
    """

    fractional: bool = True
    upstream_0_37: bool = False

    def is_default(self, amount: Quantity, policy: CapacityRequestPolicy) -> bool:
        """Whether an amount is the policy's default, which needs no other permission (alloc Q-6)."""
        default = policy.default
        if default is None or not self.upstream_0_37:
            return amount == default
        return amount.small and default.small and bool(amount.text) and amount.text == default.text


def consumed(requested: Quantity | None, capacity: DeviceCapacity, rules: Rules) -> Quantity:
    """What a request takes of one capacity (alloc Q-2…Q-5).

    Args:
        requested: as asked for; None takes the policy's default, or else all.
        capacity: of the device.
        rules: how it is counted.

    Raises:
        InvalidCapacity: the amount cannot be counted (alloc Q-4b).
    """
    policy = capacity.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(requested, policy.valid_range, policy.valid_range.min, rules)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _rounded(
    requested: Quantity, valid: CapacityRequestPolicyRange, least: Quantity, rules: Rules
) -> Quantity:
    """At least the minimum, and then whole steps (alloc Q-3)."""
    if requested < least:
        return least
    if valid.step is None:
        return requested
    unit = _MILLI if counts_in_milli(valid, rules) else NANO
    if unit == _MILLI and requested.nano % _MILLI:
        raise InvalidCapacity(
            "", f"{requested} cannot be represented in thousandths, in which the device counts"
        )
    first, step, wanted = (_units(each, unit) for each in (least, valid.step, requested))
    if step <= 0 or step > _INT64_MAX:
        raise InvalidCapacity("", f"the device's step of {valid.step} cannot be counted in")
    found = first + step * -(-(wanted - first) // step)
    if max(wanted, found) > _INT64_MAX:
        raise InvalidCapacity(
            "", f"{requested}, in steps of {valid.step}, cannot be represented: it is too large"
        )
    return Quantity(found * unit, valid.step.notation)


def _units(amount: Quantity, unit: int) -> int:
    """As many units as hold the amount; negative ones away from zero, too (alloc Q-4)."""
    whole = -(-abs(amount.nano) // unit)
    return whole if amount.nano >= 0 else -whole


def counts_in_milli(valid: CapacityRequestPolicyRange, rules: Rules) -> bool:
    """Whether a range is counted in thousandths: where all of it can be (alloc Q-4, oracle 7 no. 4)."""
    given = [each for each in (valid.min, valid.max, valid.step) if each is not None]
    fits = all(
        not each.nano % _MILLI and -_INT64_MAX - 1 <= each.nano // _MILLI <= _INT64_MAX for each in given
    )
    return rules.fractional and fits and (valid.step is None or valid.step.nano >= _MILLI)


def violates(amount: Quantity, policy: CapacityRequestPolicy | None, rules: Rules) -> bool:
    """Whether the policy forbids an amount (alloc Q-6).

    Raises:
        InvalidCapacity: the policy has steps without a beginning.
    """
    if policy is None or rules.is_default(amount, policy):
        return False
    if policy.valid_range is not None:
        return _is_outside(amount, policy.valid_range, rules)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _is_outside(amount: Quantity, valid: CapacityRequestPolicyRange, rules: Rules) -> bool:
    if valid.max is not None and amount > valid.max:
        return True
    if valid.step is None:
        return False
    if valid.min is None:
        raise InvalidCapacity("", f"the device has steps of {valid.step} without a minimum")
    unit = _MILLI if counts_in_milli(valid, rules) else NANO
    if unit == _MILLI and amount.nano % _MILLI:
        return True
    step = _units(valid.step, unit)
    if step <= 0 or step > _INT64_MAX:
        raise InvalidCapacity("", f"the device's step of {valid.step} cannot be counted in")
    return (_units(amount, unit) - _units(valid.min, unit)) % step != 0


@dataclass(frozen=True, slots=True)
class Share:
    """What one use of a device takes of its capacities, and what there is.

    Attributes:
        amounts: by capacity, all that the device has (alloc Q-1).
        refusal: why the device cannot serve whatever else is in use of it; empty if it can.
    """

    amounts: Mapping[str, Quantity]
    refusal: str = ""


def share_of(device: Device, wanted: CapacityRequirements | None, rules: Rules) -> Share:
    """What a request takes of a device that nobody uses (alloc Q-1, Q-2).

    Raises:
        InvalidCapacity: an amount cannot be counted, or is negative (alloc Q-4b); told of all capacities before any other refusal.
    """
    asked: Mapping[str, Quantity] = wanted.requests if wanted is not None else {}
    if missing := next((name for name in asked if name not in device.capacity), None):
        return Share({}, f"{missing}: the device has no such capacity")
    amounts: dict[str, Quantity] = {}
    for name, capacity in device.capacity.items():
        try:
            amounts[name] = consumed(asked.get(name), capacity, rules)
        except InvalidCapacity as error:
            raise InvalidCapacity(name, error.message) from error
        if amounts[name].nano < 0:
            raise InvalidCapacity(name, f"the amount {amounts[name]} is negative")
    return Share(amounts, _refusal(device, amounts, rules))


def _refusal(device: Device, amounts: Mapping[str, Quantity], rules: Rules) -> str:
    for name, capacity in device.capacity.items():
        if violates(amounts[name], capacity.request_policy, rules):
            return f"{name}: its request policy does not allow {amounts[name]}"
        if amounts[name] > capacity.value:
            return f"{name}: {amounts[name]} asked for, {capacity.value} there"
    return ""


def lack(device: Device, share: Share, *used: Mapping[str, Quantity]) -> str:
    """The first capacity that there is too little left of, in words; empty if there is enough (alloc Q-1.2).

    Args:
        device: with its capacities.
        share: what is to be taken.
        used: what others take, by capacity, several times over.
    """
    for name, capacity in device.capacity.items():
        taken = sum(uses[name].nano for uses in used if name in uses)
        if share.amounts[name].nano + taken > capacity.value.nano:
            left = Quantity(max(capacity.value.nano - taken, 0), capacity.value.notation)
            return f"{name}: {share.amounts[name]} asked for, {left} of {capacity.value} left"
    return ""


class InFlight:
    """Shares that one call of the allocator has taken so far, by device (alloc Q-10, Q-11)."""

    def __init__(self) -> None:
        self._shares: dict[DeviceId, list[Share]] = {}

    def __contains__(self, device_id: DeviceId) -> bool:
        """Whether a share of the device was taken, be it of no capacity at all (alloc K-10)."""
        return device_id in self._shares

    def uses(self, device_id: DeviceId) -> list[Mapping[str, Quantity]]:
        """What the shares take, one mapping each."""
        return [share.amounts for share in self._shares.get(device_id, ())]

    def add(self, device_id: DeviceId, share: Share) -> None:
        """A share is taken."""
        self._shares.setdefault(device_id, []).append(share)

    def remove(self, device_id: DeviceId) -> None:
        """The share of the device that was taken last is given back."""
        shares = self._shares[device_id]
        shares.pop()
        if not shares:
            del self._shares[device_id]
