"""Text in double quotes, as CEL and Go write it."""

from __future__ import annotations

from typing import Final

from .parts import by_parts

_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_LAST_OF_TWO_BYTES: Final = 0xFFFF


def quoted(text: str) -> str:
    """The text in double quotes, with CEL's escapes."""
    return f'"{by_parts(text, lambda part: part.translate(_ESCAPES))}"'


def go_quoted(text: str) -> str:
    """Text as Go's `%q` writes it: what cannot be printed is escaped, too."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped if escaped.isprintable() else "".join(map(_printable, escaped))}"'


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if char.isascii():
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_TWO_BYTES else f"\\U{code:08x}"
