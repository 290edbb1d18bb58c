"""`python -m tests.conformance FILE.jsonl[.gz] …`: cases as data, of all kinds, answered in upstream 0.37's way.

A line for each failing case, such as one of the allocator that takes more search steps than upstream took; at the end what skipped cases
need, search steps beside upstream's, looks at devices, and `N passed, M failed, K skipped`. Exit status 1 on failures or when nothing ran.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .lines import Judge
from .problems import read_lines


@click.command(help=__doc__)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--max-steps",
    type=int,
    default=None,
    help="Search steps per case; the product's default, or what upstream took, when not given.",
)
def main(files: tuple[Path, ...], max_steps: int | None) -> None:
    """Run the cases of all files."""
    judge = Judge(click.echo, max_steps)
    for path in files:
        for name, raw in read_lines(path):
            judge.take(name, raw)
    for line in judge.tally.lines():
        click.echo(line)
    sys.exit(1 if judge.tally.failed or not judge.tally.passed else 0)


if __name__ == "__main__":
    main()
