"""Compares what requests take of capacities with recorded answers of upstream (oracle 1.4): part of `python -m tests.conformance`.

Two forms of lines: upstream's tables, one row in TABLES for each, and problems at random (`in`, `out`). What panics in upstream must be an
error of ours, and errors are compared as such: the texts are our own. It reads no files.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from dra_operator.allocator.capacity import Rules, consumed, counts_in_milli, lack, share_of, violates
from dra_operator.errors import InvalidCapacity
from dra_operator.model import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    Device,
    DeviceCapacity,
    from_object,
)
from dra_operator.quantity import Quantity

from .quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
Answers = tuple[object, object]
"""Upstream's and ours."""

ERROR: Final = "an error"
NAME: Final = "c"
"""Of the one capacity of a device."""


def accepts(raw: Json) -> bool:
    """Whether a line is a case of this kind."""
    return raw.get("group") in TABLES or ("in" in raw and "out" in raw)


def difference(raw: Json) -> str:
    """What is wrong with our answers to a case; empty when nothing is."""
    theirs, ours = _random(raw["in"], raw["out"]) if "in" in raw else TABLES[raw["group"]](raw["case"])
    return "" if theirs == ours else f"upstream {theirs}, ours {ours}"


def _rules(case: Json) -> Rules:
    return Rules(fractional=case["fractionalCapacityRange"], upstream_0_37=True)


def _quantity(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def _policy(case: Json) -> CapacityRequestPolicy | None:
    raw = case["requestPolicy"]
    return None if raw is None else from_object(CapacityRequestPolicy, raw)


def _asked(question: Callable[[], object]) -> object:
    try:
        return question()
    except InvalidCapacity:
        return ERROR


def _milli(case: Json) -> Answers:
    """An amount fits if a range of it is counted in thousandths."""
    quantity = Quantity.parse(case["q"])
    fits = counts_in_milli(CapacityRequestPolicyRange(min=quantity), Rules())
    return ERROR if case["expectErr"] else case["expectMilli"], amount(quantity) * 1000 if fits else ERROR


def _in_milli(case: Json) -> Answers:
    valid = from_object(CapacityRequestPolicyRange, case["validRange"])
    return case["expectUseMilli"], counts_in_milli(valid, _rules(case))


def _violates(case: Json) -> Answers:
    asked = Quantity.parse(case["requestedVal"])
    return case["expectResult"], _asked(lambda: violates(asked, _policy(case), _rules(case)))


def _consumed(case: Json) -> Answers:
    capacity = DeviceCapacity(Quantity.parse(case["capacityValue"]), _policy(case))
    theirs = ERROR if case["expectErr"] else Quantity.parse(case["expectResult"])
    return theirs, _asked(lambda: consumed(_quantity(case["requestedVal"]), capacity, _rules(case)))


TABLES: Final[dict[str, Callable[[Json], Answers]]] = {
    "testCalculateConsumedCapacity": _consumed,
    "testSafeMilliValue": _milli,
    "testUseMilli": _in_milli,
    "testViolateCapacityRequestPolicy": _violates,
}
"""Table of upstream's → its question to us."""


def _random(asked: Json, out: Json) -> Answers:
    """All that upstream says of the problem; of what panics there something must be an error of ours."""
    rules = _rules(asked)
    capacity = from_object(DeviceCapacity, asked["capacity"])
    requested = _quantity(asked.get("requestedVal"))
    taken = _asked(lambda: consumed(requested, capacity, rules))
    ours: Json = {
        "consumed": amount(taken) if isinstance(taken, Quantity) else taken,
        "violatesPolicy": _asked(lambda: _violates_as_computed(taken, capacity, rules)),
        "fits": _asked(lambda: _fits(asked, capacity, rules)),
        "useMilli": _is_in_milli(capacity, rules),
    }
    if "panic" in out:
        return out["panic"], out["panic"] if ERROR in ours.values() else ours
    theirs = {
        "consumed": Fraction(out["consumedDecimal"]) if "consumed" in out else ERROR,
        "violatesPolicy": out.get("violatesPolicy", ERROR),
        "fits": out.get("fits", ERROR),
        "useMilli": out.get("useMilli", False),
    }
    return theirs, ours


def _violates_as_computed(taken: object, capacity: DeviceCapacity, rules: Rules) -> object:
    """For an amount that is not written as the default is: the recorded answers are about computed ones (oracle 7 no. 3)."""
    if not isinstance(taken, Quantity):
        return taken
    computed = Quantity(taken.nano, taken.notation, taken.power)
    return violates(computed, capacity.request_policy, rules)


def _is_in_milli(capacity: DeviceCapacity, rules: Rules) -> bool:
    policy = capacity.request_policy
    valid = policy.valid_range if policy is not None else None
    return valid is not None and counts_in_milli(valid, rules)


def _fits(asked: Json, capacity: DeviceCapacity, rules: Rules) -> bool:
    """Whether the policy allows it and there is enough beside what is in use and what was taken in the same call, be that negative."""
    requested = _quantity(asked.get("requestedVal"))
    wanted = None if requested is None else CapacityRequirements({NAME: requested})
    device = Device("d", capacity={NAME: capacity})
    share = share_of(device, wanted, rules)
    used = {NAME: Quantity.parse(asked["inUse"])} if "inUse" in asked else {}
    in_flight = {NAME: Quantity.parse(asked["allocating"]).nano} if "allocating" in asked else {}
    is_allowed = not violates(share.amounts[NAME], capacity.request_policy, rules)
    return is_allowed and not lack(device, share, used, in_flight)
