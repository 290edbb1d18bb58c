"""What compiled expressions answer for the devices of slices, kept as long as it is right.

A selector has a `MatchVector` for each slice, which belongs to the slice's generation. Where it is known to be cheap, all devices of a slice are
evaluated at once by generated code; else one by one, as they are asked for, by the closures, which also give the words of every error. Errors are
answers, too; they are raised again as new exceptions. Used by `compiler`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelError, CelRuntimeError

from .adapter import Adapters
from .derived import derive
from .functions.patterns import PATTERNS
from .meter import ImpatienceError, Meter
from .types.messages import RECORDS
from .types.values import Optional, device_input, type_name
from .vectors import MatchVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .adapter import SliceInputs
    from .evaluation.evaluate import Program
    from .evaluation.source import Generated
    from .types.values import DeviceInput

MAX_KEPT: Final = 200_000
"""Vectors, errors and values kept. A vector takes some 300 bytes: all 60 MB; enough for 20 selectors over 10,000 slices, however large."""

AT_ONCE: Final = 200_000
"""Nodes that generated code runs through without a look at the meter: some 5 ms (measured: 10 to 25 ns each, as lists are shorter than they may be)."""

SEARCHES: Final = 16
"""Searches of generated code without a look at the meter: 6 ms, were each of them the slowest of an attribute's text."""

_NODES: Final = 25
"""Nodes that generated code runs through in the time of one unit of work."""

CONVERTING: Final = 40
"""Units for a device that expressions have not seen yet (measured: 9 µs, where a unit is a quarter of one)."""

HINT: Final = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"


def with_hint(text: str) -> str:
    """Upstream's advice after lookups that find nothing (alloc L-5)."""
    return text + HINT if "no such key:" in text else text


_NO_BOOL: Final = {
    **dict.fromkeys(RECORDS, "type conversion error from '*dynamicpb.Message' to 'bool'"),
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
}
"""Upstream's words for values of these types when they are no bool: each type has its own."""

_OBJECTS: Final = {
    "google.protobuf.Duration": "Duration",
    "google.protobuf.Timestamp": "Timestamp",
    "kubernetes.NamedFormat": "Format",
    "kubernetes.Quantity": "Quantity",
    "kubernetes.Semver": "Semver",
    "kubernetes.URL": "URL",
    "net.CIDR": "CIDR",
    "net.IP": "IP",
}
"""What upstream calls values of these types when they are no bool."""


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
    inner = result
    while isinstance(inner, Optional) and inner.present:  # upstream takes what is in it
        inner = inner.value
    if isinstance(inner, bool):
        return inner
    raise CelRuntimeError(
        f"CEL result of type {type_name(result)} could not be converted to bool: {_no_bool(inner)}"
    )


def _no_bool(value: object) -> str:
    name = type_name(value)
    if isinstance(value, Optional):
        return "optional.none() dereference"
    if name in _OBJECTS:
        return f"type conversion error from '{_OBJECTS[name]}' to 'bool'"
    return _NO_BOOL.get(name, f"unsupported type conversion from '{name}' to bool")


@dataclass(slots=True)
class Tally:
    """What was done so far, to be looked at.

    Attributes:
        asked: answers that were asked for.
        missed: of them those that were not known.
        evaluated: devices that were evaluated, generated code and closures together.
        generated: of them by generated code.
        forgotten: how often there were too many answers.
    """

    asked: int = 0
    missed: int = 0
    evaluated: int = 0
    generated: int = 0
    forgotten: int = 0


class Answers:
    """The answers of all expressions of one compiler.

    Args:
        meter: counts the work.
        most: how many vectors, errors and values to keep.
        used: the selectors, the least recently used first.

    Attributes:
        adapters: the slices.
        kept: vectors, errors and values; those of slices that went are counted until there are too many.
        meter: counts the work.
        tally: what was done.
    """

    def __init__(self, meter: Meter, most: int, used: Callable[[], Iterable[int]]) -> None:
        self.adapters = Adapters()
        self.kept = 0
        self.meter = meter
        self.tally = Tally()
        self._most = most
        self._used = used
        self._numbers = 0

    def number(self) -> int:
        """A number for a selector."""
        self._numbers += 1
        return self._numbers

    def inputs(self, slice_: ResourceSlice) -> SliceInputs:
        """A slice as expressions see it; devices that had to be converted are work."""
        before = self.adapters.converted
        found = self.adapters.of(slice_)
        if new := self.adapters.converted - before:
            self.meter.spend(CONVERTING * new)
        return found

    def count(self, more: int) -> None:
        """So many more are kept; makes room when there are too many."""
        self.kept += more
        if self.kept <= self._most:
            return
        everything = self.adapters.all()
        self.kept = sum(map(_weight, everything)) + more
        for number in self._used():
            if self.kept <= self._most // 2:
                break
            self.tally.forgotten += 1
            self.kept -= sum(inputs.forget(number) for inputs in everything)

    def forget(self, number: int) -> None:
        """A selector went."""
        for inputs in self.adapters.all():
            self.kept -= inputs.forget(number)


