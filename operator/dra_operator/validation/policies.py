"""Validation of what may be asked of a capacity at a time: single values, or a range with steps (cp V-101 to V-103).

Amounts are whole nano-units, so that nothing overflows; what upstream refuses because it would overflow there is refused all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import NANO, Quantity
from dra_operator.validation.checks import forbidden, repeated, required, too_many, wrong
from dra_operator.validation.objects import Obj, dig

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_VALUES = 10
_MILLI = NANO // 1000
_INT64_MAX = 2**63 - 1
_ONE_POLICY = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def check_policies(device: Obj, path: str) -> list[Cause]:
    """The request policies of a device's capacities."""
    causes: list[Cause] = []
    for name, capacity in (device.get("capacity") or {}).items():
        policy = dig(capacity, "requestPolicy")
        at = f"{path}.capacity[{name}].requestPolicy"
        if policy is None:
            continue
        if device.get("allowMultipleAllocations") is not True:
            causes.append(forbidden(at, "allowMultipleAllocations must be true"))
        else:
            causes += _check_policy(policy, _amount(capacity.get("value")), at)
    return causes


def _amount(raw: Any) -> Quantity:
    try:
        return Quantity.parse(raw)
    except InvalidQuantity:
        return Quantity.of(0)


def _check_policy(policy: Obj, most: Quantity, path: str) -> list[Cause]:
    values, span = policy.get("validValues"), policy.get("validRange")
    if values and span is not None:
        return [forbidden(path, _ONE_POLICY)]
    if not values and not isinstance(span, dict):
        return []
    field = "validValues" if values else "validRange"
    if policy.get("default") is None:
        return [required(f"{path}.default", f"required when {field} is defined")]
    default = _amount(policy["default"])
    if values:
        return _check_values([_amount(value) for value in values], default, most, f"{path}.validValues")
    return _check_range(span or {}, default, most, f"{path}.validRange")


def _check_values(values: list[Quantity], default: Quantity, most: Quantity, path: str) -> list[Cause]:
    causes = [
        wrong(f"{path}[{index}]", str(value), "values must be sorted in ascending order")
        for index, value in enumerate(values)
        if index and values[index - 1] > value
    ]
    if len(values) > _VALUES:
        return [*causes, too_many(path, len(values), _VALUES)]
    causes += [
        wrong(f"{path}[{index}]", str(value), f"option is larger than capacity value: {most}")
        for index, value in enumerate(values)
        if value > most
    ]
    causes += repeated(path, [value.nano for value in values])
    if default not in values:
        detail = "default value is not valid according to the requestPolicy"
        causes.append(wrong(path, str(default), detail))
    return causes


def _check_range(span: Obj, default: Quantity, most: Quantity, path: str) -> list[Cause]:
    if span.get("min") is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    least = _amount(span["min"])
    highest = None if span.get("max") is None else _amount(span["max"])
    step = None if span.get("step") is None else _amount(span["step"])
    causes = _check_ends(least, highest, default, most, path)
    amounts = {"default": default, "min": least, "max": highest, "step": step}
    given = {name: amount for name, amount in amounts.items() if amount is not None}
    fractional = not all(amount.is_whole for amount in given.values())
    unsafe = _not_milli(given, path) if fractional else []
    if unsafe or step is None:
        return [*causes, *unsafe]
    return [*causes, *_check_step(given, most, path, fractional=fractional)]


def _check_ends(
    least: Quantity, highest: Quantity | None, default: Quantity, most: Quantity, path: str
) -> list[Cause]:
    facts = [
        (least > most, "min", least, f"min is larger than capacity value: {most}"),
        (default < least, "default", default, f"default is less than min: {least}"),
    ]
    if highest is not None:
        facts += [
            (least > highest, "max", least, f"min is larger than max: {highest}"),
            (highest > most, "max", highest, f"max is larger than capacity value: {most}"),
            (default > highest, "default", default, f"default is more than max: {highest}"),
        ]
    return [wrong(f"{path}.{field}", str(value), detail) for holds, field, value, detail in facts if holds]


def _not_milli(given: dict[str, Quantity], path: str) -> list[Cause]:
    return [
        wrong(f"{path}.{name}", str(amount), "value cannot be represented as a milli value")
        for name, amount in given.items()
        if amount.nano % _MILLI or abs(amount.nano // _MILLI) > _INT64_MAX
    ]


def _check_step(given: dict[str, Quantity], most: Quantity, path: str, *, fractional: bool) -> list[Cause]:
    step, least = given["step"], given["min"]
    if step.nano <= 0:
        return [wrong(f"{path}.step", str(step), "must be greater than zero")]
    causes = []
    first = least + step
    if first > most:
        detail = f"one step {first} is larger than capacity value: {most}"
        causes.append(wrong(f"{path}.step", str(step), detail))
    beyond = [] if fractional else _beyond_int64(given, path)
    if beyond:
        return [*causes, *beyond]
    detail = f"value is not a multiple of a given step ({step}) from ({least})"
    causes += [
        wrong(f"{path}.step", str(given[name]), detail)
        for name in ("default", "max")
        if name in given and (given[name].nano - least.nano) % step.nano
    ]
    return causes


def _beyond_int64(given: dict[str, Quantity], path: str) -> list[Cause]:
    causes = []
    for name, amount in given.items():
        if amount.nano < 0:
            causes.append(wrong(f"{path}.{name}", str(amount), "must be greater than or equal to 0"))
        elif amount.nano > _INT64_MAX * NANO:
            causes.append(wrong(f"{path}.{name}", str(amount), f"must not be larger than {_INT64_MAX}"))
    return causes
