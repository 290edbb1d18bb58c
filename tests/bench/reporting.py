"""`python -m tests.bench.reporting` (part of `make bench`): what the reporter costs where nobody listens.

The same calls with the allocator as it is and with two that are made of its own modules (`unreported`): without the calls of the reporter, and without the
reasons for it as well. They take turns, call by call, each time in another order; each figure is the least CPU time
of all rounds, as whatever else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dra_operator.allocator
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution
from tests.conformance.problems import decode_problem

from . import hard, unreported
from .allocations import GPU, USUAL, problem
from .arguments import RESULTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from dra_operator.cel.compiler import Compiler

Json = dict[str, Any]

SHIPPED: Final = "silent"
GOAL: Final = 3.0
"""Percent that the silent reporter may cost."""

HARD: Final = (
    "32 of 31",
    "half of 64, one that is missing",
    "8 of 7 different, of 32",
    "17 partitions of two GPUs",
    "8 prioritized lists",
)

ROUNDS: Final = 9
"""Of each problem at least; a multiple of the number of variants, so that each comes first as often."""


def variants() -> dict[str, ModuleType]:
    """The allocator, and what it is compared with."""
    return {
        SHIPPED: dra_operator.allocator,
        "no calls": unreported.load(reasons=False)[0],
        "no reasons": unreported.load(reasons=True)[0],
    }


def problems() -> dict[str, Json]:
    """Usual ones, and hard ones of which there is time for many rounds."""
    found = dict(USUAL)
    for name in HARD:
        devices, claims, spec = hard.FAMILIES[name]
        found[name] = problem(hard.published(GPU, devices, **spec), *claims)
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        seconds: of CPU time that it took.
        outcome: the allocations, or that there are none.
        steps: of its search.
    """

    seconds: float
    outcome: object
    steps: int


def call(package: ModuleType, raw: Json, compiler: Compiler, *, warm: bool = False) -> Call:
    """A call on objects of its own: nothing is known of the devices, unless it is the second."""
    asked = decode_problem(raw)
    inputs = package.Inputs(
        features=asked.features,
        classes={each.metadata.name: each for each in asked.classes},
        slices=package.SliceList(asked.slices),
        allocated=asked.allocated,
        selectors=compiler,
    )
    allocator = package.Allocator(inputs, package.Options())
    outcome: object = None
    seconds = 0.0
    for _ in range(1 + warm):
        outcome = None
        began = time.thread_time()
        with suppress(NoSolution):
            outcome = allocator.allocate(asked.nodes[0], asked.claims)
        seconds = time.thread_time() - began
    return Call(seconds, outcome, allocator.steps)


def least(
    raw: Json, packages: Mapping[str, ModuleType], compiler: Compiler, seconds: float, *, warm: bool
) -> dict[str, float]:
    """The least microseconds of each variant, which take turns for so long, and `ROUNDS` times at least."""
    names = list(packages)
    found: dict[str, float] = dict.fromkeys(names, float("inf"))
    gc.collect()
    gc.disable()
    try:
        ends, number = time.perf_counter() + seconds, 0
        while number < ROUNDS or time.perf_counter() < ends:
            number += 1
            for name in names[number % len(names) :] + names[: number % len(names)]:
                taken = call(packages[name], raw, compiler, warm=warm)
                found[name] = min(found[name], taken.seconds * 1e6)
    finally:
        gc.enable()
    return found


def percent(found: Mapping[str, float], name: str) -> float:
    """What the shipped allocator takes more than a variant."""
    return (found[SHIPPED] / found[name] - 1) * 100


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write. Exit status 0, whatever comes out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="for each problem, cold and warm, all variants together"
    )
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "reporting.json", help="where the document is written"
    )
    arguments = parser.parse_args(argv)
    packages, compiler = variants(), default_compiler()
    others = [name for name in packages if name != SHIPPED]
    document: dict[str, Any] = {}
    heads = "".join(f"{name:>12}    cost" for name in others)
    print(f"silent reporter, least µs a call          {SHIPPED:>8}{heads}  (goal < {GOAL:g} %)")
    costs: dict[str, dict[str, list[float]]] = {}
    for name, raw in problems().items():
        for kind in ("cold", "warm"):
            found = least(raw, packages, compiler, arguments.seconds, warm=kind == "warm")
            document[f"{name}, {kind}"] = found
            for other in others:
                costs.setdefault(kind, {}).setdefault(other, []).append(percent(found, other))
            columns = "".join(f"{found[other]:>12.1f}{percent(found, other):>7.1f}%" for other in others)
            print(f"  {f'{name}, {kind}':<40}{found[SHIPPED]:>8.1f}{columns}", flush=True)
    for kind, by_other in costs.items():
        medians = {other: statistics.median(found) for other, found in by_other.items()}
        document[f"median cost in percent, {kind}"] = medians
        columns = "".join(f"{'':>12}{medians[other]:>7.1f}%" for other in others)
        print(f"  {f'median of the costs, {kind}':<40}{'':>8}{columns}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
