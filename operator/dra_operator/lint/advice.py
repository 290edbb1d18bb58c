"""What helps against a selector that devices do not meet, or fail on: words beside the findings of `matching`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.words import listed

from .known import split
from .lookups import facts
from .names import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import Device, DeviceAttribute, ResourceSlice


def missing(expression: str, why: str) -> tuple[int, int] | None:
    """Where the name stands that a device has not, if it stands there once."""
    _, missing, name = why.partition("no such key: ")
    found = [one for one in facts(expression).lookups if missing and name in {one.name, one.domain}]
    return (found[0].start, found[0].length) if len(found) == 1 else None


def instead(expression: str, devices: Iterable[tuple[ResourceSlice, Device]]) -> str:
    """What devices have where an expression insists on something else; empty if that is not why nothing meets it."""
    for wanted in facts(expression).equalities:
        values = {
            shown(_scalar(attribute))
            for slice_, device in devices
            for name, attribute in device.attributes.items()
            if "/".join(split(name, slice_.spec.driver)) == wanted.what
        }
        if values and shown(wanted.value) not in values:
            return f"{wanted.what} is {listed(sorted(values), NAMED)} there"
    return ""


def _scalar(attribute: DeviceAttribute) -> object:
    values = (attribute.string, attribute.int_value, attribute.bool_value, attribute.version)
    return next((value for value in values if value is not None), None)


def mending(why: str) -> str:
    """What helps against a failure; empty for look-ups that find nothing, whose remedy is that of the code."""
    if "no such key" in why:
        return ""
    if "no such overload" in why:
        return "the attribute is of another type than the expression takes it for"
    return "correct what the message names: guarding a look-up does not help"


def shown(value: object) -> str:
    """A constant as an expression has it."""
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
