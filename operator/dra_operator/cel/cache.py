"""The compiler that the allocator uses: compiled selectors and their answers are kept.

Answers belong to a slice object, which is frozen and weakly referenced: they go when the slice goes, and a second allocation
over the same slices evaluates nothing. Errors are answers, too; they are raised again as new exceptions.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import CelError, CelRuntimeError

from .checks import check_selector
from .environment import stored_expressions
from .evaluate import plan
from .parser import parse, unsupported
from .values import device_input, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.features import Features
    from dra_operator.model import Device, ResourceSlice

    from .environment import Environment
    from .evaluate import Program
    from .values import DeviceInput

MAX_SELECTORS: Final = 2048
"""Compiled expressions kept; the least recently used goes first. Arbitrary: far more than clusters have."""

HINT: Final = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"


def with_hint(text: str) -> str:
    """Upstream's advice after lookups that find nothing (alloc L-5)."""
    return text + HINT if "no such key: " in text else text


class _PerSlice:
    """Values that belong to slice objects, by identity, dropped with them."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[weakref.ref[ResourceSlice], dict[Any, Any]]] = {}

    def of(self, slice_: ResourceSlice) -> dict[Any, Any]:
        """The values of this slice object."""
        key = id(slice_)
        entry = self._by_id.get(key)
        if entry is not None and entry[0]() is slice_:
            return entry[1]
        values: dict[Any, Any] = {}
        self._by_id[key] = (weakref.ref(slice_, lambda _: self._by_id.pop(key, None)), values)
        return values


class _Selector:
    """A compiled expression; fulfils `Selector`."""

    def __init__(self, program: Program, inputs: _PerSlice) -> None:
        self._program = program
        self._inputs = inputs
        self._answers = _PerSlice()

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        """Whether the device meets the expression.

        Raises:
            CelRuntimeError: the expression fails on this device, or gives no bool.
            CelUnsupported: the engine cannot tell.
        """
        answers = self._answers.of(slice_)
        answer: bool | CelError | None = answers.get(device.name)
        if answer is None:
            answer = answers[device.name] = self._answer(slice_, device)
        if isinstance(answer, CelError):
            raise type(answer)(*answer.args)
        return answer

    def _answer(self, slice_: ResourceSlice, device: Device) -> bool | CelError:
        inputs = self._inputs.of(slice_)
        seen: DeviceInput | None = inputs.get(device.name)
        if seen is None:
            seen = inputs[device.name] = device_input(slice_, device)
        try:
            return evaluate(self._program, seen)
        except CelError as error:
            return type(error)(*error.args)


def evaluate(program: Program, device: DeviceInput) -> bool:
    """The bool that a program gives on a device.

    Raises:
        CelRuntimeError: it fails, or gives no bool.
        CelUnsupported: the engine cannot tell.
    """
    try:
        result = program.evaluate(device)
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
    """Fulfils `SelectorCompiler` with cel-python's parser and our own checker and evaluator.

    Args:
        environment: gives the names that expressions may use; the default is what the scheduler does (alloc L-6).
    """

    def __init__(
        self, environment: Callable[[Features], Environment] = lambda _: stored_expressions()
    ) -> None:
        self._environment = environment
        self._inputs = _PerSlice()
        self._known: OrderedDict[tuple[str, Environment], _Selector | CelError] = OrderedDict()

    def compile(self, expression: str, features: Features) -> _Selector:
        """Compile an expression, or find it compiled.

        Raises:
            CelCompileError: it does not compile.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
        """
        key = (expression, self._environment(features))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compiled(*key)
            if len(self._known) > MAX_SELECTORS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        if isinstance(found, CelError):
            raise type(found)(*found.args)
        return found

    def _compiled(self, expression: str, environment: Environment) -> _Selector | CelError:
        try:
            return _Selector(compile_program(expression, environment), self._inputs)
        except CelError as error:
            return type(error)(*error.args)
