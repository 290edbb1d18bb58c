"""Compares our quantities with recorded answers of upstream: part of `python -m tests.conformance`.

Compared are: whether text parses, the amount, the notation, the canonical print, order, equality, sum and difference. Where
upstream prints a multiple of 10^21 without its exponent, ours must print the true amount instead (see quantity.py).
It reads no files.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import DECIMAL_EXPONENT, NANO, Quantity


def amount(quantity: Quantity) -> Fraction:
    """The amount as a fraction."""
    return Fraction(quantity.nano, NANO)


def prints_wrongly_upstream(quantity: Quantity) -> bool:
    """Whether upstream loses the exponent of this amount when it prints it."""
    return (
        quantity.notation != DECIMAL_EXPONENT and quantity.nano != 0 and quantity.nano % (10**21 * NANO) == 0
    )


def printed(quantity: Quantity, theirs: str) -> str:
    """Our print; upstream's where upstream is known to be wrong and ours reads back as the amount."""
    text = str(quantity)
    if prints_wrongly_upstream(quantity) and Quantity.parse(text) == quantity:
        return theirs
    return text


def parse_case(case: dict[str, Any]) -> tuple[object, object]:
    """Upstream's and our answer to a parse."""
    try:
        quantity = Quantity.parse(case["input"])
    except InvalidQuantity:
        return "error" in case, True
    if "error" in case:
        return case["error"], str(quantity)
    print_ = case["canonicalAfterAddZero"]
    return (
        (print_, case["format"], Fraction(case["decimal"])),
        (printed(quantity, print_), quantity.notation, amount(quantity)),
    )


def pair_case(case: dict[str, Any]) -> tuple[object, object]:
    """Upstream's and our answers about two quantities."""
    one, other = Quantity.parse(case["a"]), Quantity.parse(case["b"])
    total, rest = one + other, one - other
    theirs = [case[name] for name in ("cmp", "equal", "sum", "difference")]
    theirs += [Fraction(case["sumDecimal"]), Fraction(case["differenceDecimal"])]
    ours = [
        (one > other) - (one < other),
        one == other,
        printed(total, case["sum"]),
        printed(rest, case["difference"]),
        amount(total),
        amount(rest),
    ]
    return theirs, ours


def difference(case: dict[str, Any]) -> str:
    """What is wrong with our answer to a case; empty when nothing is."""
    theirs, ours = (parse_case if case["op"] == "parse" else pair_case)(case)
    return "" if theirs == ours else f"upstream {theirs}, ours {ours}"
