"""What evaluations share, with and without counting: their state, the choice of overloads, access to fields and elements.

Nothing here knows the syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.functions.messages import PACKED, built
from dra_operator.cel.functions.standard import item, lookup, missing_key
from dra_operator.cel.functions.texts import go_value
from dra_operator.cel.functions.work import ELEMENTS, converted, read
from dra_operator.cel.meter import ImpatienceError
from dra_operator.cel.types.values import (
    MAPS,
    MISSING,
    NONE,
    TYPE_NAMES,
    URL,
    DeviceInput,
    Empty,
    Entry,
    NameMap,
    Optional,
    from_key,
    go_name,
    some,
    to_key,
    type_name,
)
from dra_operator.cel.types.versions import Semver
from dra_operator.errors import CelRuntimeError, CelUnsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.cel.functions.registry import Overload

    Run = Callable[["Frame"], Any]
    _Chosen = tuple[Callable[..., Any], Callable[..., int] | None]

BUDGET: Final = 4_000_000
"""Work that an expression may do on one device: the nodes of its tree, those of comprehensions' bodies as often as they run, and what large
values take (`work.py`). Half a second to a second at most, and some 100 MB. It bounds time and memory where upstream's units do not: what
upstream finishes within its limit of 1,000,000 units (alloc L-8) rarely takes more than twice as many of ours (docs/decisions)."""

CUT: Final = 1024
"""Characters of an error that are kept: its text may hold any value that the expression has built, and each device has its own."""

_SIZED: Final = frozenset({str, bytes, tuple, *MAPS, Optional, URL, Semver, Empty, Entry})
"""Types of values that can be large; work on others is never counted."""

_MAKING: Final = frozenset({"lists.range"})
"""Functions that make large values of small ones."""

_CHOOSING: Final = 100
"""Units for the choice of an overload, once for each call and types (measured: 25 µs)."""


@dataclass(slots=True)
class Frame:
    """The state of one evaluation: the device, variables by slot, work done."""

    device: DeviceInput
    slots: list[Any]
    spent: int = 0
    limit: int = BUDGET

    def spend(self, work: int) -> None:
        """Count work.

        Raises:
            CelUnsupported: there is so much of it that it would keep others waiting, or take too much memory.
            ImpatienceError: there is more of it than the meter has patience for.
        """
        self.spent += work
        if self.spent > self.limit:
            if self.limit < BUDGET:
                raise ImpatienceError
            self.spent = BUDGET  # what is refused is not done
            raise CelUnsupported("CEL: the expression does too much work on this device")


def shortened(text: str) -> str:
    """As much of an error's text as is kept; bytes that are no UTF-8 show as such."""
    kept = text if len(text) <= CUT else f"{text[:CUT]}…"
    return kept.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# ------------------------------------------------------------------ fields and elements


def field_of(value: Any, field: str) -> Any:
    """`value.field`, or `value["field"]`."""
    if isinstance(value, dict):
        try:
            return value[field]
        except KeyError:
            raise missing_key(field) from None
    if isinstance(value, DeviceInput):
        return value.field(field)
    return item(value, field)


def optional_field_of(value: Any, field: str) -> Optional:
    """A field as an optional; a domain is always there (alloc L-6)."""
    if isinstance(value, Optional):
        return optional_field_of(value.value, field) if value.present else NONE
    if isinstance(value, DeviceInput):
        return some(value.field(field))
    found = lookup(value, field)
    return NONE if found is MISSING else some(found)


def is_present(value: Any) -> bool:
    """Whether an optional member of a literal is there."""
    if not isinstance(value, Optional):
        raise CelRuntimeError(
            f"cannot initialize optional element from non-optional value {type_name(value)}"
        )
    return value.present


def present(value: Optional) -> Any:
    """The value of an optional that is there."""
    return value.value


