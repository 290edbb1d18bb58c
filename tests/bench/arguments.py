"""Flags that both benches have, and what is common to their commands."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .workload import Size, Way

RESULTS = Path(__file__).parents[2] / "bench-results"
FOREIGN = "DRA_OPERATOR_"
"""Settings of the caller's own operator, which must not reach the one that is measured."""


def parser(bench: str, text: str | None, size: Size, repeat: int) -> argparse.ArgumentParser:
    """A parser with the common flags."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
    )
    made.add_argument("--pods", type=int, default=size.pods, help="created at once, one device each")
    made.add_argument("--nodes", type=int, default=size.nodes, help="each publishes one slice")
    made.add_argument("--devices", type=int, default=size.devices, help="on each node")
    made.add_argument("--repeat", type=int, default=repeat, help="runs")
    ways = [Way.GATE.value, Way.SCHEDULER.value]
    made.add_argument("--way", choices=ways, default=ways[0], help="how pods come to the operator")
    made.add_argument("--clients", type=int, default=16, help="pods that are created at the same time")
    made.add_argument("--timeout", type=float, default=300.0, help="seconds in which all have to be placed")
    made.add_argument(
        "--operator-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="given to dra-operator run after those of the bench, as --operator-flag=--max-writes=32; may be repeated",
    )
    made.add_argument(
        "--json", type=Path, default=RESULTS / f"{bench}.json", help="where the document is written"
    )
    return made


def size_of(arguments: argparse.Namespace, made: argparse.ArgumentParser) -> Size:
    """The size that was asked for; ends the program when it makes no sense."""
    size = Size(arguments.pods, arguments.nodes, arguments.devices)
    problem = size.problem()
    if problem is None and min(arguments.repeat, arguments.clients) < 1:
        problem = "--repeat and --clients must be at least 1"
    if problem is not None:
        made.error(problem)
    return size


def forget_settings() -> None:
    """Take the caller's own settings out of the environment that the operator inherits."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
