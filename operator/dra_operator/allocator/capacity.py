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
NOTHING: Final[Mapping[str, int]] = {}
_POWERS_AT_ONCE: Final = frozenset({0, 1, 2, 3, 6, 9})
"""Powers of ten by which upstream multiplies in one step, and leaves what has overflown; by others it goes in steps of ten, and gives 0."""
_LARGEST_POWER: Final = 18
"""Of ten, in 64 bits."""


class Rules(NamedTuple):
    """How capacities are counted.

    Attributes:
        fractional: whether ranges count in thousandths where they can (alloc Q-4).
        upstream_0_37: a policy's default is told from other amounts by how it is written (oracle 7 no. 3), and numbers have 64 bits.
    """

    fractional: bool = True
    upstream_0_37: bool = False

    def is_default(self, amount: Quantity, policy: CapacityRequestPolicy) -> bool:
        """Whether an amount is the policy's default, which needs no other permission (alloc Q-6)."""
        default = policy.default
        if default is None or not self.upstream_0_37:
            return amount == default
        return amount.small and default.small and bool(amount.text) and amount.text == default.text

    def held(self, number: int) -> int:
        """What is left of a number that was computed: all of it, or the last 64 bits."""
        if not self.upstream_0_37 or _fits(number):
            return number
        return (number + _INT64_MAX + 1) % 2**64 - _INT64_MAX - 1


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
    unit = _unit(valid, rules)
    if unit == _MILLI and not _counts(requested, unit):
        raise InvalidCapacity(
            "", f"{requested} cannot be represented in thousandths, in which the device counts"
        )
    if requested.nano > _INT64_MAX * NANO:
        raise InvalidCapacity("", f"{requested} cannot be represented: it is too large")
    step = _step(valid.step, unit, rules)
    wanted, first = (_units(each, unit, rules) for each in (requested, least))
    steps, rest = _divided(rules.held(wanted - first), step)
    steps += rest != 0
    # Upstream does not ask below a negative minimum, which the API server refuses.
    is_asked = unit == _MILLI or first >= 0 or not rules.upstream_0_37
    if is_asked and steps > _divided(rules.held(_INT64_MAX - first), step)[0]:
        raise InvalidCapacity(
            "", f"{requested}, in steps of {valid.step}, cannot be represented: it is too large"
        )
    return Quantity(rules.held(first + step * steps) * unit, valid.step.notation)


def _step(step: Quantity, unit: int, rules: Rules) -> int:
    """The step in such units.

    Raises:
        InvalidCapacity: nothing can be counted in it. Upstream panics at fewer of those that the API server refuses (oracle 7 no. 2).
    """
    units = _units(step, unit, rules)
    if units == 0 or not (rules.upstream_0_37 or 0 < units <= _INT64_MAX):
        raise InvalidCapacity("", f"the device's step of {step} cannot be counted in")
    return units


def _units(amount: Quantity, unit: int, rules: Rules) -> int:
    """As many units as hold the amount; negative ones away from zero, too (alloc Q-4)."""
    whole = -(-abs(amount.nano) // unit)
    signed = whole if amount.nano >= 0 else -whole
    if not rules.upstream_0_37 or _fits(signed):
        return signed
    return _overflown(amount, rules.held(signed), amount.power if unit == NANO else amount.power + 3, rules)


def _overflown(amount: Quantity, last_bits: int, power: int, rules: Rules) -> int:
    """What upstream makes of a number of units that 64 bits do not hold, by the power of ten of what it keeps against the unit.

    The API server refuses policies with such amounts: only comparisons with upstream get here.
    """
    if amount.small:
        return last_bits if power in _POWERS_AT_ONCE else 0
    return last_bits if power <= _LARGEST_POWER else rules.held(-amount.units * 2**63)


def _unit(valid: CapacityRequestPolicyRange, rules: Rules) -> int:
    """What a range is counted in, in units of 10^-9."""
    return _MILLI if counts_in_milli(valid, rules) else NANO


def _counts(amount: Quantity, unit: int) -> bool:
    """Whether the amount is a whole number of units, of 64 bits."""
    return not amount.nano % unit and _fits(amount.nano // unit)


def _fits(number: int) -> bool:
    return -_INT64_MAX - 1 <= number <= _INT64_MAX


def _divided(number: int, by: int) -> tuple[int, int]:
    """Quotient and rest, towards zero."""
    quotient = abs(number) // abs(by) * (1 if (number < 0) == (by < 0) else -1)
    return quotient, number - quotient * by


def counts_in_milli(valid: CapacityRequestPolicyRange, rules: Rules) -> bool:
    """Whether a range is counted in thousandths: where all of it can be (alloc Q-4, oracle 7 no. 4)."""
    given = [each for each in (valid.min, valid.max, valid.step) if each is not None]
    fits = all(_counts(each, _MILLI) for each in given)
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
    unit = _unit(valid, rules)
    if unit == _MILLI and not _counts(amount, unit):
        return True
    if valid.min is None:
        raise InvalidCapacity("", f"the device has steps of {valid.step} without a minimum")
    step = _step(valid.step, unit, rules)
    beyond = rules.held(_units(amount, unit, rules) - _units(valid.min, unit, rules))
    return _divided(beyond, step)[1] != 0


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


def lack(
    device: Device,
    share: Share,
    used: Mapping[str, Quantity],
    in_flight: Mapping[str, int] = NOTHING,
    *,
    in_words: bool = True,
) -> str:
    """The first capacity that there is too little left of, in words; empty if there is enough (alloc Q-1.2).

    Args:
        device: with its capacities.
        share: what is to be taken.
        used: what claims take, by capacity.
        in_flight: what is taken beside, in units of 10^-9.
        in_words: whether somebody reads it; else it is the name alone.
    """
    for name, amount in share.amounts.items():
        value = device.capacity[name].value
        taken = in_flight.get(name, 0) + (used[name].nano if name in used else 0)
        if amount.nano + taken > value.nano:
            if not in_words:
                return name
            left = Quantity(max(value.nano - taken, 0), value.notation)
            return f"{name}: {amount} asked for, {left} of {value} left"
    return ""


class InFlight:
    """Shares that one call of the allocator has taken so far, by device (alloc Q-10, Q-11)."""

    def __init__(self) -> None:
        self._counts: dict[DeviceId, int] = {}
        self._sums: dict[DeviceId, dict[str, int]] = {}

    def __contains__(self, device_id: DeviceId) -> bool:
        """Whether a share of the device was taken, be it of no capacity at all (alloc K-10)."""
        return device_id in self._counts

    def uses(self, device_id: DeviceId) -> Mapping[str, int]:
        """What the shares take together, by capacity, in units of 10^-9."""
        return self._sums.get(device_id, {})

    def add(self, device_id: DeviceId, share: Share) -> None:
        """A share is taken."""
        self._counts[device_id] = self._counts.get(device_id, 0) + 1
        sums = self._sums.setdefault(device_id, {})
        for name, amount in share.amounts.items():
            sums[name] = sums.get(name, 0) + amount.nano

    def remove(self, device_id: DeviceId, share: Share) -> None:
        """A share is given back."""
        self._counts[device_id] -= 1
        if not self._counts[device_id]:
            del self._counts[device_id], self._sums[device_id]
            return
        sums = self._sums[device_id]
        for name, amount in share.amounts.items():
            sums[name] -= amount.nano
