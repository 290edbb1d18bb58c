"""Generated source against the closures: random selectors on random devices; wherever the source has an answer, the closures have the same.

`python -m tests.properties.generated --evaluations 1000000 --seed 1` compares so many answers and prints what was compared; `test_generated.py`
does a few.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dra_operator.cel.answers import evaluate
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.compiler import compile_selector
from dra_operator.cel.meter import Meter
from dra_operator.cel.types.values import device_input
from dra_operator.errors import CelError
from dra_operator.model import ResourceSlice, from_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dra_operator.cel.evaluation.evaluate import Program
    from dra_operator.cel.types.values import DeviceInput

DRIVER = "d"
TEXTS = ["", "a", "mig", "1g.10gb", "A", "ä", "x-1"]
NUMBERS = [-1, 0, 1, 2, 3, 7]
VERSIONS = ["1.0.0", "1.2.3", "2.0.0-rc.1", "550.54.15", "1.2.3+b"]
AMOUNTS = ["0", "1", "10Gi", "10240Mi", "1500m", "40Gi", "-1"]
VALUES: dict[str, Any] = {
    "string": TEXTS,
    "int": NUMBERS,
    "bool": [True, False],
    "version": VERSIONS,
    "strings": [[], ["a"], ["a", "mig"], ["x-1", "ä"]],
    "ints": [[], [1], [0, 1, 2], [3, 3]],
    "bools": [[True], [False, True]],
    "versions": [["1.0.0"], ["1.2.3", "2.0.0-rc.1"]],
}
USUAL = {"s": "string", "t": "string", "i": "int", "b": "bool", "v": "version", "o/s": "string", "o/i": "int"}
USUAL |= {"ls": "strings", "li": "ints", "lb": "bools", "lv": "versions"}
BROKEN = {"version": "no version"}
PER_EXPRESSION = 60
"""Devices that each selector is evaluated on."""

PER_DEVICES = 50
"""Selectors until there are other devices."""


def some_device(luck: random.Random) -> dict[str, Any]:
    """A device whose attributes mostly are of their usual types; some are missing, few are broken."""
    attributes: dict[str, Any] = {}
    for name, usual in USUAL.items():
        if luck.random() < 0.15:
            continue
        kind = usual if luck.random() < 0.85 else luck.choice(list(VALUES))
        attributes[name] = {kind: luck.choice(VALUES[kind])} if luck.random() < 0.995 else BROKEN
    capacity = {name: {"value": luck.choice(AMOUNTS)} for name in ("m", "n", "o/m") if luck.random() < 0.85}
    shared = {"allowMultipleAllocations": luck.random() < 0.5} if luck.random() < 0.5 else {}
    return {"attributes": attributes, "capacity": capacity, **shared}


def some_devices(luck: random.Random, count: int) -> list[DeviceInput]:
    """Devices as expressions see them; few have another driver."""
    found: list[DeviceInput] = []
    while len(found) < count:
        driver = DRIVER if luck.random() < 0.9 else "o"
        named = {"name": f"x{len(found)}", **some_device(luck)}
        raw = {"metadata": {"name": "s"}, "spec": {"driver": driver, "devices": [named]}}
        found += [device_input(driver, device) for device in from_object(ResourceSlice, raw).spec.devices]
    return found


class Writer:
    """Writes random selectors, as people write them and as nobody would."""

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self._variables: list[str] = []

    def selector(self) -> str:
        """A selector; it may not compile."""
        return self._bool(self._luck.choice([1, 2, 2, 3, 3, 4]))

    def _pick(self, *parts: str) -> str:
        return self._luck.choice(parts)

    def _domain(self, table: str) -> str:
        domain = self._pick(DRIVER, DRIVER, DRIVER, "o", "zz")
        forms = [f'device.{table}["{domain}"]', f"device.{table}.{domain}"]
        if self._luck.random() < 0.1:
            forms = [f'device.{table}[?"{domain}"]', f"device.{table}.?{domain}"]
        return self._luck.choice(forms)

    def _attribute(self, *names: str) -> str:
        name = self._pick(*(names or ("s", "t", "i", "b", "v", "ls", "li", "lb", "lv", "nope")))
        if self._luck.random() < 0.1:
            name = self._pick("s", "i", "v", "ls", "nope")
        form = self._pick(".{0}", ".{0}", '["{0}"]', ".?{0}", '[?"{0}"]')
        path = self._domain("attributes") + form.format(name)
        if "?" in path:
            other = self._constant() if self._luck.random() < 0.8 else self._value(0)
            return path + self._pick(f".orValue({other})", f".orValue({other})", ".value()", ".hasValue()")
        return path

    def _quantity(self) -> str:
        amount = f'quantity("{self._pick(*AMOUNTS, "bad")}")'
        entry = self._domain("capacity") + "." + self._pick("m", "n", "nope")
        path = f"{entry}.orValue({amount})" if "?" in entry else entry
        return self._pick(path, path, path, amount)

    def _version(self) -> str:
        constant = f'semver("{self._pick(*VERSIONS, "bad")}")'
        return self._pick(self._attribute("v"), self._attribute("v"), constant)

    def _constant(self) -> str:
        return self._pick(
            *(f'"{text}"' for text in TEXTS), *map(str, NUMBERS), "true", "false", "2u", "1.0", "null"
        )

    def _text(self) -> str:
        return self._pick(f'"{self._pick(*TEXTS)}"', self._attribute("s", "t"), "device.driver")

    def _list(self, depth: int) -> str:
        constants = self._pick(
            '["a", "mig"]', "[1, 2, 3]", "[true]", "[]", '[dyn("a"), dyn(1)]', "[1.0, 2.0]"
        )
        forms = [
            constants,
            constants,
            self._attribute("ls", "li", "lb", "lv"),
            f"[{self._text()}, {self._text()}]",
        ]
        if depth > 0:
            forms.append(self._mapped(depth - 1))
        return self._luck.choice(forms)

    def _mapped(self, depth: int) -> str:
        range_ = self._list(depth)
        return f"{range_}.{self._pick('filter', 'filter', 'map')}(" + self._with_variable(depth) + ")"

    def _with_variable(self, depth: int) -> str:
        name = self._pick("x", "y", "device", "K0", "d", "v1", "found")
        self._variables.append(name)
        body = self._bool(depth)
        self._variables.pop()
        return f"{name}, {body}"

    def _value(self, depth: int) -> str:
        forms = [
            self._constant(),
            self._attribute(),
            self._attribute(),
            self._text(),
            self._version(),
            self._quantity(),
        ]
        if self._variables:
            forms += [self._luck.choice(self._variables)] * 6
        if depth > 0:
            forms += [
                f"{self._list(depth - 1)}.size()",
                f"dyn({self._value(depth - 1)})",
                f"({self._bool(depth - 1)} ? {self._value(depth - 1)} : {self._value(depth - 1)})",
                f"{self._version()}.{self._pick('major', 'minor', 'patch')}()",
                f"{self._text()}.{self._pick('lowerAscii', 'upperAscii', 'trim', 'size')}()",
                f"-{self._pick('1', '2.5')}",
            ]
        return self._luck.choice(forms)

    def _comparison(self, depth: int) -> str:
        sign = self._pick("==", "==", "==", "!=", "<", "<=", ">", ">=")
        return f"{self._value(depth)} {sign} {self._value(depth)}"

    def _usual(self) -> str:
        kind = self._luck.randrange(6)
        signs = self._pick("==", "==", "!=")
        if kind == 0:
            return f'{self._attribute("s", "t")} {signs} "{self._pick(*TEXTS)}"'
        if kind == 1:
            return f"{self._attribute('i')} {self._pick('==', '<', '>=', '!=')} {self._luck.choice(NUMBERS)}"
        if kind == 2:
            return f"{self._quantity()}.compareTo({self._quantity()}) {self._pick('>=', '==', '<', '>', '<=', '!=')} 0"
        if kind == 3:
            return f"{self._pick(self._quantity(), self._version())}.{self._pick('isGreaterThan', 'isLessThan')}({self._pick(self._quantity(), self._version())})"
        if kind == 4:
            return f'{self._text()}.matches("{self._pick("^m", "a|b", "[0-9]+g", "^(a|mig)$")}")'
        return f'device.driver {signs} "{DRIVER}"'

    def _bool(self, depth: int) -> str:
        leaves: list[Callable[[], str]] = [
            self._usual, self._usual, self._usual, self._usual,
            lambda: self._attribute("b"),
            lambda: self._pick("true", "false", "device.allowMultipleAllocations"),
            lambda: f"has({self._domain('attributes')}.{self._pick('s', 'i', 'nope')})",
            lambda: f'"{self._pick("s", "i", "nope")}" in {self._domain("attributes")}',
            lambda: f'"{self._pick(DRIVER, "o", "zz")}" in device.{self._pick("attributes", "capacity")}',
            lambda: f"{self._text()}.{self._pick('startsWith', 'endsWith', 'contains')}({self._text()})",
            lambda: f"{self._version()}.compareTo({self._version()}) {self._pick('>', '==', '<')} 0",
            lambda: f"{self._quantity()} {self._pick('==', '!=')} {self._quantity()}",
        ]  # fmt: skip
        if depth <= 0:
            return self._luck.choice(leaves)()
        inner = depth - 1
        deeper: list[Callable[[], str]] = [
            lambda: "(" + self._pick(" && ", " || ").join(self._bool(inner) for _ in range(self._luck.randint(2, 4))) + ")",
            lambda: "(" + self._pick(" && ", " || ").join(self._bool(inner) for _ in range(2)) + ")",
            lambda: f"!{self._bool(inner)}" if self._luck.random() < 0.5 else f"!({self._bool(inner)})",
            lambda: f"({self._bool(inner)} ? {self._bool(inner)} : {self._bool(inner)})",
            lambda: f"({self._comparison(inner)})",
            lambda: f"({self._comparison(inner)})",
            lambda: f"{self._list(inner)}.{self._pick('all', 'exists', 'exists_one')}({self._with_variable(inner)})",
            lambda: f"({self._value(inner)} in {self._list(inner)})",
            lambda: f"{self._value(inner)}.includes({self._value(inner)})",
            self._bind,
            self._optional,
        ]  # fmt: skip
        return self._luck.choice([*deeper, *leaves[:3]])()

    def _bind(self) -> str:
        name = self._pick("a", "device", "x")
        value = self._pick(self._domain("attributes"), self._attribute(), self._value(1))
        self._variables.append(name if "attributes" not in value or "orValue" in value else f"{name}.s")
        body = self._bool(1)
        self._variables.pop()
        return f"cel.bind({name}, {value}, {body})"

    def _optional(self) -> str:
        path = f"{self._domain('attributes')}.?{self._pick('s', 'i', 'b', 'ls', 'nope')}"
        return self._pick(
            f"{path}.hasValue()",
            f"{path}.optMap(q, q == {self._constant()}).orValue({self._pick('true', 'false')})",
            f"{path}.or({self._domain('attributes')}.?{self._pick('s', 'i')}).orValue({self._constant()}) == {self._constant()}",
        )


@dataclass(slots=True)
class Comparison:
    """What was compared.

    Attributes:
        compared: evaluations in which generated source had an answer.
        expressions: selectors with source, without, and those that do not compile.
        elsewhere: evaluations that were left to the closures.
        differences: expression, device and both answers.
    """

    compared: int = 0
    elsewhere: int = 0
    expressions: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, text: str, devices: Sequence[DeviceInput]) -> None:
        """Compare one selector on some devices."""
        try:
            program, generated = compile_selector(text, stored_expressions())
        except CelError:
            self.expressions["refused"] += 1
            return
        if generated is None:
            self.expressions["no source"] += 1
            return
        self.expressions["source"] += 1
        for device in devices:
            if device.fault:
                continue
            try:
                (quick,) = generated.fill([device])
            except Exception:  # noqa: BLE001 -- that is how it says that it does not know
                self.elsewhere += 1
                continue
            self.compared += 1
            self._compare(text, device, quick, program)

    def _compare(self, text: str, device: DeviceInput, quick: object, program: Program) -> None:
        try:
            slow: object = evaluate(program, device, Meter())
        except CelError as error:
            slow = error
        self.answers[str(slow)] += 1
        if slow is not quick:
            self.differences.append(f"{text}\n  on {device}\n  source {quick!r}, closures {slow!r}")


def compare(seed: int, evaluations: int, devices_each: int = PER_EXPRESSION) -> Comparison:
    """Compare that many evaluations."""
    luck = random.Random(seed)
    found = Comparison()
    while found.compared < evaluations:
        devices = some_devices(luck, devices_each)
        for _ in range(PER_DEVICES):
            found.add(Writer(luck).selector(), devices)
    return found


def main() -> int:
    """Compare and print. Exit status: 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=PER_EXPRESSION, help="for each selector")
    arguments = parser.parse_args()
    began = time.perf_counter()
    found = compare(arguments.seed, arguments.evaluations, arguments.devices)
    print(
        f"seed {arguments.seed}: {found.compared:,} evaluations compared ({dict(found.answers)}), {found.elsewhere:,} left to the closures;",
        f"expressions: {dict(found.expressions)}; {len(found.differences)} differences, {time.perf_counter() - began:.0f} s",
    )
    print(*found.differences[:10], sep="\n")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
