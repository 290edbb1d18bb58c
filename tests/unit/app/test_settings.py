"""Flags and environment become settings, or an error that names the flag."""

from __future__ import annotations

import math
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dra_operator.app.command import main
from dra_operator.errors import InvalidSettings
from dra_operator.settings import OPTIONS, RANGES, GenerateClaims, Settings, build, options


def parse(*arguments: str, env: dict[str, str] | None = None) -> Settings:
    found: list[Settings] = []

    @click.command
    @options
    def command(**flags: Any) -> None:
        found.append(build(**flags))

    result = CliRunner().invoke(command, arguments, env=env, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def test_without_flags_the_defaults_hold() -> None:
    assert parse() == Settings()


def test_flags_win_over_the_environment() -> None:
    env = {"DRA_OPERATOR_SETTLE_SECONDS": "3", "DRA_OPERATOR_HTTP_PORT": "9000"}
    settings = parse("--http-port", "9001", env=env)
    assert (settings.settle_seconds, settings.http_port) == (3.0, 9001)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), GenerateClaims.NEVER),
        (("--mode", "replace"), GenerateClaims.ALWAYS),
        (("--generate-claims", "always"), GenerateClaims.ALWAYS),
    ],
)
def test_who_generates_claims_follows_the_mode(arguments: tuple[str, ...], expected: GenerateClaims) -> None:
    assert parse(*arguments).generate_claims is expected


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ({"mode": "replace", "generate_claims": "never"}, "--generate-claims"),
        ({"settle_seconds": -1.0}, "--settle-seconds"),
        ({"settle_seconds": math.nan}, "--settle-seconds"),
        ({"settle_seconds": math.inf}, "--settle-seconds"),
        ({"sweep_seconds": 0.0}, "--sweep-seconds"),
        ({"sweep_seconds": math.nan}, "--sweep-seconds"),
        ({"sweep_seconds": math.inf}, "--sweep-seconds"),
        ({"max_writes": 0}, "--max-writes"),
        ({"max_writes": 100_000_000}, "--max-writes"),
        ({"http_port": 70_000}, "--http-port"),
        ({"context": "prod"}, "--context"),
    ],
)
def test_settings_that_make_no_sense_name_their_flag(flags: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        build(**flags)
    assert caught.value.path == path


def test_ranges_are_told_in_the_help() -> None:
    @click.command
    @options
    def command(**_: Any) -> None: ...

    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    for low, high in RANGES.values():
        assert f"{low} to {high}." in text


def test_not_a_number_is_a_wrong_setting_and_ends_with_status_2() -> None:
    """It would switch the settle time off."""
    result = CliRunner().invoke(main, ["run", "--settle-seconds", "nan"])

    assert result.exit_code == 2
    assert "--settle-seconds: must lie between 0 and 3600" in result.output


def test_every_setting_has_a_flag() -> None:
    @click.command
    @options
    def command(**_: Any) -> None: ...

    assert {parameter.name for parameter in command.params} == set(Settings.__dataclass_fields__)
    assert len(OPTIONS) == len(Settings.__dataclass_fields__)
