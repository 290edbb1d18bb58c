"""Answers of allocators in one form that can be compared, whoever gave them (pass rule: oracle 1.2, 6).

Nil, absent and empty are the same, as in upstream's own comparisons. Amounts are compared by value, and of share ids only that they are there.
"""

from __future__ import annotations

from typing import Any

from dra_operator.quantity import Quantity

SHARE_ID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""What upstream's answers have in place of random share ids."""


def canonical(value: Any) -> Any:
    """JSON without what is empty, with amounts as whole nano-units and share ids masked."""
    if isinstance(value, dict):
        made = {key: _field(key, each) for key, each in value.items()}
        return {key: each for key, each in made.items() if each not in (None, [], {}, "")}
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    return value


def _field(name: str, value: Any) -> Any:
    if name == "shareID":
        return SHARE_ID if value else None
    if name == "consumedCapacity" and value:
        return {key: Quantity.parse(amount).nano for key, amount in value.items()}
    if name == "parameters":
        return value  # a driver's own: carried as it is
    return canonical(value)