def iterable(value: Any) -> Iterable[Any]:
    """The elements of a list, the keys of a map."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, dict):
        return [from_key(key) for key in value]
    raise CelRuntimeError(f"got '{go_name(value)}', expected iterable type")


def iterable_pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """Indices and elements, or keys and values."""
    if isinstance(value, tuple):
        return enumerate(value)
    if isinstance(value, dict):
        return [(from_key(key), member) for key, member in value.items()]
    raise CelRuntimeError(f"unsupported comprehension range type: {go_name(value)}")


def truth(value: Any) -> bool:
    """A condition."""
    if not isinstance(value, bool):
        raise CelRuntimeError("no such overload")
    return value


def anew(frame: Frame, value: Any) -> Any:
    """A list or map that has just been found, as a key: upstream makes a new one of what a device has at each access, and such keys are equal to themselves alone."""
    kind = type(value)
    if not value or (kind is not tuple and kind is not dict and kind is not NameMap):
        return value
    frame.spend(len(value) // ELEMENTS)
    return (*value,) if kind is tuple else kind(value)


def insert(entries: dict[Any, Any], shown: Any, value: Any) -> None:
    """Put one entry more into a map that a macro gathers."""
    key = to_key(shown)
    if key in entries:
        raise CelRuntimeError(f"insert failed: key {go_value(shown)} already exists")
    entries[key] = value


def initialised(field: str, value: Any) -> bool:
    """Whether an optional field of a message is there."""
    if not isinstance(value, Optional):
        shown = go_value(value)
        raise CelRuntimeError(f"cannot initialize optional entry '{field}' from non-optional value {shown}")
    return value.present


def message_of(frame: Frame, name: str, fields: dict[str, Any]) -> Any:
    """The value of a message; its work is counted before."""
    frame.spend(converted(*fields.values()) + (read(*fields.values()) if name == PACKED else 0))
    return built(name, fields)


# ------------------------------------------------------------------ calls


_RECEIVERS: Final = frozenset({"string", "google.protobuf.Duration", "google.protobuf.Timestamp"})
"""Types that cel-go asks itself whether they have a function, and that do not say which."""


_NAMELESS: Final = {"-_": frozenset({"bool"}), "!_": frozenset(TYPE_NAMES.values())}
"""Types on which these operators do not say which they are, beside those that have them."""

_ONE_IMPLEMENTATION: Final = frozenset({"dyn", "matches", "size", "type"})


def candidates(
    name: str, overloads: tuple[Overload, ...], fitting: tuple[Overload, ...]
) -> tuple[Overload, ...]:
    """The overloads that a call chooses from when it runs: the one that the checker found, or all if there are several.

    Operators and a few functions have one implementation for all types in cel-go, which does not care what the checker found.

    Args:
        name: of the function.
        overloads: all that it has.
        fitting: those that the checker found.
    """
    cares = name[0].isalpha() and name not in _ONE_IMPLEMENTATION
    return fitting if len(fitting) == 1 and cares and not fitting[0].singleton else overloads


class Dispatch:
    """A call whose overload is chosen by the types that the arguments have at run time."""

    def __init__(self, name: str, overloads: tuple[Overload, ...], arguments: tuple[Run, ...]) -> None:
        self.name = name
        self.arguments = arguments
        self._overloads = overloads
        self._known: dict[tuple[type, ...], _Chosen] = {}

    def __call__(self, frame: Frame) -> Any:
        """The call with its own arguments."""
        return self.apply(frame, [run(frame) for run in self.arguments])

    def apply(self, frame: Frame, values: list[Any]) -> Any:
        """The call with these arguments."""
        types = tuple(map(type, values))
        chosen = self._known.get(types)
        if chosen is None:
            frame.spend(_CHOOSING)
            chosen = self._known[types] = self._choose(types)
        run, work = chosen
        if work is not None and (units := work(*values)):
            frame.spend(units)
        return run(*values)

    def specialised(self) -> Run:
        """A faster closure for the frequent case of two arguments."""
        if len(self.arguments) != 2:  # noqa: PLR2004 -- binary operators and methods
            return self
        left, right = self.arguments
        known, choose = self._known, self._choose

        def run(frame: Frame) -> Any:
            one, other = left(frame), right(frame)
            types = (type(one), type(other))
            chosen = known.get(types)
            if chosen is None:
                frame.spend(_CHOOSING)
                chosen = known[types] = choose(types)
            call, work = chosen
            if work is not None and (units := work(one, other)):
                frame.spend(units)
            return call(one, other)

        return run

    def _choose(self, types: tuple[type, ...]) -> _Chosen:
        names = tuple(TYPE_NAMES[kind] for kind in types)
        fitting = [overload for overload in self._overloads if overload.takes(names)]
        if not fitting:
            return self._refuse(names), None
        run = self._guarded(fitting, names) if fitting[0].is_guarded else fitting[0].run
        is_counted = fitting[0].name in _MAKING or _SIZED.intersection(types)
        return run, fitting[0].work if is_counted else None

    def _guarded(self, overloads: list[Overload], names: tuple[str, ...]) -> Callable[..., Any]:
        """Chooses by what is in lists and maps, at each call."""
        refuse = self._refuse(names)

        def run(*values: Any) -> Any:
            for overload in overloads:
                if overload.suits(values):
                    return overload.run(*values)
            return refuse()

        return run

    def _refuse(self, names: tuple[str, ...]) -> Callable[..., Any]:
        """Fails in cel-go's words: operators, and functions that are like them, name themselves only where the left type has no such operator at all."""
        firsts = {overload.params[0].name for overload in self._overloads}
        text = "no such overload"
        if any(overload.singleton for overload in self._overloads):
            text = text if names[0] in _RECEIVERS else f"no such overload: {self.name}"
        elif self.name[0].isalpha() and self.name not in _ONE_IMPLEMENTATION:
            text = f"no such overload: {self.name}({', '.join(names)})"
        elif names[0] not in firsts | _RECEIVERS | _NAMELESS.get(self.name, frozenset()):
            text = f"no such overload: {self.name}"

        def run(*_: Any) -> Any:
            raise CelRuntimeError(text)

        return run
