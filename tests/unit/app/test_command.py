"""The commands as a whole: what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator import __version__
from dra_operator.app.command import main

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="dra-operator")


def test_without_a_command_it_lists_them() -> None:
    output = run().output
    assert "Commands:" in output
    assert "Run the operator until SIGTERM or SIGINT." in output


def test_the_version_is_one_line() -> None:
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"dra-operator, version {__version__}\n")


@pytest.mark.parametrize("command", list(main.commands))
def test_the_help_of_each_command_fits_a_terminal(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    for text in ("Exit status:", "Connection to the API server:", "Log:", "--config FILE"):
        assert text in result.output


@pytest.mark.parametrize("command", list(main.commands))
def test_a_wrong_setting_is_status_2_and_names_the_command_to_ask(command: str, tmp_path: Path) -> None:
    """Also one that another command reads: they may share the file."""
    path = tmp_path / "config.yaml"
    path.write_text("maxWrites: 0")
    result = run(command, "--config", str(path))
    assert result.exit_code == 2
    assert f"Try 'dra-operator {command} --help' for help." in result.output
    assert f"Error: {path}: maxWrites: must be a whole number from 1 to 1000, not 0" in result.output
