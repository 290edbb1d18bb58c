"""What the devices of a claim must have in common, or must not (alloc section 6).

Built by `requests`, driven by `search`: `add` when a device is taken, `remove` when it is given back, strictly last in, first out. State
lives for one call of the allocator. Refusals are final for a partial choice (C-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dra_operator.errors import CelCompileError, CelError, CelRuntimeError, Spot, WorkLimitReached

from .reporter import Rejection, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceAttribute, DeviceConstraint, DeviceId

    from .matcher import ClaimSpot
    from .pools import Candidate

_SCALARS: Final = ("string", "int_value", "bool_value", "version")
_IN_SETS: Final = ("ints", "bools", "strings", "versions", "int_value", "bool_value", "string", "version")
_TYPES: Final = {
    "ints": "int",
    "bools": "bool",
    "strings": "string",
    "versions": "version",
    "int_value": "int",
    "bool_value": "bool",
}


class Derived(Protocol):
    """A request or alternative, as far as its derived attributes go."""

    @property
    def derived(self) -> Mapping[str, str]:
        """Their expressions, by name."""
        ...

    @property
    def spot(self) -> ClaimSpot:
        """How errors name it."""
        ...

    def derived_path(self, name: str) -> str:
        """Where in the claim the expression is."""
        ...


class Constraint(Protocol):
    """One constraint of a claim."""

    def applies_to(self, base: str, ref: str) -> bool:
        """Whether devices of that request (`base`) or sub-request (`ref`) fall under it."""
        ...

    def add(self, wanted: Derived, candidate: Candidate) -> Rejection | None:
        """Take the device in, or say why not; a refused device leaves no trace.

        Raises:
            CelError: the expression of a derived attribute fails on it (alloc D-4).
            WorkLimitReached: it is not known yet, and the decision may do no more work.
        """
        ...

    def remove(self) -> None:
        """Forget the device added last."""
        ...

    @property
    def is_distinct(self) -> bool:
        """Whether devices must have nothing in common, rather than something."""
        ...

    def value(self, wanted: Derived, candidate: Candidate) -> Values | None:
        """The values by which a device is compared; None if it can never be added.

        Raises:
            UnclearError: it has values of several types at once, which only `add` can tell about.
            CelError: as `add`.
        """
        ...

    def state(self) -> Values | frozenset[Values] | None:
        """What further devices are compared with; None while there is none: the values that all have in common, or all values that are taken."""
        ...


class UnclearError(Exception):
    """A device that the API would not take: what it is compared by hangs on what it is compared with."""


class Values(NamedTuple):
    """The values of an attribute as a set; `kind` is their type, and those of different types have nothing in common (alloc C-9, C-12)."""

    kind: str
    values: frozenset[object]

    def common(self, other: Values) -> Values | None:
        """What both have, if anything."""
        both = self.values & other.values if self.kind == other.kind else None
        return Values(self.kind, both) if both else None


UNUSABLE: Final = "unusable"
"""Kind of the values of an attribute that has none, or none that can be compared: equal to no others."""


def values_of(attribute: DeviceAttribute) -> Values | None:
    """The values of a scalar or a list; None if it has none (alloc C-9)."""
    for name in _IN_SETS:
        found = getattr(attribute, name)
        if isinstance(found, tuple):
            if found:
                return Values(_TYPES[name], frozenset(found))
        elif found is not None:
            return Values(_TYPES.get(name, name), frozenset((found,)))
    return None


class Attributes:
    """Attributes of devices as constraints see them: derived ones shadow those that the driver publishes (alloc D-5).

    Args:
        compiler: of derived attributes; keeps their values by slice.
        features: the environment of their expressions.
    """

    def __init__(self, compiler: CelCompiler, features: Features) -> None:
        self._compiler = compiler
        self._features = features

    def of(self, wanted: Derived, candidate: Candidate, name: str) -> DeviceAttribute | None:
        """The attribute, if the device has it.

        Raises:
            CelError: its expression fails on the device, with upstream's words in front.
            WorkLimitReached: its value is not known yet.
        """
        expression = wanted.derived.get(name)
        if expression is None:
            return lookup(candidate.device, candidate.id.driver, name)
        try:
            derivation = self._compiler.compile_derived(expression, self._features)
            return derivation.attribute(candidate.slice_, candidate.device)
        except CelError as error:
            raise _located(error, wanted, candidate, name) from error
        except WorkLimitReached as error:
            raise WorkLimitReached(
                error.units, Spot(wanted.spot.ref, wanted.derived_path(name), "", expression)
            ) from error


def _located(error: CelError, wanted: Derived, candidate: Candidate, name: str) -> CelError:
    is_general = isinstance(error, CelCompileError)
    device = "" if is_general else str(candidate.id)
    spot = Spot(wanted.spot.ref, wanted.derived_path(name), device, str(error))
    match error:
        case CelCompileError():
            return CelCompileError(f"compile derived attribute {name} failed: {error}", spot, error.faults)
        case CelRuntimeError():
            text = f"evaluate derived attribute {name} on device {candidate.id} failed: {error}"
            return CelRuntimeError(text, spot)
        case _:
            return type(error)(f"derived attribute {name} on device {candidate.id}: {error}", spot)


class _OfAttribute:
    """A constraint about one attribute.

    Args:
        constraint: as the claim has it.
        index: of the constraint in its claim.
        field: its member that names the attribute.
        attributes: where values come from.
        lists: whether lists are compared, by what they have in common.
    """

    def __init__(
        self, constraint: DeviceConstraint, index: int, field: str, attributes: Attributes, *, lists: bool
    ) -> None:
        self._requests = frozenset(constraint.requests)
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._name = f"spec.devices.constraints[{index}].{field} {self._attribute}"
        self._missing = Rejection(Why.CONSTRAINT, f"{self._name}: the device does not have it")
        self._attributes = attributes
        self._lists = lists
        self._ids: list[DeviceId] = []

    def applies_to(self, base: str, ref: str) -> bool:
        """See Constraint (alloc C-2)."""
        return not self._requests or base in self._requests or ref in self._requests

    def value(self, wanted: Derived, candidate: Candidate) -> Values | None:
        """See Constraint."""
        return _value(self._attributes.of(wanted, candidate, self._attribute), candidate, lists=self._lists)


class MatchAttribute(_OfAttribute):
    """All devices have the same value of one attribute, or with lists one in common (alloc C-6…C-12)."""

    is_distinct = False

    def __init__(
        self, constraint: DeviceConstraint, index: int, attributes: Attributes, *, lists: bool
    ) -> None:
        super().__init__(constraint, index, "matchAttribute", attributes, lists=lists)
        self._first: DeviceAttribute | None = None
        self._common: list[Values] = []

    def add(self, wanted: Derived, candidate: Candidate) -> Rejection | None:
        """See Constraint."""
        found = self._attributes.of(wanted, candidate, self._attribute)
        if found is None:
            return self._missing
        refusal = self._add_values(found) if self._lists else self._add_scalar(found)
        if refusal is None:
            self._ids.append(candidate.id)
        return refusal

    def remove(self) -> None:
        """See Constraint; after the last one the next device sets a new reference (alloc C-8)."""
        self._ids.pop()
        if self._lists:
            self._common.pop()

    def state(self) -> Values | None:
        """See Constraint."""
        if self._lists:
            return self._common[-1] if self._common else None
        if self._first is None or not self._ids:
            return None
        return _scalar_values(self._first) or Values(UNUSABLE, frozenset())

    def _add_values(self, found: DeviceAttribute) -> Rejection | None:
        """The running intersection, all of which are kept to go back to (alloc C-10, C-11)."""
        values = values_of(found)
        if values is None:
            return Rejection(Why.CONSTRAINT, f"{self._name}: its value cannot be used")
        common = self._common[-1].common(values) if self._common else values
        if common is None:
            return Rejection(Why.CONSTRAINT, self._name, self._ids[-1])
        self._common.append(common)
        return None

    def _add_scalar(self, found: DeviceAttribute) -> Rejection | None:
        """Any first value will do, even none (alloc C-6); versions are compared as text (alloc C-7, oracle 7 no. 8)."""
        if not self._ids:
            self._first = found
            return None
        field = _scalar(found)
        is_same = field is not None and getattr(self._first, field) == getattr(found, field)
        return None if is_same else Rejection(Why.CONSTRAINT, self._name, self._ids[0])


class DistinctAttribute(_OfAttribute):
    """No two devices have a value of one attribute in common (alloc C-13…C-17)."""

    is_distinct = True

    def __init__(
        self, constraint: DeviceConstraint, index: int, attributes: Attributes, *, lists: bool
    ) -> None:
        super().__init__(constraint, index, "distinctAttribute", attributes, lists=lists)
        self._taken: list[Values | None] = []

    def add(self, wanted: Derived, candidate: Candidate) -> Rejection | None:
        """See Constraint."""
        found = self._attributes.of(wanted, candidate, self._attribute)
        if found is None:
            return self._missing
        values = values_of(found) if self._lists else _scalar_values(found)
        if values is None and (self._lists or self._taken):
            return Rejection(Why.CONSTRAINT, f"{self._name}: its value cannot be used")
        for other, device in zip(self._taken, self._ids, strict=True) if values is not None else ():
            if other is not None and values is not None and other.common(values):
                return Rejection(Why.CONSTRAINT, self._name, device)
        self._taken.append(values)
        self._ids.append(candidate.id)
        return None

    def remove(self) -> None:
        """See Constraint."""
        self._taken.pop()
        self._ids.pop()

    def state(self) -> frozenset[Values] | None:
        """See Constraint."""
        unusable = Values(UNUSABLE, frozenset())
        return frozenset(values or unusable for values in self._taken) if self._taken else None


def _value(found: DeviceAttribute | None, candidate: Candidate, *, lists: bool) -> Values | None:
    if found is None:
        return None
    if lists:
        return values_of(found)
    if sum(getattr(found, name) is not None for name in _SCALARS) > 1:
        raise UnclearError
    return _scalar_values(found) or Values(UNUSABLE, frozenset((candidate.id,)))


def _scalar(attribute: DeviceAttribute) -> str | None:
    """The field that holds the value, first in upstream's order; None for lists and for no value."""
    for name in _SCALARS:
        if getattr(attribute, name) is not None:
            return name
    return None


def _scalar_values(attribute: DeviceAttribute) -> Values | None:
    field = _scalar(attribute)
    return Values(_TYPES.get(field, field), frozenset((getattr(attribute, field),))) if field else None


def lookup(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """An attribute by its full name; those without domain are the driver's own (alloc C-5)."""
    found = device.attributes.get(name)
    domain, slash, identifier = name.partition("/")
    if found is None and slash and domain == driver:
        found = device.attributes.get(identifier)
    return found
