"""Checks of the claims' constraints (alloc section 6), derived attributes included (D-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.model import DeviceAttribute, DeviceConstraint

    from .facts import Claim, Facts, Known
    from .snapshot import Broken

Values = tuple[str, frozenset[object]]
"""The type of an attribute's values, and the values."""

_SCALARS: Final = {"string": "string", "int": "int_value", "bool": "bool_value", "version": "version"}
_LISTS: Final = {"int": "ints", "bool": "bools", "string": "strings", "version": "versions"}
_SCALARS_WITH_LISTS: Final = {
    "int": "int_value",
    "bool": "bool_value",
    "string": "string",
    "version": "version",
}


def check_constraints(facts: Facts) -> Iterator[Broken]:
    """Rule `constraint`."""
    for claim in facts.claims:
        for index, constraint in enumerate(claim.allocated.claim.spec.devices.constraints):
            known = [each for each in claim.known if applies(constraint, each)]
            problem = _problem(claim, constraint, known)
            if problem is not None:
                device, text = problem
                yield device.broken("constraint", f"constraints[{index}]: {text}")


def applies(constraint: DeviceConstraint, known: Known) -> bool:
    """Whether a constraint of the claim is about the result (alloc C-2)."""
    return not constraint.requests or not {known.wanted.base, known.wanted.ref}.isdisjoint(
        constraint.requests
    )


def _problem(claim: Claim, constraint: DeviceConstraint, known: Sequence[Known]) -> tuple[Known, str] | None:
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    lists = claim.snapshot.features.list_type_attributes
    found: list[tuple[Known, Values | None]] = []
    for each in known:
        try:
            attribute = lookup(each, name)
        except CelError as error:
            return each, f"{name}: {error}"
        if attribute is None:
            return each, f"it has no {name}"
        values = values_of(attribute, lists=lists)
        if values is None and (lists or found):
            return each, f"its {name} has no value that can be compared"
        found.append((each, values))
    if constraint.match_attribute is not None:
        return _mismatch(name, found)
    return _repetition(name, found)


def lookup(known: Known, name: str) -> DeviceAttribute | None:
    """An attribute by full name; without its domain among the driver's own; derived attributes first (alloc C-5, D-5).

    Raises:
        CelError: a derived attribute fails on the device.
    """
    snapshot = known.claim.snapshot
    for derived in known.wanted.entry.derived_attributes:
        if derived.name == name and snapshot.features.derived_attributes:
            compiled = snapshot.selectors.compile_derived(derived.expression, snapshot.features)
            return compiled.attribute(known.place.slice_, known.place.device)
    attributes = known.place.device.attributes
    domain, slash, short = name.partition("/")
    if name in attributes:
        return attributes[name]
    return attributes.get(short) if slash and domain == known.id.driver else None


def values_of(attribute: DeviceAttribute, *, lists: bool) -> Values | None:
    """What is compared of an attribute; None if it has nothing that can be.

    Args:
        attribute: of a device.
        lists: whether attributes may have several values.
    """
    if lists:
        for kind, field in _LISTS.items():
            if several := getattr(attribute, field):
                return kind, frozenset(several)
    for kind, field in (_SCALARS_WITH_LISTS if lists else _SCALARS).items():
        if (single := getattr(attribute, field)) is not None:
            return kind, frozenset((single,))
    return None


def _mismatch(name: str, found: Sequence[tuple[Known, Values | None]]) -> tuple[Known, str] | None:
    common: Values | None = None
    for index, (known, values) in enumerate(found):
        if not index:
            common = values
            continue
        shared = common[1] & values[1] if common and values and common[0] == values[0] else frozenset()
        if not shared or values is None:
            return known, f"its {name} has nothing in common with the devices before it"
        common = (values[0], shared)
    return None


def _repetition(name: str, found: Sequence[tuple[Known, Values | None]]) -> tuple[Known, str] | None:
    for index, (known, values) in enumerate(found):
        for other, theirs in found[:index]:
            if values and theirs and values[0] == theirs[0] and values[1] & theirs[1]:
                return known, f"{other.id} has the same {name}"
    return None
