"""How much of each capacity of a device a request takes (alloc Q-2 to Q-6), in whole nano-units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.quantity import NANO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.features import Features
    from dra_operator.model import CapacityRequirements, Device, DeviceCapacity
    from dra_operator.model.devices import CapacityRequestPolicy, CapacityRequestPolicyRange
    from dra_operator.quantity import Quantity

MILLI: Final = NANO // 1000
_MOST: Final = 2**63 - 1


class AmountError(ValueError):
    """An amount that cannot be counted (alloc Q-4b)."""


class Amount(NamedTuple):
    """What is taken of one capacity; `problem` is how it goes against the policy."""

    name: str
    amount: int
    problem: str


def amounts(asked: CapacityRequirements | None, device: Device, features: Features) -> Iterator[Amount]:
    """What a share of the device takes, for each of its capacities.

    Raises:
        AmountError: when one cannot be counted.
    """
    requests = asked.requests if asked is not None else {}
    for name, capacity in device.capacity.items():
        amount = _amount(requests.get(name), capacity, features)
        if amount < 0:
            raise AmountError(f"{name}: the amount is negative")
        yield Amount(name, amount, _problem(amount, capacity.request_policy, features))


def _amount(asked: Quantity | None, capacity: DeviceCapacity, features: Features) -> int:
    policy = capacity.request_policy
    if asked is None:
        default = policy.default if policy is not None else None
        return (capacity.value if default is None else default).nano
    if policy is None:
        return asked.nano
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _in_range(asked.nano, policy.valid_range, features)
    enough = [each.nano for each in policy.valid_values if each.nano >= asked.nano]
    return enough[0] if enough else asked.nano


def _in_range(asked: int, range_: CapacityRequestPolicyRange, features: Features) -> int:
    assert range_.min is not None
    if asked < range_.min.nano:
        return range_.min.nano
    if range_.step is None:
        return asked
    unit = _unit(range_, features)
    if unit == MILLI and asked % MILLI:
        raise AmountError("the amount is no whole number of thousandths")
    low, step = _whole(range_.min.nano, unit), _whole(range_.step.nano, unit)
    if not step:
        raise AmountError("the step is zero")
    found = low + -(-(_whole(asked, unit) - low) // step) * step
    if max(found, _whole(asked, unit)) > _MOST:
        raise AmountError("the amount is beyond 64 bits")
    return found * unit


def _unit(range_: CapacityRequestPolicyRange, features: Features) -> int:
    """Thousandths where they are switched on and suffice for the whole range, else ones (alloc Q-4)."""
    ends = [each.nano for each in (range_.min, range_.max, range_.step) if each is not None]
    exact = all(each % MILLI == 0 and abs(each) // MILLI <= _MOST for each in ends)
    large = range_.step is None or range_.step.nano >= MILLI
    return MILLI if features.fractional_capacity_range and exact and large else NANO


def _whole(nano: int, unit: int) -> int:
    """Rounded up, away from zero."""
    return -(-nano // unit) if nano >= 0 else nano // unit


def _problem(amount: int, policy: CapacityRequestPolicy | None, features: Features) -> str:
    if policy is None or (policy.default is not None and policy.default.nano == amount):
        return ""
    if policy.valid_range is not None:
        return _range_problem(amount, policy.valid_range, features)
    if policy.valid_values and amount not in {each.nano for each in policy.valid_values}:
        return "it is none of the valid values"
    return ""


def _range_problem(amount: int, range_: CapacityRequestPolicyRange, features: Features) -> str:
    if range_.max is not None and amount > range_.max.nano:
        return "it is more than the most that may be asked for"
    if range_.step is None:
        return ""
    unit = _unit(range_, features)
    low = _whole(range_.min.nano, unit) if range_.min is not None else 0
    step = _whole(range_.step.nano, unit)
    off = not step or (unit == MILLI and amount % MILLI) or (_whole(amount, unit) - low) % step
    return "it is not a whole number of steps above the least" if off else ""
