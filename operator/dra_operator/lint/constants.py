"""Constants in expressions that are none of what they are read as: `quantity("40GB")`, `semver("12.4")`. The API server takes them, and they fail on each device.

The engine's own functions read them, and what is proposed instead as well.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.tokens import tokens
from dra_operator.errors import CelError, CelRuntimeError

from .advice import shown
from .lookups import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .objects import Item
    from .places import Path

_READ_AS: Final = {
    ("quantity", False): "quantity",
    ("semver", False): "semver",
    ("ip", False): "ip",
    ("cidr", False): "cidr",
    ("url", False): "url",
    ("containsIP", True): "ip",
    ("containsCIDR", True): "cidr",
}
"""Function, and whether it is a method → the function that reads its text. What `int("a")` and the like cannot read does not compile."""

_FORMS: Final = {
    "quantity": "a quantity is a number with k, M, G, T, P, E or Ki, Mi, Gi, Ti, Pi, Ei",
    "semver": "a version is three numbers with points between them",
    "ip": "an address is written `10.0.0.1` or `2001:db8::1`",
    "cidr": "a network is written `10.0.0.0/8` or `2001:db8::/32`",
    "url": "a URL is written `https://example.com/path`, or begins with `/`",
}


def tell(item: Item, path: Path, expression: str) -> None:
    """Tell of such constants in an expression that compiles."""
    ends = {one.at: len(one.text) for one in tokens(expression)[0]}
    for call, literal, why in _unreadable(expression):
        written = f"{call.function}({', '.join(shown(getattr(one, 'value', '…')) for one in call.args)})"
        message = f"`{written}` fails on every device that comes to it: {why}"
        part = (literal.at, ends.get(literal.at, 1))
        item.tell("BadConstant", path, message, remedy=_remedy(call, str(literal.value)), part=part)


@lru_cache(maxsize=4096)
def _unreadable(expression: str) -> tuple[tuple[syntax.Call, syntax.Literal, str], ...]:
    """Calls with a constant that cannot be read, the constant, and the engine's words."""
    found = []
    for call in _calls(expression):
        texts = [
            one for one in call.args[:1] if isinstance(one, syntax.Literal) and isinstance(one.value, str)
        ]
        normal = call.args[1] if len(call.args) > 1 else None
        if texts and (normal is None or isinstance(normal, syntax.Literal)):
            name = _READ_AS[call.function, call.target is not None]
            more = () if normal is None else (normal.value,)
            why = _fault(name, texts[0].value, *more)
            found += [(call, texts[0], why)] if why else []
    return tuple(sorted(found, key=lambda one: one[1].at))


def _calls(expression: str) -> Iterator[syntax.Call]:
    for one in parts(expression):
        if isinstance(one, syntax.Call) and (one.function, one.target is not None) in _READ_AS:
            yield one


def _fault(name: str, *values: object) -> str:
    """Why a function does not take constants; empty if it does, or if that is not known."""
    for overload in stored_expressions().functions.of(name, method=False):
        if len(overload.params) == len(values):
            try:
                overload.run(*values)
            except CelRuntimeError as error:
                return str(error)
            except CelError:
                return ""
    return ""


# --- what was meant


def _remedy(call: syntax.Call, text: str) -> str:
    name = _READ_AS[call.function, call.target is not None]
    candidates = _MEANT[name](text) if name in _MEANT else ()
    forms = []
    for value, *more in candidates:
        form = f"{name}({', '.join(map(shown, (value, *more)))})"
        if not _fault(name, value, *more) and form not in forms:
            forms.append(form)
    return f"write {' or '.join(f'`{form}`' for form in forms)}" if forms else _FORMS[name]


_AMOUNT: Final = re.compile(r"\s*([+-]?\d+(?:[.,]\d+)?|[+-]?[.,]\d+)\s*([A-Za-z]*)\s*")
_UNITS: Final = {
    **{f"{letter}{end}": letter for letter in "kmgtpe" for end in ("", "b", "byte", "bytes")},
    **{f"{letter}{end}": f"{letter}i" for letter in "kmgtpe" for end in ("i", "ib", "ibyte", "ibytes")},
    **{f"{word}{end}": word[0] for word in ("kilo", "mega", "giga", "tera", "peta", "exa") for end in ("", "byte", "bytes")},
    **{f"{word}{end}": f"{word[0]}i" for word in ("kibi", "mebi", "gibi", "tebi", "pebi", "exbi") for end in ("", "byte", "bytes")},
    "b": "", "byte": "", "bytes": "", "": "",
}  # fmt: skip
"""What people write for a unit, in lower case → its letter, with `i` for powers of 1,024."""


def _quantities(text: str) -> Iterator[tuple[object, ...]]:
    found = _AMOUNT.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        return
    number = found[1].replace(",", ".")
    decimal = unit if unit == "k" else unit.upper()
    if unit.endswith("i") or not unit:
        yield (number + unit.capitalize(),)
    else:
        yield (number + decimal,)
        yield (f"{number}{unit.upper()}i",)


_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?)([-+].*)?")
_FULL: Final = 3


def _versions(text: str) -> Iterator[tuple[object, ...]]:
    bare = text.strip()
    short = _SHORT.fullmatch(re.sub(r"^[vV]", "", bare))
    if short is not None:
        numbers = short[1].split(".")
        yield (".".join([*numbers, "0", "0"][:_FULL]) + (short[2] or ""),)
    yield (bare, True)
    if bare.startswith("V"):
        yield (bare[1:],)


def _networks(text: str) -> Iterator[tuple[object, ...]]:
    bare = text.strip()
    yield (bare,)
    yield (f"{bare}/{128 if ':' in bare else 32}",)


_MEANT: Final[dict[str, Callable[[str], Iterable[tuple[object, ...]]]]] = {
    "quantity": _quantities,
    "semver": _versions,
    "cidr": _networks,
}
"""Function → arguments that may be meant; only those that it takes are proposed."""
