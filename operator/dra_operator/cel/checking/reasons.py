"""Why a literal is no regular expression, duration or timestamp, and what may be meant: hints beside upstream's `invalid … argument`, which gives no reason.

Called by the validators with literals that do not work. A hint is one line without a full stop; it never decides anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_HAS_NOT: Final = {
    "(?=": "look-ahead: write it as a condition of its own",
    "(?!": "look-ahead: write it as a condition of its own, !x.matches(…)",
    "(?<=": "look-behind: write what stands before as a part of the pattern",
    "(?<!": "look-behind: write it as a condition of its own, !x.matches(…)",
    "(?>": "atomic groups: write (?:…)",
    "(?#": "comments",
    "(?(": "conditions",
    "(?|": "groups that share their numbers",
    "(?x": "flag x: write the pattern without blanks",
    "\\k": "back-references",
    "\\g": "back-references",
    "++": "possessive repetitions: write +",
    "*+": "possessive repetitions: write *",
    "?+": "possessive repetitions: write ?",
    "\\u": "escape \\u: write \\x{…}, or the character itself",
    "\\Z": "escape \\Z: write \\z, or $",
    "\\G": "escape \\G",
    "\\h": "escape \\h: write [ \\t]",
}
"""What a pattern may have elsewhere → what RE2 has not."""

_BACK_REFERENCE: Final = re.compile(r"\\[1-9]")
_HIGHEST: Final = 1000


def of_pattern(why: str) -> str:
    """By the words of the engine: `error parsing regexp: missing closing ): …`, with the part of the pattern in backquotes."""
    reason, _, part = why.removeprefix("error parsing regexp: ").partition(": ")
    part = part.removeprefix("`").removesuffix("`")
    lacking = _HAS_NOT.get(part, "back-references" if _BACK_REFERENCE.fullmatch(part) else "")
    if lacking:
        return f"RE2 has no {lacking}"
    match reason:
        case "invalid repeat count":
            return f"{part} is no repetition: at most {_HIGHEST}, the smaller number first, and no more than that within each other"
        case "unexpected )":
            return "there is a ) too many: a bracket itself is written \\\\)"
        case "missing closing )" | "missing closing ]":
            return f"{reason[-1]} is missing: a bracket itself is written \\\\{'(' if reason[-1] == ')' else '['}"
        case "missing argument to repetition operator":
            return f"there is nothing before {part} to be repeated: any text is .*"
    return f"RE2 says: {reason}" + (f": {part}" if part else "")


_LENGTH: Final = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_HOURS: Final = {"d": 24, "day": 24, "days": 24, "w": 168, "week": 168, "weeks": 168}
_UNITS: Final = {
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
    **dict.fromkeys(("", "second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds", "msec"), "ms"),
}


def of_duration(text: str, reads: Callable[[str], object]) -> str:
    """What a duration is, and which one may be meant.

    Args:
        text: that is none.
        reads: fails for what is none.
    """
    found = _LENGTH.fullmatch(text)
    meant = []
    if found and found[2].lower() in _HOURS:
        meant.append(f"{float(found[1]) * _HOURS[found[2].lower()]:g}h")
    elif found:
        unit = found[2].lower()
        meant.append(found[1] + _UNITS.get(unit, unit))
    return "a duration is numbers with the units h, m, s, ms, us, ns" + _meant(meant, reads)


_DAY: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ tT](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?)?\s*(Z|[+-]\d{2}:\d{2})?"
)


def of_timestamp(text: str, reads: Callable[[str], object]) -> str:
    """What a timestamp is, and which one may be meant; the arguments are those of `of_duration`."""
    found = _DAY.fullmatch(text.strip())
    meant = [f"{found[1]}T{found[2] or '00:00'}{found[3] or ':00'}{found[4] or 'Z'}"] if found else []
    return 'a timestamp is written like "2026-01-31T12:00:00Z"' + _meant(meant, reads)


def _meant(texts: Iterable[str], reads: Callable[[str], object]) -> str:
    for text in texts:
        try:
            reads(text)
        except CelError:
            continue
        return f': did you mean "{text}"?'
    return ""
