"""A bench's results for people and for machines: a table, and a JSON document with a versioned schema.

Pure but for `write`. The document has everything that is needed to run the same again and to judge a difference.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .figures import TABLE, spreads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .figures import Figures, Spread

SCHEMA = "dra-operator.io/bench/v1"
"""Raised when a reader of older documents would misread a new one."""

PACKAGES = ("dra-operator", "aiohttp", "kopf", "kubernetes-asyncio", "msgspec")
"""Their versions go into the document."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should be: printed beside it, never asserted."""

    value: float
    at_least: bool

    def __str__(self) -> str:
        """As it is printed."""
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Result:
    """What a bench found.

    Attributes:
        bench: its name.
        title: one line for people: what was done.
        parameters: all that was chosen.
        machine: see `processes.machine`.
        runs: figures by who served the pods, a list of runs each.
        goals: by figure.
        ratios: by text, of pairs of runs.
        ratio_goals: by the same text.
        versions: of what is no Python package.
    """

    bench: str
    title: str
    parameters: Mapping[str, Any]
    machine: Mapping[str, Any]
    runs: Mapping[str, Sequence[Figures]]
    goals: Mapping[str, Goal] = field(default_factory=dict)
    ratios: Mapping[str, Spread] = field(default_factory=dict)
    ratio_goals: Mapping[str, Goal] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def document(result: Result) -> dict[str, Any]:
    """The JSON document."""
    return {
        "schema": SCHEMA,
        "bench": result.bench,
        "parameters": dict(result.parameters),
        "versions": {name: version(name) for name in PACKAGES} | dict(result.versions),
        "machine": dict(result.machine),
        "units": {key: TABLE[key].unit for key in TABLE if any(key in run for run in _all(result))},
        "runs": {name: [dict(run) for run in runs] for name, runs in result.runs.items()},
        "summary": {
            name: {key: asdict(spread) for key, spread in spreads(runs).items()}
            for name, runs in result.runs.items()
        },
        "ratios": {name: asdict(spread) for name, spread in result.ratios.items()},
        "goals": {key: goal.value for key, goal in {**result.goals, **result.ratio_goals}.items()},
    }


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the document; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def table(result: Result) -> str:
    """The table for people."""
    lines = [result.title]
    for name, runs in result.runs.items():
        head = f"{name}, {len(runs)} run{'s' if len(runs) > 1 else ''}"
        lines += ["", f"{head:<52}{'unit':>8}{'min':>10}{'median':>10}{'max':>10}  goal"]
        for key, spread in spreads(runs).items():
            row = TABLE[key]
            lines.append(_line(row.text, row.unit, spread, result.goals.get(key)))
    if result.ratios:
        lines += ["", f"{'ratios, run by run':<60}{'min':>10}{'median':>10}{'max':>10}  goal"]
        lines += [
            _line(text, "", spread, result.ratio_goals.get(text)) for text, spread in result.ratios.items()
        ]
    return "\n".join(lines)


def _line(text: str, unit: str, spread: Spread, goal: Goal | None) -> str:
    numbers = "".join(f"{_short(number):>10}" for number in (spread.least, spread.median, spread.most))
    return f"  {text:<50}{unit:>8}{numbers}  {goal or ''}".rstrip()


def _short(number: float) -> str:
    """Three figures that count."""
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _all(result: Result) -> list[Figures]:
    return [run for runs in result.runs.values() for run in runs]
