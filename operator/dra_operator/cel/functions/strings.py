"""String functions: CEL's own, the extension library (version 2) and Kubernetes' regular expressions.

Positions count code points. Regular expressions are RE2's, as upstream's are.
"""

from __future__ import annotations

from typing import Any, Final

from dra_operator.cel.types.parts import by_parts, characters, length
from dra_operator.cel.types.parts import join as joined_by_parts
from dra_operator.cel.types.parts import split as split_by_parts
from dra_operator.errors import CelRuntimeError, CelUnsupported

from .patterns import PATTERNS
from .registry import Table
from .standard import MAX_TEXT
from .texts import go_value
from .work import joined, linear, pieces, replaced, searched, translated

STRINGS: Final = Table()

_MATCH: Final = 20
"""Units for a match out of many (measured: 5 µs)."""

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def matched(text: str, pattern: str) -> int:
    """Units for one search."""
    return PATTERNS.searching(text, pattern)


def all_matched(text: str, pattern: str, *_: Any) -> int:
    """Units for a search for all matches, each of which is a value of its own."""
    return PATTERNS.searching(text, pattern) + len(text) * _MATCH


@STRINGS.define("matches(string, string) -> bool", ".matches(string, string) -> bool", work=matched)
def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return PATTERNS.get(pattern).search(text) is not None


@STRINGS.define(".find(string, string) -> string", work=matched)
def find(text: str, pattern: str) -> str:
    """The first match, or nothing."""
    found = _legal(pattern).search(text)
    return found[0] if found else ""


@STRINGS.define(".findAll(string, string) -> list(string)", work=all_matched)
def find_all(text: str, pattern: str) -> tuple[str, ...]:
    """All matches, but for empty ones right behind another: as Go counts."""
    made: list[str] = []
    last = -1
    for found in _legal(pattern).finditer(text):
        start, end = found.span()
        if start != end or start != last:
            made.append(found[0])
        last = end
    return tuple(made)


def _legal(pattern: str) -> Any:
    try:
        return PATTERNS.get(pattern)
    except CelRuntimeError as error:
        raise CelRuntimeError(f"Illegal regex: {error}") from error


@STRINGS.define(".findAll(string, string, int) -> list(string)", work=all_matched)
def find_some(text: str, pattern: str, limit: int) -> tuple[str, ...]:
    """The first matches; all when the limit is negative."""
    return find_all(text, pattern)[: limit if limit >= 0 else None]


@STRINGS.define(".contains(string, string) -> bool", work=linear)
def contains(text: str, part: str) -> bool:
    """Whether the part occurs."""
    return part in text


@STRINGS.define(".startsWith(string, string) -> bool", work=linear)
def starts_with(text: str, part: str) -> bool:
    """Whether the text begins so."""
    return text.startswith(part)


@STRINGS.define(".endsWith(string, string) -> bool", work=linear)
def ends_with(text: str, part: str) -> bool:
    """Whether the text ends so."""
    return text.endswith(part)


def _out_of_range(index: int) -> CelRuntimeError:
    return CelRuntimeError(f"index out of range: {index}")


@STRINGS.define(".charAt(string, int) -> string")
def char_at(text: str, index: int) -> str:
    """One character; nothing right behind the end."""
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


@STRINGS.define(".indexOf(string, string) -> int", work=linear)
def index_of(text: str, part: str) -> int:
    """Where the part first occurs, or -1."""
    return text.find(part)


@STRINGS.define(".indexOf(string, string, int) -> int", work=linear)
def index_of_from(text: str, part: str, start: int) -> int:
    """As `indexOf`, searching from a position on."""
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if part else min(start, len(text))


@STRINGS.define(".lastIndexOf(string, string) -> int", work=searched)
def last_index_of(text: str, part: str) -> int:
    """Where the part last occurs, or -1."""
    return text.rfind(part)


@STRINGS.define(".lastIndexOf(string, string, int) -> int", work=searched)
def last_index_of_from(text: str, part: str, start: int) -> int:
    """As `lastIndexOf`, for occurrences that begin at a position or before it."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


@STRINGS.define(".lowerAscii(string) -> string", work=translated)
def lower_ascii(text: str) -> str:
    """ASCII letters made small."""
    return by_parts(text, lambda part: part.translate(_LOWER))


@STRINGS.define(".upperAscii(string) -> string", work=translated)
def upper_ascii(text: str) -> str:
    """ASCII letters made big."""
    return by_parts(text, lambda part: part.translate(_UPPER))


@STRINGS.define(".replace(string, string, string) -> string", work=replaced)
def replace(text: str, old: str, new: str) -> str:
    """All occurrences replaced."""
    return replace_some(text, old, new, -1)


@STRINGS.define(".replace(string, string, string, int) -> string", work=replaced)
def replace_some(text: str, old: str, new: str, count: int) -> str:
    """The first occurrences replaced; all when the count is negative."""
    if len(text) + (text.count(old) * len(new)) > MAX_TEXT:
        raise CelUnsupported("CEL: the expression builds values that are too large")
    return text.replace(old, new, count if count >= 0 else -1)


@STRINGS.define(".split(string, string) -> list(string)", work=pieces)
def split(text: str, separator: str) -> tuple[str, ...]:
    """The parts between separators; single characters when there is none."""
    return split_by_parts(text, separator) if separator else characters(text)


@STRINGS.define(".split(string, string, int) -> list(string)", work=pieces)
def split_some(text: str, separator: str, limit: int) -> tuple[str, ...]:
    """At most so many parts, the last one unsplit; all when the limit is negative."""
    if limit < 0:
        return split(text, separator)
    if limit == 0:
        return ()
    if separator:
        return split_by_parts(text, separator, limit - 1)
    return (*characters(text[: limit - 1]), text[limit - 1 :]) if len(text) > limit else characters(text)


@STRINGS.define(".substring(string, int) -> string", work=linear)
def substring_from(text: str, start: int) -> str:
    """The text from a position on."""
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


@STRINGS.define(".substring(string, int, int) -> string", work=linear)
def substring(text: str, start: int, end: int) -> str:
    """The text from one position up to another."""
    if start > end:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


@STRINGS.define(".trim(string) -> string", work=linear)
def trim(text: str) -> str:
    """The text without Unicode white space around it."""
    return text.strip(_SPACE)


@STRINGS.define(".join(list(string)) -> string", work=joined)
def join(items: tuple[Any, ...]) -> str:
    """All elements in a row."""
    return join_with(items, "")


@STRINGS.define(".join(list(string), string) -> string", work=joined)
def join_with(items: tuple[Any, ...], separator: str) -> str:
    """All elements with a separator between them."""
    stranger = next((item for item in items if not isinstance(item, str)), "")
    if stranger != "":
        raise CelRuntimeError(f"join: invalid input: {go_value(stranger)}")
    if length(items) + len(separator) * len(items) > MAX_TEXT:
        raise CelUnsupported("CEL: the expression builds values that are too large")
    return joined_by_parts(separator, items)
