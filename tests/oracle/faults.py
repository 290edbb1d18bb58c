"""Differences that are left: faults of upstream, by name, with the reason. Data alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .differences import Difference


@dataclass(frozen=True, slots=True)
class Fault:
    """A difference that is known and left.

    Attributes:
        name: what the report calls it.
        reason: what upstream does, and why we do not.
        kinds: of differences that it explains.
        expression: searched in the expression.
        error: searched in upstream's error.
    """

    name: str
    reason: str
    kinds: frozenset[str]
    expression: str = ""
    error: str = ""

    def explains(self, difference: Difference) -> bool:
        """Whether it explains the difference."""
        return (
            difference.kind in self.kinds
            and re.search(self.expression, difference.question["expression"]) is not None
            and re.search(self.error, difference.theirs.get("error", "")) is not None
        )


FAULTS: Final = (
    Fault(
        "quantities that comparing changes",
        "upstream rewrites the left quantity as a decimal when it compares it with one that is a decimal (100Ti, 1.5Gi): after memory.isLessThan(quantity('1.5Gi')), "
        "memory.asInteger() fails in the same expression, and before it does not; ours is the same number before and after",
        frozenset({"value", "passes"}),
        expression=r"(?s)(compareTo|isLessThan|isGreaterThan).*(isInteger|asInteger|asApproximateFloat)",
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
