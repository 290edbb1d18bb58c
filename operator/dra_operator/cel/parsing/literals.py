"""Constants in expression text: numbers, strings and bytes with their escapes (CEL language definition, "Values").

Called by the parser with tokens, whose escapes are well-formed; what is left to refuse is values that do not exist, in cel-go's words.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from dra_operator.cel.types.values import INT_MAX, INT_MIN, UINT_MAX, UInt

from .tokens import ESCAPE

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPE = re.compile(ESCAPE)
_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "?": "?",
    "`": "`",
}
_SURROGATES: Final = range(0xD800, 0xE000)
_UNICODE_END: Final = 0x110000


def integer(text: str) -> int:
    """A signed 64-bit constant.

    Raises:
        ValueError: it does not fit.
    """
    value = _whole(text)
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def unsigned(text: str) -> UInt:
    """An unsigned 64-bit constant, `u` at its end.

    Raises:
        ValueError: it does not fit.
    """
    value = _whole(text[:-1])
    if value is None or value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return UInt(value)


def double(text: str) -> float:
    """A double constant.

    Raises:
        ValueError: it does not fit.
    """
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return value


def _whole(text: str) -> int | None:
    """A whole number, or None when it has so many digits that no type holds it."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    base = 16 if digits.startswith("0x") else 10
    digits = digits.removeprefix("0x").lstrip("0") or "0"
    return sign * int(digits, base) if len(digits) <= _MOST_DIGITS else None


_MOST_DIGITS: Final = 20
"""Digits of the largest unsigned 64-bit number."""


def _unquote(text: str) -> tuple[str, bool]:
    """What stands between the quotes, with all line ends made the same, and whether escapes mean nothing in it."""
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    width = 3 if body[:3] in {'"""', "'''"} and len(body) >= 6 else 1  # noqa: PLR2004 -- both sides
    return body[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def string(text: str) -> str:
    """A string constant without its quotes, escapes resolved.

    Raises:
        ValueError: an escape that CEL does not know.
    """
    body, raw = _unquote(text)
    return body if raw else _ESCAPE.sub(_string_escape, body)


def _string_escape(found: re.Match[str]) -> str:
    escape = found[0][1:]
    if escape in _SIMPLE:
        return _SIMPLE[escape]
    point = _code(escape)
    if point in _SURROGATES or point >= _UNICODE_END:
        raise ValueError("invalid unicode code point")
    return chr(point)


def _code(escape: str) -> int:
    return int(escape[1:], 16) if escape[0] in "xXuU" else int(escape, 8)


def octets(text: str) -> bytes:
    r"""A bytes constant: characters as UTF-8, `\x` and octal escapes as single bytes.

    Raises:
        ValueError: an escape that CEL does not know in bytes.
    """
    body, raw = _unquote(text[1:])
    if raw:
        return body.encode()
    parts, last = [], 0
    for found in _ESCAPE.finditer(body):
        parts += [body[last : found.start()].encode(), _bytes_escape(found[0][1:])]
        last = found.end()
    return b"".join([*parts, body[last:].encode()])


def _bytes_escape(escape: str) -> bytes:
    if escape in _SIMPLE:
        return _SIMPLE[escape].encode()
    if escape[0] in "uU":
        raise ValueError("unable to unescape string")
    return bytes([_code(escape)])


CONSTANTS: Final[dict[str, Callable[[str], object]]] = {
    "NUM_INT": integer,
    "NUM_UINT": unsigned,
    "NUM_FLOAT": double,
    "STRING": string,
    "BYTES": octets,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
"""Kind of a token → how its text becomes a value."""
