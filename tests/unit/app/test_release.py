"""The command line of `dra-operator release`: wrong settings end it before anything is connected."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from dra_operator.app.command import main


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
