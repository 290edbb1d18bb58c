"""Regular expressions in RE2's syntax, compiled once, with the work that compiling and searching take at most.

RE2 never backtracks, but its time still grows with the product of text and program, and `x{1,1000}` makes a large program of a few
characters. So memory is limited for each pattern and for all that are kept, and the worst case of a search is what it counts as.

A search lets go of Python's lock, compiling does not: it keeps every thread waiting. So what takes long to compile is refused unseen, and what takes
more than a millisecond is not compiled for who is impatient.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import re2

from dra_operator.cel.meter import ImpatienceError
from dra_operator.errors import CelError, CelRuntimeError, CelUnsupported

from .work import capped, linear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY: Final = 768 << 10
"""Bytes that RE2 may use for one pattern: enough for `[\\p{L}\\p{N}]{1,32}`, which takes 15 ms to compile. The largest that fit take 18 ms (measured)."""

KEPT: Final = 160
"""Patterns kept. With `MEMORY`, all of them have 120 MiB at the very most."""

LONGEST: Final = 10_240
"""Characters of a pattern: those of an expression. RE2 takes 2 ms to read as many."""

REPEATED: Final = 2_500
"""Repetitions of a pattern, all its bounds and question marks added up: RE2 makes `x{1,1000}x{1,1000}` one of 2,000, and needs the time of their square (measured:
12 ms for 2,500; for 20,000, which still fit into little memory, 0.8 s)."""

CLASSES: Final = 40
"""Classes of Unicode in a pattern: RE2 takes up to 0.15 ms to read one."""

LIGHT: Final = 400
"""Weight of a pattern that is compiled at once for who is impatient, a millisecond: its characters, its repetitions, and `_CLASS_WEIGHT`
for a class of Unicode, as often as it might be repeated."""

_CLASS_WEIGHT: Final = 150

_HIGHEST: Final = 1_000
"""The highest bound that RE2 and Go know; what is higher is no pattern."""

_INSTRUCTION: Final = 8
"""Units for each instruction of a program that is made (measured: 2 µs, where a node takes a quarter of one)."""

_TRIED: Final = 300
"""Units for handing a pattern to RE2 at all."""

_TOO_LARGE: Final = 40_000
"""Units for a pattern that RE2 gives up compiling, once it has filled its memory."""

_THREADS: Final = 128
"""Instructions that the slowest search tries for a character and a unit."""

_SPREAD: Final = 16
"""Instructions that a character can bring into play; short texts never reach most of a large program."""

_FIRST: Final = 3_072
"""Instructions that each character can bring into play even so: Unicode's classes have a thousand each (measured: 6 µs for a character)."""

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

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Meanwhile, this thread compiles nothing that takes more than a millisecond: `ImpatienceError` is raised instead."""
        before = _IMPATIENT.set(True)
        try:
            yield
        finally:
            _IMPATIENT.reset(before)

    def searching(self, text: str, pattern: str) -> int:
        """Units for a search of the text at worst, compiling included if that had to be done."""
        before = self.work
        found = self._look(pattern)
        units = self.work - before + linear(text)
        if isinstance(found, CelError):
            return units
        size: int = found.programsize
        return capped(units + len(text) * min(size, max(_FIRST, _SPREAD * len(text))) // _THREADS)

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
        repeated, classes = _repetitions(pattern), len(_CLASS.findall(pattern))
        if _IMPATIENT.get() and len(pattern) + repeated + _CLASS_WEIGHT * classes * (1 + repeated) > LIGHT:
            raise ImpatienceError
        self.work += _TRIED + len(pattern)
        if len(pattern) > LONGEST or repeated > REPEATED or classes > CLASSES:
            return _too_large()
        try:
            program = _compile(pattern, options=_options())
        except re2.error as error:
            if "pattern too large" not in str(error):
                return CelRuntimeError(f"error parsing regexp: {_in_go(error.args[0])}")
            self.work += _TOO_LARGE
            return _too_large()
        self.work += _INSTRUCTION * program.programsize
        if _escapes(pattern, "C"):
            return CelRuntimeError("error parsing regexp: invalid escape sequence: `\\C`")
        return _InAscii(program) if _escapes(pattern, "B") else program


class _InAscii:
    r"""A compiled pattern with `\B` in it: RE2 finds it between the bytes of a character as well, where Go looks at characters alone."""

    def __init__(self, program: Any) -> None:
        self._program = program
        self.programsize: int = program.programsize

    def search(self, text: str) -> Any:
        """The first match."""
        return self._program.search(_ascii(text))

    def finditer(self, text: str) -> Any:
        """All matches."""
        return self._program.finditer(_ascii(text))


def _ascii(text: str) -> str:
    if not text.isascii():
        raise CelUnsupported("CEL: \\B in a regular expression is not supported on text beyond ASCII")
    return text


_IMPATIENT: Final = ContextVar("impatient", default=False)
"""Of each thread."""


def _too_large() -> CelUnsupported:
    return CelUnsupported("CEL: so large a regular expression is not supported")


_CLASS: Final = re.compile(r"\\[pP]")
_BOUNDS: Final = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")


def _repetitions(pattern: str) -> int:
    """The bounds and question marks of a pattern, added up, those that are no repetition included. Bounds that are too high are no matter: RE2 refuses them."""
    highest = (max(int(found[1]), int(found[2] or 0)) for found in _BOUNDS.finditer(pattern))
    return pattern.count("?") + sum(bound for bound in highest if bound <= _HIGHEST)


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


def _escapes(pattern: str, letter: str) -> bool:
    r"""Whether the pattern has an escape: `\C` is any byte, which Go does not know."""
    return f"\\{letter}" in pattern and any(found[1] == letter for found in _ESCAPED.finditer(pattern))


PATTERNS: Final = Patterns()
"""Those of all expressions."""
