"""The compiler that the allocator uses: compiled selectors and their answers are kept.

Answers belong to a slice object, which is frozen and weakly referenced: they go when the slice goes, and a second allocation
over the same slices evaluates nothing. Errors are answers, too; they are raised again as new exceptions.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from dra_operator.errors import CelError, CelRuntimeError

from .checks import check_selector
from .derived import compile_derived, derive
from .environment import stored_expressions
from .evaluate import plan
from .meter import Meter
from .parser import parse, unsupported
from .patterns import PATTERNS
from .values import device_input, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .environment import Environment
    from .evaluate import Program
    from .values import DeviceInput

    _Key = tuple[str, Environment, type["_Selector | _Derivation"]]

MAX_SELECTORS: Final = 2048
"""Compiled expressions kept; the least recently used goes first. Arbitrary: far more than clusters have."""

MAX_TEXT: Final = 256 * 1024
"""Characters of the expressions that are kept: 128 for each of `MAX_SELECTORS`. Compiled, one takes up to 500 bytes (measured), all 128 MiB."""

MAX_ANSWERS: Final = 2_000_000
"""Answers kept, some 100 bytes each; enough for 40 selectors over 50,000 devices."""

COMPILING: Final = 50
"""Units of work for each character that is compiled (measured: 10 to 50 µs, where a unit is a quarter of one)."""

T = TypeVar("T")

HINT: Final = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"


def with_hint(text: str) -> str:
    """Upstream's advice after lookups that find nothing (alloc L-5)."""
    return text + HINT if "no such key:" in text else text


