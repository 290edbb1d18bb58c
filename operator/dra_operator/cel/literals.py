"""Constants in expression text: numbers, strings and bytes with their escapes (CEL language definition, "Values").

cel-python's own conversion keeps unknown escapes verbatim and accepts escapes that CEL refuses, so it is not used.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from .values import INT_MAX, INT_MIN, UINT_MAX, UInt

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL
)
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
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def unsigned(text: str) -> UInt:
    """An unsigned 64-bit constant, `u` at its end.

    Raises:
        ValueError: it does not fit.
    """
    value = _whole(text[:-1])
    if not 0 <= value <= UINT_MAX:
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


def _whole(text: str) -> int:
    limit = 40
    if len(text) > limit:
        raise ValueError("invalid int literal")
    return int(text, 16 if "x" in text else 10)


def _unquote(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    width = 3 if body[:3] in {'"""', "'''"} else 1
    return body[width:-width], raw


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
        raise ValueError(f"invalid escape {found[0]}")
    return chr(point)


def _code(escape: str) -> int:
    if escape[0] in "xXuU" and len(escape) > 1:
        return int(escape[1:], 16)
    if escape.isdigit() and len(escape) > 1:
        return int(escape, 8)
    raise ValueError(f"invalid escape \\{escape}")


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
        raise ValueError(f"invalid escape \\{escape} in bytes")
    return bytes([_code(escape)])


CONSTANTS: Final[dict[str, Callable[[str], object]]] = {
    "INT_LIT": integer,
    "UINT_LIT": unsigned,
    "FLOAT_LIT": double,
    "STRING_LIT": string,
    "MLSTRING_LIT": string,
    "BYTES_LIT": octets,
    "BOOL_LIT": lambda text: text == "true",
    "NULL_LIT": lambda _: None,
}
"""Terminal of the grammar → how its text becomes a value."""
