"""Runs CEL's public conformance cases (cel-spec, `tests/simple`): `python -m tests.conformance.spec`.

A line of `cases.jsonl` is one case: `expression`, and `value` (typed), `error` (any will do) or `type` (what the checker finds). Variables
of the suite are bound in the expression. Left out is what no expression over devices can have: messages, enums, containers, declared
functions, and the libraries `math`, `encoders`, `proto` and `block`. The suite mixes types in literals, which Kubernetes refuses: that rule is
off here. `different.json` names each case whose answer is another one in Kubernetes itself (asked, not guessed), with the reason.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.checking.validators import homogeneous_literals
from dra_operator.cel.evaluation.evaluate import plan
from dra_operator.cel.functions.times import duration_text, timestamp_text
from dra_operator.cel.meter import Meter
from dra_operator.cel.types.values import (
    Duration,
    Optional,
    Timestamp,
    TypeName,
    UInt,
    device_input,
    from_key,
)
from dra_operator.errors import CelError, CelUnsupported
from dra_operator.model import Device

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.checking.environment import Environment

HERE: Final = Path(__file__).parent
DEVICE: Final = device_input("gpu.example.com", Device(name="gpu"))


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        value: what it evaluates to, typed as `typed` does it; None when that is not told.
        kind: the type that the checker gives it; empty when that is not told.
        fails: whether it is refused or fails.
    """

    id: str
    expression: str
    value: Any
    kind: str
    fails: bool


def cases() -> list[Case]:
    """All of them, in the suite's order."""
    found = map(json.loads, (HERE / "cases.jsonl").read_text().splitlines())
    return [
        Case(
            item["id"], item["expression"], item.get("value"), item.get("type", ""), item.get("error", False)
        )
        for item in found
    ]


def different() -> dict[str, str]:
    """Case → why its answer is another one here."""
    listed: dict[str, list[str]] = json.loads((HERE / "different.json").read_text())
    return {case: reason for reason, found in listed.items() for case in found}


def typed(value: Any) -> Any:
    """A value as the cases have it: `{type: text or parts}`."""
    return _SHOWN[type(value)](value)


_SHOWN: Final[dict[type, Callable[[Any], Any]]] = {
    bool: lambda value: {"bool": value},
    int: lambda value: {"int": str(value)},
    UInt: lambda value: {"uint": str(int(value))},
    float: lambda value: {"double": _double(value)},
    str: lambda value: {"string": value},
    bytes: lambda value: {"bytes": base64.b64encode(value).decode()},
    type(None): lambda _: {"null": None},
    TypeName: lambda value: {"type": value.name},
    tuple: lambda value: {"list": [typed(item) for item in value]},
    dict: lambda value: {"map": [[typed(from_key(key)), typed(value[key])] for key in value]},
    Duration: lambda value: {"duration": duration_text(value)},
    Timestamp: lambda value: {"timestamp": timestamp_text(value)},
    Optional: lambda value: {"optional": typed(value.value) if value.present else None},
}


def _double(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


@cache
def mixed() -> Environment:
    """The environment of stored expressions, where literals may hold several types."""
    stored = stored_expressions()
    kept = tuple(validator for validator in stored.validators if validator is not homogeneous_literals)
    return replace(stored, validators=kept)


def difference(case: Case) -> str:
    """How our answer is another one than the suite's; empty when it is not."""
    environment = mixed()
    try:
        checked = check(case.expression, environment)
        program = plan(checked, environment.functions)
        value = typed(program.evaluate(DEVICE, Meter())) if not case.kind else None
    except CelUnsupported as error:
        return str(error)
    except CelError as error:
        return "" if case.fails else f"fails: {error}"
    if case.fails:
        return f"should fail, gives {value}"
    if case.kind:
        return "" if str(checked.kind) == case.kind else f"type {checked.kind}, not {case.kind}"
    return "" if _same(value, case.value) else f"gives {value}, not {case.value}"


def _same(one: Any, other: Any) -> bool:
    if set(one) != set(other):
        return False
    (kind,) = one
    if kind == "map":
        return _sorted(one[kind]) == _sorted(other[kind])
    return bool(one == other)


def _sorted(entries: list[Any]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)