class _PerDevice(Generic[T]):
    """Values that belong to the devices of slice objects, by identity, dropped with the slices."""

    def __init__(self) -> None:
        self._by_slice: dict[int, tuple[weakref.ref[ResourceSlice], dict[str, tuple[Device, T]]]] = {}

    def get(self, slice_: ResourceSlice, device: Device) -> T | None:
        """The value kept for this device of this slice object."""
        entry = self._by_slice.get(id(slice_))
        found = entry[1].get(device.name) if entry is not None and entry[0]() is slice_ else None
        return found[1] if found is not None and found[0] is device else None

    def put(self, slice_: ResourceSlice, device: Device, value: T) -> T:
        """Keep a value as long as the slice object lives."""
        key = id(slice_)
        entry = self._by_slice.get(key)
        if entry is None or entry[0]() is not slice_:
            entry = self._by_slice[key] = (weakref.ref(slice_, lambda _: self._by_slice.pop(key, None)), {})
        entry[1][device.name] = (device, value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._by_slice.clear()


class _Kept(Generic[T]):
    """A compiled expression with its answers."""

    def __init__(
        self, program: Program, owner: CelPythonCompiler, ask: Callable[[Program, DeviceInput, Meter], T]
    ) -> None:
        self._program = program
        self._owner = owner
        self._ask = ask
        self.answers: _PerDevice[T | CelError] = _PerDevice()

    def known(self, slice_: ResourceSlice, device: Device) -> T:
        """The answer for a device; evaluated once per slice object.

        Raises:
            CelRuntimeError: the expression fails on this device, or gives a value of another type than it may.
            CelUnsupported: the engine cannot tell.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        answer = self.answers.get(slice_, device)
        if answer is None:
            self._owner.meter.check()
            self._owner.count()
            answer = self.answers.put(slice_, device, self._answer(slice_, device))
        if isinstance(answer, CelError):
            raise type(answer)(*answer.args)
        return answer

    def _answer(self, slice_: ResourceSlice, device: Device) -> T | CelError:
        try:
            return self._ask(self._program, self._owner.seen(slice_, device), self._owner.meter)
        except CelError as error:
            return type(error)(*error.args)


class _Selector(_Kept[bool]):
    """A compiled selector; fulfils `Selector`."""

    def __init__(self, program: Program, owner: CelPythonCompiler) -> None:
        super().__init__(program, owner, evaluate)

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        """Whether the device meets the expression; raises what `known` does."""
        return self.known(slice_, device)


class _Derivation(_Kept["DeviceAttribute"]):
    """A compiled expression of a derived attribute; fulfils `Derivation`."""

    def __init__(self, program: Program, owner: CelPythonCompiler) -> None:
        super().__init__(program, owner, derive)

    def attribute(self, slice_: ResourceSlice, device: Device) -> DeviceAttribute:
        """The attribute that the expression gives to the device; raises what `known` does."""
        return self.known(slice_, device)


def evaluate(program: Program, device: DeviceInput, meter: Meter) -> bool:
    """The bool that a program gives on a device; the meter counts the work.

    Raises:
        CelRuntimeError: it fails, or gives no bool.
        CelUnsupported: the engine cannot tell.
    """
    try:
        result = program.evaluate(device, meter)
    except CelRuntimeError as error:
        raise CelRuntimeError(with_hint(str(error))) from error
    if isinstance(result, bool):
        return result
    name = type_name(result)
    reason = f"unsupported type conversion from '{name}' to bool"
    if name in {"list", "map"}:
        reason = f"type conversion error from {name} to 'bool'"
    raise CelRuntimeError(f"CEL result of type {name} could not be converted to bool: {reason}")


def compile_program(expression: str, environment: Environment) -> Program:
    """Parse, check and plan a selector.

    Raises:
        CelCompileError: it does not compile.
        CelUnsupported: it may be valid, but this engine cannot evaluate it.
    """
    try:
        node = parse(expression)
        check_selector(expression, node, environment)
        return plan(node, environment.functions)
    except RecursionError as error:
        raise unsupported("so deep a nesting") from error


class CelPythonCompiler:
    """Fulfils `SelectorCompiler` and `DerivationCompiler` with our own parser, checker and evaluator.

    Args:
        environment: gives the names that expressions may use; the default is what the scheduler does (alloc L-6).
        max_answers: how many answers to keep; all are forgotten when there are more.

    Attributes:
        meter: limits the work of a decision; at first, there is no limit.
    """

    def __init__(
        self,
        environment: Callable[[Features], Environment] = lambda _: stored_expressions(),
        max_answers: int = MAX_ANSWERS,
    ) -> None:
        self._environment = environment
        self._max_answers = max_answers
        self.meter = Meter()
        self._kept = 0
        self._text = 0
        self._inputs: _PerDevice[DeviceInput] = _PerDevice()
        self._known: OrderedDict[_Key, _Selector | _Derivation | CelError] = OrderedDict()

    def compile(self, expression: str, features: Features) -> _Selector:
        """Compile a selector, or find it compiled.

        Raises:
            CelCompileError: it does not compile.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        found = self._found((expression, self._environment(features), _Selector))
        assert isinstance(found, _Selector)
        return found

    def compile_derived(self, expression: str, features: Features) -> _Derivation:
        """Compile the expression of a derived attribute, or find it compiled.

        Raises:
            CelCompileError: it does not compile, or gives what no attribute can hold.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        found = self._found((expression, self._environment(features), _Derivation))
        assert isinstance(found, _Derivation)
        return found

    def _found(self, key: _Key) -> _Selector | _Derivation:
        found = self._known.get(key)
        if found is None:
            self.meter.check()
            found = self._known[key] = self._compiled(*key)
            self._text += len(key[0])
            self._make_room()
        else:
            self._known.move_to_end(key)
        if isinstance(found, CelError):
            raise type(found)(*found.args)
        return found

    def seen(self, slice_: ResourceSlice, device: Device) -> DeviceInput:
        """What expressions see of a device; converted once per slice object."""
        return self._inputs.get(slice_, device) or self._inputs.put(
            slice_, device, device_input(slice_, device)
        )

    def count(self) -> None:
        """Note that an answer more is kept; makes room when there are too many."""
        self._kept += 1
        if self._kept <= self._max_answers:
            return
        self._kept = 1
        for selector in self._known.values():
            if not isinstance(selector, CelError):
                selector.answers.clear()

    def _make_room(self) -> None:
        while len(self._known) > MAX_SELECTORS or (self._text > MAX_TEXT and len(self._known) > 1):
            (expression, *_), _ = self._known.popitem(last=False)
            self._text -= len(expression)

    def _compiled(
        self, expression: str, environment: Environment, kind: type[_Selector | _Derivation]
    ) -> _Selector | _Derivation | CelError:
        before, make = PATTERNS.work, compile_derived if kind is _Derivation else compile_program
        try:
            return kind(make(expression, environment), self)
        except CelError as error:
            return type(error)(*error.args)
        finally:
            self.meter.spend(COMPILING * len(expression) + PATTERNS.work - before)
