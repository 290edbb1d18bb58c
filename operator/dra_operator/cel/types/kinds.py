"""Static types of CEL and their unification, as cel-go's checker does it.

Used by the checker and by the table of functions. Equal types are one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from dra_operator.errors import CelUnsupported

MAX_STEPS: Final = 100_000
"""Steps of unification for one expression, half a second at worst: types that hold one another twice grow with a power of two."""

MAX_SIZE: Final = 1_000
"""Names in the type of a value: more than nesting can give. What is larger holds itself several times, and its text would be endless."""

MAX_DEPTH: Final = 300
"""Types in types: more than an expression can be nested, and little enough for functions that call themselves."""

_COPIED: Final = 64
"""Bindings that are copied in one step."""

_ENDLESS: Final = 1_000_000
"""Sizes are not counted beyond it."""

_SHOWN: Final = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
}
"""Types that upstream's checker prints by another name than they have."""


class Kind:
    """A type: a name and, for lists, maps and optionals, parameters. Single capital letters are type parameters.

    Equal types are one object, however deep they are, so that comparing them costs nothing. Must not be changed.

    Attributes:
        nullable: whether it is that of a wrapper of protocol buffers: to everything but `null` and messages, it is the type of what is wrapped.
        is_open: whether it is, or holds, a type parameter.
        size: number of names that it is made of, up to a large number.
        depth: of types in types; 1 for a name alone.
    """

    __slots__ = ("__weakref__", "_hash", "_plain", "depth", "is_open", "name", "nullable", "params", "size")

    name: str
    params: tuple[Kind, ...]
    nullable: bool
    is_open: bool
    size: int
    depth: int
    _hash: int
    _plain: Kind | None

    def __new__(cls, name: str, params: tuple[Kind, ...] = (), *, nullable: bool = False) -> Kind:  # noqa: PYI034 -- there are no subclasses
        """The type of that name and these parameters."""
        key = (name, params, nullable)
        found = _KNOWN.get(key)
        if found is not None:
            return found
        made = super().__new__(cls)
        made.name, made.params, made.nullable = key
        made.is_open = made.is_param or any(param.is_open for param in params)
        made.size = min(_ENDLESS, 1 + sum(param.size for param in params))
        made.depth = 1 + max((param.depth for param in params), default=0)
        made._hash = hash(key)
        made._plain = None
        if nullable or any(param._plain is not None for param in params):  # noqa: SLF001 -- types like this one
            made._plain = cls(name, tuple([param.plain for param in params]))
        return _KNOWN.setdefault(key, made)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same type; two objects for one are made only when two threads make them at the same time."""
        if self is other:
            return True
        return isinstance(other, Kind) and self._hash == other._hash and self._parts() == other._parts()

    def __hash__(self) -> int:
        """That of name and parameters."""
        return self._hash

    def _parts(self) -> tuple[str, tuple[Kind, ...], bool]:
        return self.name, self.params, self.nullable

    @property
    def plain(self) -> Kind:
        """The type without wrappers: where cel-go compares types, it sees none."""
        return self if self._plain is None else self._plain

    def __repr__(self) -> str:
        """For people who debug."""
        return f"Kind({self})"

    def __str__(self) -> str:
        """As upstream's messages print it."""
        return self._text({})

    @property
    def shown(self) -> str:
        """As upstream's checker prints it."""
        return self._text(_SHOWN)

    def _text(self, names: dict[str, str]) -> str:
        name = names.get(self.name, self.name)
        if self.nullable:
            return f"wrapper({name})"
        if self.is_large:
            return f"{name}(…)"
        if not self.params:
            return name
        texts = []
        for param in self.params:
            texts.append(param._text(names))  # noqa: PERF401, SLF001 -- one frame for each level, as `MAX_DEPTH` counts them; a type like this one
        return f"{name}({', '.join(texts)})"

    @property
    def is_large(self) -> bool:
        """Whether it is too large to be walked through."""
        return self.size > MAX_SIZE or self.depth > MAX_DEPTH

    @property
    def is_dyn(self) -> bool:
        """Whether anything goes: `dyn`, or the `any` of attributes when lists are off."""
        return self.name in {"dyn", "google.protobuf.Any"}

    @property
    def is_param(self) -> bool:
        """Whether it stands for a type yet to be found."""
        return self.name[0] == "~" or (len(self.name) == 1 and self.name.isupper())


_KNOWN: Final[WeakValueDictionary[tuple[str, tuple[Kind, ...], bool], Kind]] = WeakValueDictionary()

