"""`python -m tests.oracle recorded FILE.jsonl[.gz] …`: whether upstream's allocator, asked now, says what was recorded once.

Lines are those of the conformance files: a `problem` with its `result`, or a case of upstream's table with the answer of each copy in `actual`. It
judges the Go program, not our allocator. Exit status 1 on any difference, or when nothing was compared.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dra_operator.quantity import NANO
from tests.conformance.problems import read_lines

from .allocations.answers import canonical
from .upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

COPIES: Final = ("incubating", "experimental")
"""Those of upstream's copies whose answers do not change from run to run."""

COMPARED: Final = ("outcome", "perNode", "allocateOneInvocations", "results")

INPUTS: Final = ("features", "node", "classes", "claims", "slices", "allocated")


def pairs(name: str, raw: Json) -> Iterator[tuple[Json, Json]]:
    """Problems of a line, each with the recorded answer; none for lines about something else."""
    if "problem" in raw and "result" in raw:
        yield raw["problem"], raw["result"]
    for copy in COPIES:
        if said := raw.get("actual", {}).get(copy):
            named = {"id": f"{raw.get('id', name)} {copy}", "channel": copy}
            yield {**named, **{field: raw[field] for field in INPUTS}}, said


def difference(recorded: Json, said: Json) -> str:
    """The first thing that differs; empty when nothing does. Texts of errors are not compared: those of classes are the lister's own."""
    for field in COMPARED:
        before, now = canonical(recorded.get(field)), canonical(said.get(field))
        if before not in (now, _misprinted(now)) and (before or now):
            return f"{field}: recorded {before}, now {now}"
    return ""


def _misprinted(value: Any) -> Any:
    """As upstream prints it: multiples of 10^21 lose that factor (oracle 7 no. 1). The program gives the amount itself."""
    if isinstance(value, dict):
        return {key: _misprinted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_misprinted(each) for each in value]
    is_amount = isinstance(value, int) and value and value % (10**21 * NANO) == 0
    return value // 10**21 if is_amount else value


@click.command(help=__doc__)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def main(files: tuple[Path, ...]) -> None:
    """Ask, compare, tell."""
    asked = [pair for path in files for name, raw in read_lines(path) for pair in pairs(name, raw)]
    answers = Upstream.built().solve(problem for problem, _ in asked)
    wrong = 0
    for (problem, recorded), said in zip(asked, answers, strict=True):
        if found := difference(recorded, said):
            wrong += 1
            click.echo(f"{problem.get('id')}: {found}")
    click.echo(f"{len(asked) - wrong} as recorded, {wrong} not")
    sys.exit(1 if wrong or not asked else 0)
