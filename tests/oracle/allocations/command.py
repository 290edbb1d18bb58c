"""`python -m tests.oracle allocator`: random problems, answered by our allocator and by upstream's own code.

Compared are the outcome, the results (all that is written, in order; amounts by value), and the scope of errors; ours answers as 0.37 does. Allocations of
ours must break no rule of the verifier; where upstream gives up, there is nothing else to compare. Each is answered
twice: as the product does, and by a search that is pruned from its first step on. Problems that hang on features that are not built are
counted apart. More search steps than upstream's are a difference. Some problems are solved by trying everything as well, or by a model where that is too much. Exit status 1 on any difference.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from tests.oracle.found import Found
from tests.oracle.upstream import Upstream
from tests.properties.problems import TOPICS

from .batches import PROBLEMS, run
from .differences import KINDS
from .smaller import smallest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .differences import Difference

MOST: Final = 2
"""Examples of one signature."""


@click.command(help=__doc__)
@click.option("--count", default=10_000, show_default=True, help="Problems.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same problems.")
@click.option(
    "--processes",
    default=1,
    show_default=True,
    help="How many work on it; upstream's program runs beside each.",
)
@click.option(
    "--show", default=5, show_default=True, help="Differences that are told in full, each made small first."
)
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(sorted(TOPICS)),
    help="A topic that all problems have besides; `large` makes long searches.",
)
def main(count: int, seed: int, processes: int, show: int, also: tuple[str, ...]) -> None:
    """Compare, and tell."""
    upstream = Upstream.built()
    started = time.monotonic()
    total: Found[Difference] = Found()
    work = partial(run, upstream, seed, also=frozenset(also))
    for found in _batches(work, processes, -(-count // PROBLEMS)):
        total.add(found)
    seconds = time.monotonic() - started
    for difference in _examples(total.differences)[:show]:
        click.echo("\n".join(smallest(upstream, difference).lines()))
    for line in _tally(total.counts, seconds):
        click.echo(line)
    sys.exit(1 if total.differences else 0)


def _batches(
    work: Callable[[int], Found[Difference]], processes: int, many: int
) -> Iterator[Found[Difference]]:
    if processes == 1:
        yield from map(work, range(many))
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(work, range(many))


def _examples(differences: list[Difference]) -> list[Difference]:
    """Some of each signature, worst first."""
    taken: Counter[str] = Counter()
    found = []
    for each in sorted(differences, key=lambda each: list(KINDS).index(each.kind)):
        taken[each.signature] += 1
        if taken[each.signature] <= MOST:
            found.append(each)
    return found


def _tally(counts: Counter[str], seconds: float) -> Iterator[str]:
    def named(prefix: str) -> list[tuple[str, int]]:
        return [
            (name.removeprefix(prefix), number)
            for name, number in counts.most_common()
            if name.startswith(prefix)
        ]

    yield "topics: " + ", ".join(f"{number} {name}" for name, number in named("topic "))
    yield "upstream: " + ", ".join(f"{number} {name}" for name, number in named("outcome "))
    for name, number in named("not built "):
        yield f"{number:8} hang on what is not built: {name}"
    for name, number in named("fault "):
        yield f"{number:8} known and left: {name}"
    for name, number in named("signature "):
        yield f"{number:8} {name}"
    for kind, words in KINDS.items():
        if counts[f"difference {kind}"]:
            yield f"{counts[f'difference {kind}']:8} {kind}: {words}"
    yield (
        f"search steps: ours {counts['our steps']}, {counts['our steps, pruned at once']} if pruned at once, upstream's {counts[STEPS]}; more of them, pruned at once, to an error of mode All: {counts['late']} times"
    )
    yield (
        f"{counts['tried']} problems were also solved by trying everything, {counts['proved']} by a model where that was too much, {counts['gave up, and proved']} of them such that upstream "
        f"gave up on; it gave up on {counts['gave up']} more for which nothing shows that we are right"
    )
    yield (
        f"{counts['problems']} problems in {seconds:.0f} s, {counts['problems'] - counts['not built']} of them compared: "
        f"{sum(number for _, number in named('difference '))} differences"
    )


STEPS: Final = "upstream's steps"
