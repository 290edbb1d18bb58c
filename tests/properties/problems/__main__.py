"""`python -m tests.properties.problems`: what the problems are like, by asking upstream's allocator (tests/oracle)."""

from __future__ import annotations

import click

from tests.oracle.upstream import Upstream

from . import problem
from .coverage import lines, measure


@click.command(help=__doc__)
@click.option("--count", default=5_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Make, ask, tell."""
    upstream = Upstream.built()
    found = measure(
        [problem(seed, number) for number in range(count)], lambda asked: upstream.solve(asked, timeout=2)
    )
    for line in lines(found):
        click.echo(line)


if __name__ == "__main__":
    main()
