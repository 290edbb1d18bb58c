"""`format`: version 2 of cel-go's extension, with the numbers that its printer for en_US makes.

The text is taken apart in one place, for the function and for the check of literal ones before they run (`validators.py`). Widths and
precisions are upstream's, its slips included: `%.8e` pads to eight characters, and precisions above 255 leave zeros out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.quoting import go_quoted, quoted
from dra_operator.cel.types.values import INT_MAX, TypeName, UInt, from_key, type_name
from dra_operator.errors import CelRuntimeError, CelUnsupported

from .registry import Table
from .standard import MAX_TEXT
from .texts import TEXTS
from .work import deep, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATTING: Final = Table()

DURING: Final = "error during formatting: "
"""Before what is wrong with an argument."""

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?P<dot>\.(?P<digits>[0-9]*))?(?P<verb>.?))", re.DOTALL)
_DEFAULT_PRECISION: Final = 6
_TOO_LARGE: Final = 10**6
"""Numbers in formats that go on behind this one are overlooked by Go's parser of them."""

_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, slots=True)
class Clause:
    """`%.2f`; `fault` says what is wrong with it, `ends` that the text ends behind its percent sign."""

    verb: str = ""
    precision: int | None = None
    fault: str = ""
    ends: bool = False


def pieces(text: str) -> Iterator[str | Clause]:
    """Text and clauses by turns; nothing comes after a clause with a fault."""
    last = 0
    for found in _CLAUSE.finditer(text):
        yield text[last : found.start()]
        last = found.end()
        if found["percent"]:
            yield "%"
            continue
        clause = _clause(found)
        yield clause
        if clause.fault:
            return
    yield text[last:]


def _clause(found: re.Match[str]) -> Clause:
    verb, digits = found["verb"], found["digits"]
    if not verb:
        if digits is None:
            return Clause(fault="unexpected end of string", ends=True)
        return _malformed("error while parsing precision: could not find end of precision specifier")
    if digits == "" or (digits is not None and len(digits.lstrip("0")) > len(str(INT_MAX))):
        return _malformed(_not_a_number(digits, "value out of range" if digits else "invalid syntax"))
    precision = int(digits) if digits is not None else None
    if precision is not None and precision > INT_MAX:
        return _malformed(_not_a_number(digits, "value out of range"))
    if verb not in "sdfebxXo":
        return _malformed(f'unrecognized formatting clause "{chr(verb.encode()[0])}"')
    return Clause(verb, precision)


def _malformed(what: str) -> Clause:
    return Clause(fault=f"could not parse formatting clause: {what}")


def _not_a_number(digits: str, why: str) -> str:
    return f'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "{digits}": {why}'


FORMATTING.define("strings.quote(string) -> string", work=translated)(quoted)


@FORMATTING.define(".format(string, list(dyn)) -> string", work=deep)
def format_(text: str, arguments: tuple[Any, ...]) -> str:
    """The text with the arguments put in."""
    made: list[str] = []
    number = length = 0
    for piece in pieces(text):
        if isinstance(piece, Clause):
            piece = _formatted(piece, arguments, number)  # noqa: PLW2901 -- a clause becomes the text for it
            number += 1
        made.append(piece)
        length += len(piece)
        if length > MAX_TEXT:
            raise CelUnsupported("CEL: the expression builds values that are too large")
    return "".join(made)


def _formatted(clause: Clause, arguments: tuple[Any, ...], number: int) -> str:
    if number >= len(arguments):
        raise CelRuntimeError(f"index {number} out of range")
    if clause.fault:
        raise CelRuntimeError(clause.fault)
    value = arguments[number]
    try:
        return _VERBS[clause.verb](value, clause.precision)
    except CelRuntimeError as error:
        raise CelRuntimeError(f"{DURING}{error}") from error


WANTED: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
"""Verb → what it takes, as errors say it."""


def unfit(verb: str, given: str) -> str:
    """The complaint about an argument of a type that the verb does not take."""
    return f"{WANTED[verb]}, was given {given}"


def _unfit(verb: str, value: Any) -> CelRuntimeError:
    return CelRuntimeError(unfit(verb, type_name(value)))


# ------------------------------------------------------------------ %s