DYN = Kind("dyn")
ANY = Kind("google.protobuf.Any")
BOOL = Kind("bool")
INT = Kind("int")
UINT = Kind("uint")
DOUBLE = Kind("double")
STRING = Kind("string")
BYTES = Kind("bytes")
NULL = Kind("null_type")
QUANTITY = Kind("kubernetes.Quantity")
SEMVER = Kind("kubernetes.Semver")
DEVICE = Kind("kubernetes.DRADevice")
ERROR = Kind("!error!")
"""The type of what is wrong: it fits everything, so that one fault is told once."""


def wrapper_of(kind: Kind) -> Kind:
    """The type of a wrapper of values of that type."""
    return Kind(kind.name, nullable=True)


def list_of(element: Kind) -> Kind:
    """The type of lists of that element type."""
    return Kind("list", (element,))


def map_of(key: Kind, value: Kind) -> Kind:
    """The type of maps."""
    return Kind("map", (key, value))


def optional_of(value: Kind) -> Kind:
    """The type of optional values."""
    return Kind("optional_type", (value,))


def type_of(kind: Kind) -> Kind:
    """The type of types as values; each says of which type it is, and all can be compared."""
    return Kind("type", (kind,))


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
        return tuple([self._rename(kind, self.fresh) for kind in kinds])

    def _rename(self, kind: Kind, number: int) -> Kind:
        if not kind.is_open:
            return kind
        self._step()
        if kind.is_param:
            return Kind(f"~{kind.name}{number}")
        return Kind(kind.name, tuple([self._rename(param, number) for param in kind.params]))

    def resolved(self, kind: Kind) -> Kind:
        """The type when all is known that will be: what is still open is `dyn`."""
        return self.substitute(kind, to_dyn=True) if kind.is_open else kind

    def substitute(self, kind: Kind, *, to_dyn: bool = False) -> Kind:
        """The type with what is known put in; unknown parameters become `dyn` on request."""
        return self._substituted(kind, {}, to_dyn=to_dyn) if kind.is_open else kind

    def _substituted(self, kind: Kind, known: dict[Kind, Kind], *, to_dyn: bool) -> Kind:
        """`known` are the parts that were met before: types that hold one another several times are walked through once."""
        if not kind.is_open:
            return kind
        found = known.get(kind)
        if found is not None:
            return found
        self._step()
        if not kind.is_param:
            params = []
            for param in kind.params:
                params.append(self._substituted(param, known, to_dyn=to_dyn))  # noqa: PERF401 -- one frame for each level
            made = Kind(kind.name, tuple(params))
        elif kind.name in self.found:
            made = self._substituted(self.found[kind.name], known, to_dyn=to_dyn)
        else:
            made = DYN if to_dyn else kind
        known[kind] = made
        return made

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
        if one is other and not one.is_open:
            return True
        if one.params or other.params or one.is_open or other.is_open:
            self._step()  # between names alone there is nothing to look at
        if other.is_param:
            fits, known = self._substitution(one, other)
            if fits or known:
                return fits
        if one.is_param:
            return self._substitution(other, one)[0]
        if one.is_dyn or other.is_dyn or ERROR in (one, other):
            return True
        if NULL in (one, other):
            return one == other or _nullable(one if other == NULL else other)
        return self._alike(one, other)

    def _alike(self, one: Kind, other: Kind) -> bool:
        """Whether the types have one name, and parameters that fit; all types of types do."""
        if one.name == other.name == "type":
            return True
        if one.name != other.name or len(one.params) != len(other.params):
            return False
        for left, right in zip(one.params, other.params, strict=True):
            if not self._assignable(left, right):
                return False
        return True

    def _substitution(self, kind: Kind, param: Kind) -> tuple[bool, bool]:
        if kind == param:
            return True, True
        known = self.found.get(param.name)
        if known is None:
            if self._mentions(kind, param):
                return False, False
            self.found[param.name] = kind
            return True, False
        if kind.plain == known.plain:
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
        if not kind.is_open:
            return False
        for inner in kind.params:  # noqa: SIM110 -- one frame for each level
            if self._mentions(inner, param):
                return True
        return False

    def join(self, one: Kind | None, other: Kind) -> Kind:
        """The type of a list or map literal whose members so far have the first type."""
        if one is None:
            return other
        if self.accepts((other,), (one,)):
            return one if less_specific(one, other) else other
        return DYN


def _nullable(kind: Kind) -> bool:
    """Whether the checker lets values of a type be null: those of libraries, not the language's own."""
    return kind.nullable or "." in kind.name or kind.name == "optional_type"


def less_specific(one: Kind, other: Kind) -> bool:
    """Whether the first type is the second, or `dyn` where the second says more."""
    if one.is_dyn or one.is_param or one.name == other.name == "type":
        return True
    if other.is_dyn or other.is_param or one.name != other.name or len(one.params) != len(other.params):
        return False
    for left, right in zip(one.params, other.params, strict=True):  # noqa: SIM110 -- one frame for each level
        if not less_specific(left, right):
            return False
    return True
