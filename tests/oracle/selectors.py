"""`python -m tests.oracle cel`: random expressions on random devices, answered by our engine and by upstream's own code.

Compared are: accepted or refused, value, failure or not, and estimated and actual cost where our engine tells them. Expressions on which upstream
disagrees with itself, because Go's maps have no order, are left out and counted. Exit status 1 on any difference.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from .batches import run, smallest
from .differences import KINDS
from .faults import FAULTS
from .found import Found
from .upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .differences import Difference

MOST: Final = 4
"""Examples of one signature."""


@click.command(help=__doc__)
@click.option("--count", default=200_000, show_default=True, help="Comparisons: an expression on a device.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same expressions.")
@click.option(
    "--processes",
    default=1,
    show_default=True,
    help="How many work on it; upstream's program runs beside each.",
)
@click.option(
    "--show", default=20, show_default=True, help="Differences that are told in full, each made small first."
)
def main(count: int, seed: int, processes: int, show: int) -> None:
    """Compare, and tell."""
    upstream = Upstream.built()
    started = time.monotonic()
    total: Found[Difference] = Found()
    for found in _batches(upstream, seed, processes):
        total.add(found)
        if total.counts["comparisons"] >= count:
            break
    seconds = time.monotonic() - started
    for difference in _examples(upstream, total.differences, show):
        click.echo("\n".join(difference.lines()))
    for line in _tally(total, seconds):
        click.echo(line)
    sys.exit(1 if total.differences else 0)


def _batches(upstream: Upstream, seed: int, processes: int) -> Iterator[Found[Difference]]:
    work = partial(run, upstream, seed)
    number = 0
    if processes == 1:
        while True:
            yield work(number)
            number += 1
    with ProcessPoolExecutor(processes) as pool:
        while True:
            yield from pool.map(work, range(number, number + 4 * processes))
            number += 4 * processes


def _examples(upstream: Upstream, differences: list[Difference], show: int) -> list[Difference]:
    """One of each signature at least, then more; those that turn out the same are told once."""
    first: dict[str, Difference] = {}
    order = sorted(differences, key=lambda each: list(KINDS).index(each.kind))
    by_signature: dict[str, list[Difference]] = {}
    for each in order:
        by_signature.setdefault(each.signature, []).append(each)
    rounds = [group[index] for index in range(MOST) for group in by_signature.values() if len(group) > index]
    for each in rounds[:show]:
        small = smallest(upstream, each)
        first.setdefault(f"{small.kind} {small.question['expression']}", small)
    return list(first.values())


def _tally(total: Found[Difference], seconds: float) -> Iterator[str]:
    counts = total.counts
    for name, number in counts.most_common():
        if name.startswith("signature "):
            yield f"{number:8} {name.removeprefix('signature ')}"
    for fault in FAULTS:
        if counts[f"fault {fault.name}"]:
            yield f"{counts[f'fault {fault.name}']:8} known and left: {fault.name}: {fault.reason}"
    for kind, words in KINDS.items():
        if counts[f"difference {kind}"]:
            yield f"{counts[f'difference {kind}']:8} {kind}: {words}"
    yield (
        f"{counts['comparisons']} comparisons of {counts['expressions']} expressions in {seconds:.0f} s: "
        f"{counts['refused']} are refused, {counts['failed']} evaluations fail; left out: {counts['unstable']} on which upstream disagrees with itself"
    )
    yield f"{sum(counts[f'difference {kind}'] for kind in KINDS)} differences"
