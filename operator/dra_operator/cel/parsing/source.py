"""Where in an expression something is wrong, and how that is shown: line, column, the line itself with a caret (cel-go's `common.Error`).

Used by the parser and the checker. Knows text and positions; must not know what an expression means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelCompileError, CelFault, CelUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOWHERE: Final = -1
"""The position of faults that belong to the expression as a whole."""

MAX_FAULTS: Final = 100
"""Faults that are shown; of further ones only their number is."""

_WIDE: Final = 0x80
"""First character that is shown with a wide dot or caret below it."""


def located(text: str, at: int, message: str, hint: str = "") -> CelFault:
    """A fault at a position of the text."""
    if at == NOWHERE:
        return CelFault(message, -1, 0, at, hint)
    column = at - (text.rfind("\n", 0, at) + 1)
    return CelFault(message, text.count("\n", 0, at) + 1, column + 1 if text else 0, at, hint)


def in_order(faults: Iterable[CelFault]) -> list[CelFault]:
    """Faults as upstream sorts them: by line and column, those of one place as they were found."""
    return sorted(faults, key=lambda fault: (fault.line, fault.column))


def compile_error(text: str, faults: Sequence[CelFault]) -> CelCompileError:
    """The error for faults of an expression: upstream's text, then what may mend them, each hint once."""
    ordered = in_order(faults)
    shown = [_shown(text, fault) for fault in ordered[:MAX_FAULTS]]
    if len(ordered) > MAX_FAULTS:
        shown.append(f"{len(ordered) - MAX_FAULTS} more errors were truncated")
    hints = dict.fromkeys(fault.hint for fault in ordered[:MAX_FAULTS] if fault.hint)
    lines = "\n".join([*shown, *(f"hint: {hint}" for hint in hints)])
    return CelCompileError(f"compilation failed: {lines}", faults=tuple(ordered))


def _shown(text: str, fault: CelFault) -> str:
    head = f"ERROR: <input>:{fault.line}:{fault.column}: {fault.message}"
    if fault.offset == NOWHERE or not text:
        return head
    start = text.rfind("\n", 0, fault.offset) + 1
    line = text[start:].partition("\n")[0].replace("\t", " ")
    before, under = line[: fault.offset - start], line[fault.offset - start : fault.offset - start + 1]
    dots = "".join("．" if ord(char) >= _WIDE else "." for char in before)  # noqa: RUF001 -- cel-go's wide dot
    caret = "＾" if under and ord(under) >= _WIDE else "^"  # noqa: RUF001 -- and its wide caret
    return f"{head}\n | {line}\n | {dots}{caret}"


def fault(text: str, at: int, message: str) -> CelCompileError:
    """A compile error in upstream's form: position, message, the line and a caret under it."""
    return compile_error(text, [located(text, at, message)])


def unsupported(what: str) -> CelUnsupported:
    """The error for what CEL has and this engine does not."""
    return CelUnsupported(f"CEL: {what} is not supported")
