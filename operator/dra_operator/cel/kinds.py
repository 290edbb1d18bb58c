"""Static types of CEL and their unification, as cel-go's checker does it.

Used by the checker and by the table of functions. Types are interned tuples in all but name: equal types are equal values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dra_operator.errors import CelUnsupported

MAX_STEPS: Final = 100_000
"""Steps of unification for one expression, half a second at worst: types that hold one another twice grow with a power of two."""

MAX_SIZE: Final = 50
"""Names in the type of a value. Arbitrary: lists nested in lists fifty times."""

_COPIED: Final = 64
"""Bindings that are copied in one step."""


_SHOWN: Final = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
}
"""Types that upstream's checker prints by another name than they have."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: a name and, for lists, maps and optionals, parameters. Single capital letters are type parameters."""

    name: str
    params: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        """As upstream's messages print it."""
        return f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name

    @property
    def shown(self) -> str:
        """As upstream's checker prints it."""
        text = str(self)
        for name, shown in _SHOWN.items():
            text = text.replace(name, shown)
        return text

    def size(self, enough: int) -> int:
        """How many names it is made of; a larger type is not counted to its end."""
        found, waiting = 0, [self]
        while waiting and found < enough:
            found += 1
            waiting.extend(waiting.pop().params)
        return found

    @property
    def is_dyn(self) -> bool:
        """Whether anything goes: `dyn`, or the `any` of attributes when lists are off."""
        return self.name in {"dyn", "google.protobuf.Any"}

    @property
    def is_param(self) -> bool:
        """Whether it stands for a type yet to be found."""
        return self.name[0] == "~" or (len(self.name) == 1 and self.name.isupper())


DYN = Kind("dyn")
ANY = Kind("google.protobuf.Any")
BOOL = Kind("bool")
INT = Kind("int")
UINT = Kind("uint")
DOUBLE = Kind("double")
STRING = Kind("string")
BYTES = Kind("bytes")
NULL = Kind("null_type")
TYPE = Kind("type")
QUANTITY = Kind("kubernetes.Quantity")
SEMVER = Kind("kubernetes.Semver")
DEVICE = Kind("kubernetes.DRADevice")


def list_of(element: Kind) -> Kind:
    """The type of lists of that element type."""
    return Kind("list", (element,))


def map_of(key: Kind, value: Kind) -> Kind:
    """The type of maps."""
    return Kind("map", (key, value))


def optional_of(value: Kind) -> Kind:
    """The type of optional values."""
    return Kind("optional_type", (value,))


def parse_kind(text: str) -> Kind:
    """Parse a type as signatures write it: `map(string, list(A))`."""
    name, _, inner = text.strip().partition("(")
    return Kind(name, tuple(parse_kind(part) for part in split_top(inner[:-1]))) if inner else Kind(name)


def split_top(text: str) -> list[str]:
    """Split at the commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


@dataclass(slots=True)
class Bindings:
    """What the type parameters of one expression stand for; grows while the checker walks it.

    All of it raises `CelUnsupported` when an expression takes more than `MAX_STEPS`.
    """

    found: dict[str, Kind] = field(default_factory=dict)
    fresh: int = 0
    steps: int = 0

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > MAX_STEPS:
            raise CelUnsupported("CEL: types so involved are not supported")

    def rename(self, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """The same types with type parameters of their own, for one use of an overload."""
        self.fresh += 1
        return tuple(self._rename(kind, self.fresh) for kind in kinds)

    def _rename(self, kind: Kind, number: int) -> Kind:
        self._step()
        if kind.is_param:
            return Kind(f"~{kind.name}{number}")
        return (
            Kind(kind.name, tuple(self._rename(param, number) for param in kind.params))
            if kind.params
            else kind
        )

    def resolved(self, kind: Kind) -> Kind:
        """The type when all is known that will be: what is still open is `dyn`."""
        return self.substitute(kind, to_dyn=True) if kind.params or kind.is_param else kind

    def substitute(self, kind: Kind, *, to_dyn: bool = False) -> Kind:
        """The type with what is known put in; unknown parameters become `dyn` on request."""
        self._step()
        if kind.is_param:
            if kind.name in self.found:
                return self.substitute(self.found[kind.name], to_dyn=to_dyn)
            return DYN if to_dyn else kind
        if not kind.params:
            return kind
        return Kind(kind.name, tuple(self.substitute(param, to_dyn=to_dyn) for param in kind.params))

    def accepts(self, wanted: tuple[Kind, ...], given: tuple[Kind, ...]) -> bool:
        """Whether values of the given types fit; binds type parameters only when all fit."""
        if len(wanted) != len(given):
            return False
        self._step(len(self.found) // _COPIED)
        before = dict(self.found)
        if all(self._assignable(one, other) for one, other in zip(given, wanted, strict=True)):
            return True
        self.found = before
        return False

    def _assignable(self, one: Kind, other: Kind) -> bool:
        self._step()
        if other.is_param:
            fits, known = self._substitution(one, other)
            if fits or known:
                return fits
        if one.is_param:
            return self._substitution(other, one)[0]
        if one.is_dyn or other.is_dyn:
            return True
        if NULL in (one, other):
            return one == other
        if one.name != other.name or len(one.params) != len(other.params):
            return False
        return all(
            self._assignable(left, right) for left, right in zip(one.params, other.params, strict=True)
        )

    def _substitution(self, kind: Kind, param: Kind) -> tuple[bool, bool]:
        if kind == param:
            return True, True
        known = self.found.get(param.name)
        if known is None:
            if self._mentions(kind, param):
                return False, False
            self.found[param.name] = kind
            return True, False
        if kind == known:
            return True, True
        if not self._assignable(kind, known):
            return False, True
        general = kind if less_specific(kind, known) else known
        if not self._mentions(general, param):
            self.found[param.name] = general
        return True, True

    def _mentions(self, kind: Kind, param: Kind) -> bool:
        self._step()
        if kind == param:
            return True
        if kind.is_param:
            known = self.found.get(kind.name)
            return known is not None and self._mentions(known, param)
        return any(self._mentions(inner, param) for inner in kind.params)

    def join(self, one: Kind | None, other: Kind) -> Kind:
        """The type of a list or map literal whose members so far have the first type."""
        if one is None:
            return other
        if self.accepts((other,), (one,)):
            return one if less_specific(one, other) else other
        return DYN


def less_specific(one: Kind, other: Kind) -> bool:
    """Whether the first type is the second, or `dyn` where the second says more."""
    if one.is_dyn or one.is_param:
        return True
    if other.is_dyn or other.is_param or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(less_specific(left, right) for left, right in zip(one.params, other.params, strict=True))
