"""Nodes of YAML and what they are worth, as Go's library has it: YAML 1.1, so that `on`, `no` and `y` are booleans, and dates are strings.

Text to nodes, and scalars and keys to values; it must not know documents.
"""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar, Final

import yaml

_BASE: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MERGE: Final = "tag:yaml.org,2002:merge"
"""Tag of the key `<<`."""

_WHOLE: Final = 10**21
"""From here on Go writes numbers into JSON with an exponent."""


class Unfit(yaml.YAMLError):
    """A value that no object of JSON can have."""

    def __init__(self, message: str, node: yaml.Node) -> None:
        super().__init__(message)
        self.node = node


class _Loader(_BASE):  # type: ignore[misc,valid-type]
    """Resolves plain scalars as Go's YAML does."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))


_resolve(
    "bool", "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"
)
_resolve("null", "~|null|Null|NULL", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
_resolve("int", r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|0|[1-9][0-9_]*)", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
_resolve("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.")
_resolve("merge", "<<", "<")


class _Reanchoring(yaml.composer.Composer, _Loader):
    """Has an anchor stand a second time, for what follows it, as Go's YAML does; slower than what the other is made of."""

    def __init__(self, stream: str) -> None:
        _Loader.__init__(self, stream)  # type: ignore[call-arg]
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


def composed(text: str) -> yaml.Node | None:
    """The root of a document; None if there is nothing in it.

    Raises:
        YAMLError: it is no YAML.
    """
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.composer.ComposerError as error:
        if "duplicate anchor" not in f"{error.context} {error.problem}":
            raise
        return yaml.compose(text, Loader=_Reanchoring)


def key_of(node: yaml.Node) -> str:
    """A key as JSON has it."""
    if not isinstance(node, yaml.ScalarNode):
        raise Unfit("a key is a list or a mapping", node)
    value = scalar(node)
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(node.value if isinstance(value, float) else value)
    )


def scalar(node: yaml.ScalarNode) -> Any:
    """A value that is neither list nor mapping."""
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "bool":
        return text[:1] in "yYtT" or text.lower() == "on"
    if kind == "null":
        return None
    if kind == "int":
        return _integer(text)
    if kind == "float":
        return _number(node)
    return text


def _number(node: yaml.ScalarNode) -> int | float:
    """As JSON has it afterwards: `1e3` and `2.0` are whole numbers."""
    try:
        number = float(node.value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Unfit(f"{node.value} is no number of JSON", node)
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _integer(text: str) -> int | float | str:
    """Base by prefix; a leading zero is octal, as it is to Go. What has no digits is text, what has too many is a float, or text."""
    sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("+-").replace("_", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    try:
        return sign * (int(digits, 8) if octal else int(digits, 0))
    except ValueError:
        number = float(digits) if digits.isdigit() else math.inf
        return text if math.isinf(number) else sign * number
