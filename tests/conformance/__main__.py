"""`python -m tests.conformance FILE.jsonl[.gz] …`: cases as data, answered in upstream 0.37's way: of the allocator, CEL, quantities.

A line for each failing case; at the end what skipped cases need, and `N passed, M failed, K skipped`. Exit status 1 on
failures or when nothing ran.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .lines import Judge
from .problems import UnknownCase, read_lines


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
            try:
                judge.take(name, raw)
            except UnknownCase as error:
                raise click.ClickException(f"{path}: {error}") from error
    for line in judge.tally.lines():
        click.echo(line)
    sys.exit(1 if judge.tally.failed or not judge.tally.passed else 0)


if __name__ == "__main__":
    main()
