"""`python -m tests.oracle cel|allocator|recorded`: our engines against upstream's own code; README.md has the details."""

from __future__ import annotations

import click

from . import recorded, selectors
from .allocations import command


@click.group(help=__doc__)
def main() -> None:
    """Ask both, and compare."""


main.add_command(selectors.main, "cel")
main.add_command(command.main, "allocator")
main.add_command(recorded.main, "recorded")

if __name__ == "__main__":
    main()
