"""Validation of the attributes and capacities of devices: names, kinds of values, their sizes (cp V-93, V-94).

Called by `devices`. Values that are lists belong to a gate that is off by default: where it is off they are dropped before, as a real server drops them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dra_operator.validation.checks import qualified_name, too_long, wrong
from dra_operator.validation.objects import dicts, dig

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause
    from dra_operator.validation.objects import Obj

_VALUES = ("int", "bool", "string", "version")
_LISTS = ("ints", "bools", "strings", "versions")
_ALL = ", ".join(f"`{name}`" for name in (*_VALUES, *_LISTS))
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
_TEXT_LIMIT = 64


def drop_lists(spec: Obj) -> None:
    """Take values off that are lists, in place."""
    for device in dicts(spec.get("devices")):
        for attribute in dicts((device.get("attributes") or {}).values()):
            for name in _LISTS:
                attribute.pop(name, None)


def check_attributes(device: Obj, path: str) -> list[Cause]:
    """Names and values of a device's attributes, and names of its capacities."""
    causes: list[Cause] = []
    for name, attribute in (device.get("attributes") or {}).items():
        causes += qualified_name(f"{path}.attributes", name)
        causes += _check_value(attribute, f"{path}.attributes[{name}]")
    for name in device.get("capacity") or {}:
        causes += qualified_name(f"{path}.capacity", name)
    return causes


def _check_value(attribute: Any, path: str) -> list[Cause]:
    kinds = [name for name in _VALUES if dig(attribute, name) is not None]
    kinds += [name for name in _LISTS if dig(attribute, name)]
    if len(kinds) != 1:
        given = f"{{{', '.join(kinds)}}}" if kinds else ""
        return [wrong(path, given, f"must specify {'exactly ' if kinds else ''}one of: {_ALL}")]
    kind, value = kinds[0], attribute[kinds[0]]
    if kind not in _LISTS:
        return _check_text(kind, value, f"{path}.{kind}")
    single = kind.removesuffix("s")
    return [
        cause
        for number, one in enumerate(value)
        for cause in _check_text(single, one, f"{path}.{kind}[{number}]")
    ]


def _check_text(kind: str, value: Any, path: str) -> list[Cause]:
    if kind in {"string", "version"} and len(value.encode()) > _TEXT_LIMIT:
        return [too_long(path, _TEXT_LIMIT)]
    if kind == "version" and not _SEMVER.fullmatch(value):
        return [wrong(path, value, "must be a string compatible with semver.org spec 2.0.0")]
    return []