def _weight(inputs: SliceInputs) -> int:
    vectors = sum(1 + len(vector.errors) for vector in inputs.vectors.values())
    return vectors + sum(map(len, inputs.values.values()))


class KeptSelector:
    """A compiled selector; fulfils `Selector`.

    Args:
        program: the closures.
        generated: the fast way, if there is one.
        answers: where its answers are kept.

    Attributes:
        number: by which its answers are found.
        generated: as given.
    """

    def __init__(self, program: Program, generated: Generated | None, answers: Answers) -> None:
        self.number = answers.number()
        self.generated = generated
        self._program = program
        self._answers = answers

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        """Whether the device meets the expression; evaluated once for each generation of a slice.

        Raises:
            CelRuntimeError: the expression fails on this device, or gives no bool.
            CelUnsupported: the engine cannot tell.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        answers = self._answers
        answers.tally.asked += 1
        inputs = answers.inputs(slice_)
        number = inputs.number(slice_.spec.devices, device)
        vector = inputs.vectors.get(self.number)
        known, true = vector.state if vector is not None else (0, 0)
        answer: bool | CelError
        if vector is None or number < 0 or not known >> number & 1:
            answer = self._look(slice_, device, inputs, number)
        elif true >> number & 1:
            return True
        else:
            answer = vector.errors.get(number, False)
        if isinstance(answer, CelError):
            raise answer.again()
        return answer

    def matching(self, slice_: ResourceSlice) -> int | None:
        """The devices that meet the expression, by place; None where that cannot be told of all at once.

        Raises:
            WorkLimitReached: not yet, and no more work is allowed.
        """
        answers = self._answers
        inputs = answers.inputs(slice_)
        count = len(inputs.devices)
        vector = inputs.vectors.get(self.number)
        if vector is None or vector.state[0].bit_count() < count:
            answers.meter.check()
            vector = self._vector(inputs)
            if not self._fill(inputs, vector):
                return None
            answers.tally.missed += count
        known, true = vector.state
        if vector.errors or known.bit_count() < count:  # fewer if another thread has just put one
            return None
        answers.tally.asked += count
        return true

    def _vector(self, inputs: SliceInputs) -> MatchVector:
        """The vector of the slice, be it a new one. Threads get the same; it may be dropped at any time, which does not matter to who has it."""
        found = inputs.vectors.get(self.number)
        if found is None:
            made = MatchVector()
            found = inputs.vectors.setdefault(self.number, made)
            if found is made:
                self._answers.count(1)
        return found

    def _look(
        self, slice_: ResourceSlice, device: Device, inputs: SliceInputs, number: int
    ) -> bool | CelError:
        """Find out about a device."""
        answers = self._answers
        answers.meter.check()
        answers.tally.missed += 1
        if number < 0:  # no device of the slice: nothing to keep
            return self._one(device_input(slice_.spec.driver, device), Meter())
        vector = self._vector(inputs)
        self._fill(inputs, vector)
        known, true = vector.state
        if known >> number & 1 and number not in vector.errors:
            return bool(true >> number & 1)
        try:
            return self._put(inputs, number, answers.meter)
        except ImpatienceError:
            key = (self.number, id(inputs), number)
            raise answers.meter.later(key, partial(self._aside, inputs, number)) from None

    def _put(self, inputs: SliceInputs, number: int, meter: Meter) -> bool | CelError:
        """What is returned counts: what is kept may be forgotten at once, as another thread keeps something."""
        answer = self._one(inputs.devices[number], meter)
        self._vector(inputs).put(number, answer)
        self._answers.count(isinstance(answer, CelError))
        return answer

    def _aside(self, inputs: SliceInputs, number: int) -> int:
        """An errand: the answer for a device that takes long. Returns: the units."""
        meter = Meter()
        self._put(inputs, number, meter)
        return meter.spent

    def _fill(self, inputs: SliceInputs, vector: MatchVector) -> bool:
        """Evaluate all devices at once, if that is cheap and none of them fails: whether it was done."""
        generated = self.generated
        if generated is None or vector.singly or not inputs.is_sound:
            return False
        numbers = vector.unknown(len(inputs.devices))
        if not numbers:
            return True
        if generated.work * len(numbers) > AT_ONCE:
            return False
        if generated.searches:
            return self._fill_bit_by_bit(inputs, vector, numbers)
        return self._fill_some(inputs, vector, numbers)

    def _fill_some(self, inputs: SliceInputs, vector: MatchVector, numbers: list[int]) -> bool:
        assert self.generated is not None
        devices = [inputs.devices[number] for number in numbers]
        try:
            found = self._run(self.generated, devices, self._answers.meter)
        except ImpatienceError:
            return False
        if found is None:
            vector.singly = True
            return False
        vector.put_all(numbers, found)
        return True

    def _fill_bit_by_bit(self, inputs: SliceInputs, vector: MatchVector, numbers: list[int]) -> bool:
        """What a search takes shows only when it is done: a few at a time, and what is found is kept.

        Raises:
            WorkLimitReached: no more work is allowed.
        """
        assert self.generated is not None
        step = max(1, SEARCHES // self.generated.searches)
        for start in range(0, len(numbers), step):
            if start:
                inputs.vectors.setdefault(self.number, vector)
                self._answers.meter.check()
            if not self._fill_some(inputs, vector, numbers[start : start + step]):
                return False
        return True

    def _run(self, generated: Generated, devices: list[DeviceInput], meter: Meter) -> list[bool] | None:
        """What generated code gives; None if it fails, for whatever reason.

        Raises:
            ImpatienceError: some pattern takes long to compile.
        """
        before, tally = PATTERNS.searched, self._answers.tally
        try:
            with PATTERNS.impatient() if meter.patience is not None else nullcontext():
                found = generated.fill(devices)
        except ImpatienceError:
            raise
        except Exception:  # noqa: BLE001 -- whatever it is, the closures know better
            found = None
        tally.evaluated += len(devices)
        tally.generated += len(devices)
        work = generated.work * len(devices) // _NODES + 1 + PATTERNS.searched - before
        meter.spend(work)
        return found

    def _one(self, device: DeviceInput, meter: Meter) -> bool | CelError:
        """The answer for one device."""
        if self.generated is not None and not device.fault:
            found = self._run(self.generated, [device], meter)
            if found is not None:
                return found[0]
        self._answers.tally.evaluated += 1
        try:
            return evaluate(self._program, device, meter)
        except CelError as error:
            return error.again()


class KeptDerivation:
    """A compiled expression of a derived attribute; fulfils `Derivation`.

    Args:
        program: the closures.
        answers: where its values are kept.

    Attributes:
        number: by which its values are found.
    """

    def __init__(self, program: Program, answers: Answers) -> None:
        self.number = answers.number()
        self._program = program
        self._answers = answers

    def attribute(self, slice_: ResourceSlice, device: Device) -> DeviceAttribute:
        """The attribute that the expression gives to the device; evaluated once for each generation of a slice.

        Raises:
            CelRuntimeError: the expression fails on this device, or gives what no attribute can hold.
            CelUnsupported: the engine cannot tell.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        answers = self._answers
        answers.tally.asked += 1
        inputs = answers.inputs(slice_)
        number = inputs.number(slice_.spec.devices, device)
        values = inputs.values.setdefault(self.number, {})
        answer = values.get(number) if number >= 0 else None
        if answer is None:
            answers.meter.check()
            answers.tally.missed += 1
            seen = inputs.devices[number] if number >= 0 else device_input(slice_.spec.driver, device)
            answer = self._hurried(values, seen, number)
        if isinstance(answer, CelError):
            raise answer.again()
        return answer

    def _hurried(
        self, values: dict[int, DeviceAttribute | CelError], device: DeviceInput, number: int
    ) -> DeviceAttribute | CelError:
        """The value, if it does not take too long; else it becomes an errand."""
        meter = self._answers.meter
        try:
            return self._put(values, device, number, meter if number >= 0 else Meter())
        except ImpatienceError:
            key = (self.number, id(values), number)
            raise meter.later(key, partial(self._aside, values, device, number)) from None

    def _aside(self, values: dict[int, DeviceAttribute | CelError], device: DeviceInput, number: int) -> int:
        """An errand: the value for a device that takes long. Returns: the units."""
        meter = Meter()
        self._put(values, device, number, meter)
        return meter.spent

    def _put(
        self, values: dict[int, DeviceAttribute | CelError], device: DeviceInput, number: int, meter: Meter
    ) -> DeviceAttribute | CelError:
        answer = self._one(device, meter)
        if number >= 0:
            values[number] = answer
            self._answers.count(1)
        return answer

    def _one(self, device: DeviceInput, meter: Meter) -> DeviceAttribute | CelError:
        self._answers.tally.evaluated += 1
        try:
            return derive(self._program, device, meter)
        except CelError as error:
            return error.again()