def _shown(value: Any, _: int | None = None) -> str:
    """`%s`: strings as they are."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return _shown_map(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_member, value))}]"
    text = TEXTS.get(type(value))
    if text is None:
        raise _unfit("s", value)
    try:
        return text(value)
    except CelRuntimeError as error:
        raise CelRuntimeError(f"could not convert argument {go_quoted(str(error))} to string") from error


def _shown_map(value: dict[Any, Any]) -> str:
    entries = sorted((_shown_key(from_key(key)), _member(member)) for key, member in value.items())
    return f"{{{', '.join(f'{key}:{member}' for key, member in entries)}}}"


def _shown_key(key: Any) -> str:
    if not isinstance(key, str | bool | int | UInt):
        raise CelRuntimeError(f"no formatting function for map key of type {type_name(key)}")
    return _member(key)


def _member(value: Any) -> str:
    """What is in lists and maps: as a CEL literal."""
    special = _LITERALS.get(type_name(value))
    if special is not None:
        return special(value)
    if value is None or isinstance(value, bool | int | UInt | dict | tuple | TypeName):
        return _shown(value)
    raise CelRuntimeError(f"no formatting function for {type_name(value)}")


def _literal_double(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"+Inf"' if value > 0 else '"-Inf"'
    return f"{value:.6f}"


_LITERALS: Final[dict[str, Callable[[Any], str]]] = {
    "string": go_quoted,
    "bytes": lambda value: f"b{go_quoted(_shown(value))}",
    "double": _literal_double,
    "google.protobuf.Duration": lambda value: f"duration({go_quoted(_shown(value))})",
    "google.protobuf.Timestamp": lambda value: f"timestamp({go_quoted(_shown(value))})",
}


# ------------------------------------------------------------------ numbers


def _decimal(value: Any, _: int | None) -> str:
    return str(_whole("d", value))


def _octal(value: Any, _: int | None) -> str:
    return f"{_whole('o', value):o}"


def _binary(value: Any, _: int | None) -> str:
    return f"{int(value) if isinstance(value, bool) else _whole('b', value):b}"


def _whole(verb: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(verb, value)
    return int(value)


def _hex(value: Any, _: int | None) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    return f"{_whole('x', value):x}"


def _upper_hex(value: Any, _: int | None) -> str:
    return _hex(value, None).upper()


_NUMBERS_AS_TEXT: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _double(verb: str, value: Any) -> float:
    if isinstance(value, str):
        value = _NUMBERS_AS_TEXT.get(value, value)
    if not isinstance(value, float):
        raise _unfit(verb, value)
    return value


def _special(value: float) -> str:
    """What is no number of digits, or nothing."""
    if math.isnan(value):
        return "NaN"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else ""


def _overlooked(number: int) -> bool:
    """Whether Go's parser of formats loses its place at such a number."""
    return number > _TOO_LARGE and number // 10 > _TOO_LARGE


def _fixed(value: Any, precision: int | None) -> str:
    """`%f` with separators of thousands. The least number of digits is kept in a byte upstream, the largest one in two."""
    number = _double("f", value)
    wanted = _DEFAULT_PRECISION if precision is None else precision
    if _overlooked(wanted):
        return "%!(NOVERB)"
    if special := _special(number):
        return special
    most = (wanted + 2**15) % 2**16 - 2**15
    text = f"{abs(number):.{most}f}" if most >= 0 else f"{Decimal(repr(abs(number))):f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(wanted % 2**8, "0")
    return f"{'-' if number < 0 else ''}{int(whole):,}{'.' if fraction else ''}{fraction}"


def _scientific(value: Any, precision: int | None) -> str:
    """`%e` with a power of ten; its precision is a width upstream."""
    number = _double("e", value)
    width = _DEFAULT_PRECISION if precision is None else precision
    if _overlooked(width):
        return "%!(NOVERB)"
    text = _special(number)
    if not text:
        digits, _, power = f"{abs(number):.6e}".partition("e")
        sign, size = ("-" if power[0] == "-" else ""), int(power[1:])
        text = f"{'-' if number < 0 else ''}{digits}\u00d710{f'{sign}{size:02d}'.translate(_SUPERSCRIPT)}"
    return text.rjust(width % 2**16)


_VERBS: Final[dict[str, Callable[[Any, int | None], str]]] = {
    "s": _shown,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": _upper_hex,
    "o": _octal,
}
