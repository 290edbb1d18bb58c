"""Regular expressions in RE2's syntax, compiled once, with the work that compiling and searching take at most.

RE2 never backtracks, but its time still grows with the product of text and program, and `x{1,1000}` makes a large program of a few
characters. So memory is limited for each pattern and for all that are kept, and the worst case of a search is what it counts as.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import re2

from dra_operator.errors import CelError, CelRuntimeError, CelUnsupported

from .work import capped, linear

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY: Final = 2 << 20
"""Bytes that RE2 may use for one pattern: enough for `[\\p{L}\\p{N}]{1,63}`, whose program is one of the largest that make sense."""

KEPT: Final = 64
"""Patterns kept. With `MEMORY`, all of them have 128 MiB at the very most."""

_INSTRUCTION: Final = 8
"""Units for each instruction of a program that is made (measured: 2 µs, where a node takes a quarter of one)."""

_TRIED: Final = 300
"""Units for handing a pattern to RE2 at all."""

_TOO_LARGE: Final = 250_000
"""Units for a pattern that RE2 gives up compiling, once it has filled its memory."""

_THREADS: Final = 128
"""Instructions that the slowest search tries for a character and a unit."""

_SPREAD: Final = 16
"""Instructions that a character can bring into play; short texts never reach most of a large program."""

_compile: Callable[..., Any] = re2.compile


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    return options


class Patterns:
    """Compiled patterns, the least recently used of which goes first; what is no pattern is remembered, too.

    Attributes:
        work: units spent on compiling so far.
        searched: units spent by `search` so far.
    """

    def __init__(self) -> None:
        self.work = 0
        self.searched = 0
        self._known: OrderedDict[str, Any] = OrderedDict()

    def get(self, pattern: str) -> Any:
        """A compiled pattern.

        Raises:
            CelRuntimeError: it is none.
            CelUnsupported: it is too large.
        """
        found = self._look(pattern)
        if isinstance(found, CelError):
            raise found.again()
        return found

    def search(self, text: str, pattern: str) -> bool:
        """Whether the pattern is found in the text; counts itself.

        Raises:
            CelRuntimeError: it is no pattern.
            CelUnsupported: it is too large.
        """
        self.searched += self.searching(text, pattern)
        return self.get(pattern).search(text) is not None

    def searching(self, text: str, pattern: str) -> int:
        """Units for a search of the text at worst, compiling included if that had to be done."""
        before = self.work
        found = self._look(pattern)
        units = self.work - before + linear(text)
        if isinstance(found, CelError):
            return units
        size: int = found.programsize
        return capped(units + len(text) * min(size, _SPREAD * len(text)) // _THREADS)

    def _look(self, pattern: str) -> Any:
        found = self._known.get(pattern)
        if found is None:
            found = self._known[pattern] = self._made(pattern)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread has just dropped it
                self._known.move_to_end(pattern)
        return found

    def _made(self, pattern: str) -> Any:
        self.work += _TRIED + len(pattern)
        try:
            program = _compile(pattern, options=_options())
        except re2.error as error:
            if "pattern too large" not in str(error):
                return CelRuntimeError(f"error parsing regexp: {_in_go(error.args[0])}")
            self.work += _TOO_LARGE
            return CelUnsupported("CEL: so large a regular expression is not supported")
        self.work += _INSTRUCTION * program.programsize
        if _any_byte(pattern):
            return CelRuntimeError("error parsing regexp: invalid escape sequence: `\\C`")
        return program


_IN_GO: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""What RE2 says → what Go's package of the same syntax says."""


def _in_go(message: bytes) -> str:
    what, _, where = message.decode(errors="replace").partition(": ")
    return f"{_IN_GO.get(what, what)}: `{where}`"


_ESCAPED = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|(.))", re.DOTALL)


def _any_byte(pattern: str) -> bool:
    """Whether the pattern has the escape for any byte, which Go does not know."""
    return "\\C" in pattern and any(found[1] == "C" for found in _ESCAPED.finditer(pattern))


PATTERNS: Final = Patterns()
"""Those of all expressions."""
