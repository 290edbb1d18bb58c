"""Completion by shells: `kubectl dra completion SHELL` for `kubectl-dra`, and `kubectl_complete-dra`, which kubectl itself asks for `kubectl dra`.

click knows the commands and their flags; nothing here asks a cluster.
"""

from __future__ import annotations

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

PROGRAM: Final = "kubectl-dra"
VARIABLE: Final = "_KUBECTL_DRA_COMPLETE"
"""Of the environment, by which click's scripts ask; its name follows from that of the program."""

NO_FILES, FILES = 4, 0
"""What kubectl is told to do beside: nothing, or to complete names of files (directives of cobra, whose completion kubectl uses)."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that has a shell complete `kubectl-dra`.

    For `kubectl dra`, kubectl's own completion asks the program kubectl_complete-dra, which is installed beside kubectl-dra: nothing more is needed.
    """
    found = get_completion_class(shell)
    assert found is not None
    command = click.get_current_context().find_root().command
    click.echo(found(command, {}, PROGRAM, VARIABLE).source())


def complete() -> None:
    """Answer kubectl: the words after `kubectl dra`, the last of them unfinished, in; what it may become, one a line, and a directive out."""
    from .main import main

    *words, unfinished = sys.argv[1:] or [""]
    items = ShellComplete(main, {}, PROGRAM, VARIABLE).get_completions(words, unfinished)
    for item in items:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{FILES if any(item.type != 'plain' for item in items) else NO_FILES}")
