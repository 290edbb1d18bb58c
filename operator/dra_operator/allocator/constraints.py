"""What the devices of a claim must have in common (alloc section 6).

Built by `requests`, driven by `search`: `add` when a device is taken, `remove` when it is given back, strictly last in, first out. State
lives for one call of the allocator. Refusals are final for a partial choice (C-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from .reporter import Rejection, Why
from .unbuilt import gate_of

if TYPE_CHECKING:
    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceAttribute, DeviceConstraint

_SCALARS: Final = ("string", "int_value", "bool_value", "version")
_LISTS: Final = ("ints", "bools", "strings", "versions")


class Constraint(Protocol):
    """One constraint of a claim."""

    def applies_to(self, base: str, ref: str) -> bool:
        """Whether devices of that request (`base`) or sub-request (`ref`) fall under it."""
        ...

    def add(self, driver: str, device: Device) -> Rejection | None:
        """Take the device in, or say why not; a refused device leaves no trace."""
        ...

    def remove(self) -> None:
        """Forget the device added last."""
        ...


class MatchAttribute:
    """All devices have the same value of one attribute (alloc C-6…C-8).

    Args:
        constraint: with `match_attribute` set.
        index: of the constraint in its claim.
        features: whether list values are compared (not built: such values are refused with that reason).
    """

    def __init__(self, constraint: DeviceConstraint, index: int, features: Features) -> None:
        self._requests = frozenset(constraint.requests)
        self._attribute = constraint.match_attribute or ""
        self._name = f"spec.devices.constraints[{index}].matchAttribute {self._attribute}"
        self._lists = features.list_type_attributes
        self._reference: DeviceAttribute | None = None
        self._count = 0

    def applies_to(self, base: str, ref: str) -> bool:
        """See Constraint (alloc C-2)."""
        return not self._requests or base in self._requests or ref in self._requests

    def add(self, driver: str, device: Device) -> Rejection | None:
        """See Constraint."""
        found = lookup(device, driver, self._attribute)
        refusal = self._refusal(found)
        if refusal is None:
            if self._count == 0:
                self._reference = found
            self._count += 1
        return refusal

    def remove(self) -> None:
        """See Constraint; after the last one the next device sets a new reference (alloc C-8)."""
        self._count -= 1

    def _refusal(self, found: DeviceAttribute | None) -> Rejection | None:
        if found is None:
            return Rejection(Why.CONSTRAINT, f"{self._name}: the device does not have it")
        if self._lists and any(getattr(found, name) is not None for name in _LISTS):
            return Rejection(Why.NOT_BUILT, gate_of("list_type_attributes"))
        if self._count == 0:
            return self._first_refusal(found)
        return None if self._same(found) else Rejection(Why.CONSTRAINT, self._name)

    def _first_refusal(self, found: DeviceAttribute) -> Rejection | None:
        """Without list types any first value will do, even none (alloc C-6); with them it must be usable (alloc C-9)."""
        if self._lists and _scalar(found) is None:
            return Rejection(Why.CONSTRAINT, f"{self._name}: its value cannot be used")
        return None

    def _same(self, found: DeviceAttribute) -> bool:
        """Compare by the type of the new value; versions as text (alloc C-7, oracle 7 no. 8)."""
        field = _scalar(found)
        return field is not None and bool(getattr(self._reference, field) == getattr(found, field))


def _scalar(attribute: DeviceAttribute) -> str | None:
    """The field that holds the value, first in upstream's order; None for lists and for no value."""
    return next((name for name in _SCALARS if getattr(attribute, name) is not None), None)


def lookup(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """An attribute by its full name; those without domain are the driver's own (alloc C-5)."""
    found = device.attributes.get(name)
    domain, slash, identifier = name.partition("/")
    if found is None and slash and domain == driver:
        found = device.attributes.get(identifier)
    return found
