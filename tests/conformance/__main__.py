"""`python -m tests.conformance FILE.jsonl[.gz] …`: allocator cases as data, answered in upstream 0.37's way.

A line for each failing case; at the end the features that skipped cases need, and `N passed, M failed, K skipped`. Exit status 1 on
failures or when nothing ran.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dra_operator.cel import default_compiler

from .problems import UnknownCase, read_cases
from .running import Tally, run


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
    compiler = default_compiler()
    total = Tally()
    for path in files:
        try:
            cases = list(read_cases(path))
        except UnknownCase as error:
            raise click.ClickException(f"{path}: {error}") from error
        tally = run(cases, compiler, click.echo, max_steps)
        total.passed += tally.passed
        total.failed += tally.failed
        total.skipped += tally.skipped
        total.needs |= tally.needs
    for line in total.lines():
        click.echo(line)
    sys.exit(1 if total.failed or not total.passed else 0)


if __name__ == "__main__":
    main()
