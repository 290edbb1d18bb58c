"""A command with all settings, run as the operator's own is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.testing import CliRunner

from dra_operator.settings import SetCommand, Settings, build, options, origins

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from click.testing import Result

FOUND: list[tuple[Settings, dict[str, str]]] = []


@click.command(cls=SetCommand)
@options()
def command(**flags: Any) -> None:
    """Read the settings."""
    places = origins(click.get_current_context())
    FOUND.append((build(places=places, **flags), places))


def run(*arguments: str, env: Mapping[str, str] | None = None) -> Result:
    """What the command says."""
    return CliRunner().invoke(command, arguments, env=env, catch_exceptions=False)


def read(*arguments: str, env: Mapping[str, str] | None = None) -> tuple[Settings, dict[str, str]]:
    """The settings, and where those come from that are not at their defaults."""
    result = run(*arguments, env=env)
    assert result.exit_code == 0, result.output
    return FOUND.pop()


def complaint(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """The error text of settings that are wrong, which is exit status 2."""
    result = run(*arguments, env=env)
    assert result.exit_code == 2, result.output
    return result.output.partition("Error: ")[2].strip()


def written(folder: Path, text: str | bytes) -> str:
    """A settings file with this text; its path."""
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)
