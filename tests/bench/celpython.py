"""cel-python's interpreter on devices, for comparison: functions of Kubernetes as simple as can be, contexts converted beforehand."""

from __future__ import annotations

from functools import total_ordering
from typing import TYPE_CHECKING, Any

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}


@total_ordering
class _Ordered:
    """A quantity or a version by its place among its likes."""

    def __init__(self, place: Any) -> None:
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and bool(self.place == other.place)

    def __lt__(self, other: _Ordered) -> bool:
        return bool(self.place < other.place)

    __hash__ = None  # type: ignore[assignment]


def _quantity(text: str) -> _Ordered:
    shift = _BINARY.get(text[-2:], 0)
    return _Ordered(int(text[:-2] if shift else text) << shift)


def _semver(text: str) -> _Ordered:
    return _Ordered(tuple(map(int, text.split("."))))


def _compare_to(one: _Ordered, other: _Ordered) -> celtypes.IntType:
    return celtypes.IntType((one > other) - (one < other))


def _is_greater_than(one: _Ordered, other: _Ordered) -> celtypes.BoolType:
    return celtypes.BoolType(one > other)


FUNCTIONS: Any = {
    "quantity": _quantity,
    "semver": _semver,
    "compareTo": _compare_to,
    "isGreaterThan": _is_greater_than,
}


def _attribute(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    return _semver(value) if kind == "version" else json_to_cel(value)


def _context(driver: str, device: dict[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for table, convert in (("attributes", _attribute), ("capacity", lambda entry: _quantity(entry["value"]))):
        domains: dict[str, dict[Any, Any]] = {}
        for qualified, entry in device[table].items():
            domain, slash, name = qualified.partition("/")
            domain, name = (domain, name) if slash else (driver, domain)
            domains.setdefault(domain, {})[celtypes.StringType(name)] = convert(entry)
        tables[table] = celtypes.MapType(
            {celtypes.StringType(domain): celtypes.MapType(names) for domain, names in domains.items()}
        )
    seen = {celtypes.StringType(table): value for table, value in tables.items()}
    seen[celtypes.StringType("driver")] = celtypes.StringType(driver)
    return {"device": celtypes.MapType(seen)}


def interpreter(expression: str, driver: str, devices: Sequence[dict[str, Any]]) -> Callable[[], None]:
    """What evaluates the expression on all devices, all of which must meet it."""
    environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
    program = environment.program(environment.compile(expression), functions=FUNCTIONS)
    contexts = [_context(driver, device) for device in devices]

    def run() -> None:
        for context in contexts:
            assert program.evaluate(context)

    return run
