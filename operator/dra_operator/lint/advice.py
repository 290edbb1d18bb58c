"""What helps against a selector that devices do not meet, or fail on: words beside the findings of `matching`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dra_operator.cel.parsing import syntax
from dra_operator.words import akin, listed

from .known import split
from .lookups import facts, parts, read_by
from .names import NAMED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .known import Published


_KEY: Final = "no such key: "


def missing(expression: str, why: str) -> tuple[int, int] | None:
    """Where the name stands that a device has not, if it stands there once."""
    _, absent, name = why.partition(_KEY)
    if not absent:
        return None
    found = [(one.start, one.length) for one in facts(expression).lookups if name in {one.name, one.domain}]
    if not found:  # of a domain that is computed, or behind a variable
        read = re.compile(rf"""(?:\.\??\s*|["'])({re.escape(name)})(?![\w-])""")
        found = [(one.start(1), len(name)) for one in read.finditer(expression)]
    return found[0] if len(found) == 1 else None


def instead(expression: str, devices: Iterable[tuple[ResourceSlice, Device]]) -> str:
    """What devices have where an expression insists on something else; empty if that is not why nothing meets it."""
    for wanted in facts(expression).equalities:
        values = {
            shown(_scalar(attribute))
            for slice_, device in devices
            for name, attribute in device.attributes.items()
            if "/".join(split(name, slice_.spec.driver)) == wanted.what and _scalar(attribute) is not None
        }
        if values and shown(wanted.value) not in values:
            return f"{wanted.what} is {listed(sorted(values), NAMED)} there"
    return ""


def _scalar(attribute: DeviceAttribute) -> object:
    values = (attribute.string, attribute.int_value, attribute.bool_value, attribute.version)
    return next((value for value in values if value is not None), None)


def mending(expression: str, why: str, device: Device, driver: str, published: Published) -> str:
    """What helps against a failure; empty where it is to guard the look-up, the remedy of the code.

    Args:
        expression: that fails.
        why: in upstream's words.
        device: that it fails on.
        driver: of the device.
        published: names; one that is nearly the one that is missing was meant.
    """
    _, absent, name = why.partition(_KEY)
    if absent:
        maps = published.names.values()
        names = {each for domains in maps for found in domains.values() for each in found}
        near = "" if name in names | published.domains else akin(name, names | published.domains)
        return f"did you mean `{near}`?" if near else ""
    if "no such overload" in why:
        texts = {
            "/".join(split(each, driver)) for each, one in device.attributes.items() if one.string is not None
        }
        return (
            contained(expression, texts)
            or "the attribute is of another type than the expression takes it for"
        )
    return "correct what the message names: guarding a look-up does not help"


def contained(expression: str, texts: Container[str]) -> str:
    """What to write for `"a" in text`; empty if that is not there. `texts` are the attributes that are text."""
    for node in parts(expression):
        if not isinstance(node, syntax.Call) or node.function != "@in":
            continue
        wanted, (domain, identifier) = node.args[0], (*read_by(node.args[1], {})[1:], "", "")[:2]
        if (
            isinstance(wanted, syntax.Literal)
            and isinstance(wanted.value, str)
            and f"{domain}/{identifier}" in texts
        ):
            return f'write `device.attributes["{domain}"].{identifier}.contains({shown(wanted.value)})`'
    return ""


def shown(value: object) -> str:
    """A constant as an expression has it."""
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
