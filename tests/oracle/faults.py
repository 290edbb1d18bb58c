"""Differences that are left: faults of upstream, by name, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .differences import Difference

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A difference that is known and left.

    Attributes:
        name: what the report calls it.
        reason: what upstream does, and why we do not.
        kinds: of differences that it explains.
        expression: searched in the expression.
        error: searched in upstream's error, if it has one.
        question: whether the device and the expression have what it takes.
    """

    name: str
    reason: str
    kinds: frozenset[str]
    expression: str = ""
    error: str = ""
    question: Callable[[Json], bool] = lambda _: True

    def explains(self, difference: Difference) -> bool:
        """Whether it explains the difference."""
        return (
            difference.kind in self.kinds
            and re.search(self.expression, difference.question["expression"]) is not None
            and re.search(self.error, difference.theirs.get("error", "")) is not None
            and self.question(difference.question)
        )


_AMOUNT: Final = re.compile(r"[-+.\w]+")


def _has_decimals(question: Json) -> bool:
    """Whether it is about an amount that upstream holds as a decimal: a capacity, an attribute's value, or a part of the expression."""
    return any(map(_is_decimal, _texts(question)))


def _texts(question: Json) -> Iterator[str]:
    yield from _AMOUNT.findall(question["expression"])
    device = question.get("device", {})
    for entry in device.get("capacity", {}).values():
        yield entry["value"]
    for attribute in device.get("attributes", {}).values():
        for value in attribute.values():
            yield from map(str, value if isinstance(value, list) else [value])


def _is_decimal(text: str) -> bool:
    try:
        return not Quantity.parse(text).small
    except InvalidQuantity:
        return False


FAULTS: Final = (
    Fault(
        "quantities that comparing changes",
        "upstream rewrites the left quantity as a decimal when it compares it with one that is a decimal (100Ti, 1.5Gi): after memory.isLessThan(quantity('1.5Gi')), "
        "memory.asInteger() fails in the same expression, and before it does not; ours is the same number before and after",
        frozenset({"value", "passes"}),
        expression=r"(?s)^(?=.*\.(compareTo|isLessThan|isGreaterThan)\().*\.(isInteger|asInteger)\(",
        error=r"^(cannot convert value to integer)?$",
        question=_has_decimals,
    ),
    Fault(
        "crash of the planner",
        "upstream crashes when it prepares an optional element that is an optional index by another computed index, [?a[?b[0]]]; ours evaluates it",
        frozenset({"passes"}),
        error=r"^runtime error: index out of range \[0\] with length 0$",
    ),
)


def explained(difference: Difference) -> Fault | None:
    """The fault that explains a difference."""
    return next((fault for fault in FAULTS if fault.explains(difference)), None)
