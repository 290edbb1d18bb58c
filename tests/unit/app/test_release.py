"""The command line of `dra-operator release`: wrong settings end it before anything is connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator.app.command import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        (["--settle-seconds=-1"], {}, "--settle-seconds"),
        ([], {"DRA_OPERATOR_SETTLE_SECONDS": "soon"}, "soon"),
        (["--wait-seconds=4000"], {}, "--wait-seconds: must be a number from 0 to 3600, not '4000'"),
        (["--wait-seconds=nan"], {}, "--wait-seconds: must be a number from 0 to 3600, not 'nan'"),
        (["--wait-seconds=inf"], {}, "--wait-seconds: must be a number from 0 to 3600, not 'inf'"),
        (["--wait-seconds=a while"], {}, "--wait-seconds: must be a number from 0 to 3600, not 'a while'"),
        (["--settle-seconds=nan"], {}, "--settle-seconds: must be a number from 0 to 3600, not 'nan'"),
        (["--context=prod"], {}, "--context"),
    ],
)
def test_wrong_settings_are_named(flags: list[str], environment: dict[str, str], words: str) -> None:
    done = CliRunner().invoke(main, ["release", *flags], env=environment)

    assert done.exit_code == 2
    assert words in done.output


def test_the_help_names_no_setting_without_effect() -> None:
    shown = CliRunner().invoke(main, ["release", "--help"]).output

    assert "--settle-seconds" in shown
    for flag in ("--sweep-seconds", "--mode", "--http-port", "--generate-claims"):
        assert flag not in shown


def test_it_takes_all_settings_of_the_operator(tmp_path: Path) -> None:
    """The removal runs it with the operator's file, variables and arguments; a wrong one is named as there."""
    file = tmp_path / "config.yaml"
    file.write_text("settleSeconds: 60\nsweepSeconds: 5\nmode: replace\n")
    arguments = [f"--config={file}", "--http-port=8080", "--generate-claims=always", "--max-writes=0"]

    done = CliRunner().invoke(main, ["release", *arguments], env={"DRA_OPERATOR_HTTP_HOST": "::"})

    assert done.exit_code == 2
    assert "--max-writes: must be" in done.output


def test_the_file_of_the_operator_sets_the_settle_time(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("settleSeconds: 60\nlogFormat: json\n")

    with main.commands["release"].make_context("release", [f"--config={file}"]) as context:
        assert context.params["settle_seconds"] == 60.0
