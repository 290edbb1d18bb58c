"""Flags and environment become settings, or an error that names the flag."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dra_operator.errors import InvalidSettings
from dra_operator.settings import BY_NAME, TABLE, GenerateClaims, Settings, build, chosen, strays
from dra_operator.settings.table import plain

from .reading import command, complaint, read, run


def test_without_flags_the_defaults_hold() -> None:
    assert read() == (Settings(), {})


def test_flags_win_over_the_environment() -> None:
    env = {"DRA_OPERATOR_SETTLE_SECONDS": "3", "DRA_OPERATOR_HTTP_PORT": "9000"}
    settings, places = read("--http-port", "9001", env=env)
    assert (settings.settle_seconds, settings.http_port) == (3.0, 9001)
    assert places == {"settle_seconds": "DRA_OPERATOR_SETTLE_SECONDS", "http_port": "--http-port"}


def test_an_empty_variable_is_none() -> None:
    assert read(env={setting.variable: "" for setting in TABLE}) == (Settings(), {})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), GenerateClaims.NEVER),
        (("--mode", "replace"), GenerateClaims.ALWAYS),
        (("--generate-claims", "always"), GenerateClaims.ALWAYS),
    ],
)
def test_who_generates_claims_follows_the_mode(arguments: tuple[str, ...], expected: GenerateClaims) -> None:
    assert read(*arguments)[0].generate_claims is expected


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
        ({"http_host": ""}, "--http-host"),
        ({"kubeconfig": ""}, "--kubeconfig"),
        ({"context": "prod"}, "--context"),
    ],
)
def test_settings_that_make_no_sense_name_their_flag(flags: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        build(**flags)
    assert caught.value.path == path


def test_a_wrong_setting_ends_with_status_2_and_names_where_it_comes_from() -> None:
    assert (
        complaint("--settle-seconds", "nan") == "--settle-seconds: must be a number from 0 to 3600, not 'nan'"
    )
    assert complaint(env={"DRA_OPERATOR_MAX_WRITES": "0"}).startswith(
        "DRA_OPERATOR_MAX_WRITES: must be a whole number from 1 to 1000"
    )
    assert complaint(env={"DRA_OPERATOR_HTTP_PORT": "http"}) == (
        "DRA_OPERATOR_HTTP_PORT: must be a whole number from 0 to 65535, not 'http'"
    )
    assert complaint("--mode", "both") == "--mode: must be one of cooperate, replace, not 'both'"
    assert complaint(env={"DRA_OPERATOR_CONTEXT": "prod"}).startswith("DRA_OPERATOR_CONTEXT: names a context")


def test_each_setting_is_one_row_one_field_one_flag() -> None:
    names = [setting.name for setting in TABLE]
    assert names == list(Settings.__dataclass_fields__)
    assert names == [parameter.name for parameter in command.params if parameter.name != "config"]


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
def test_a_default_lies_in_its_own_range(setting: Any) -> None:
    if setting.default is not None:
        assert setting.value(setting.default, setting.flag, strict=True) == setting.default


def test_the_names_of_a_setting_follow_from_its_field() -> None:
    setting = BY_NAME["settle_seconds"]
    assert (setting.flag, setting.variable, setting.key) == (
        "--settle-seconds",
        "DRA_OPERATOR_SETTLE_SECONDS",
        "settleSeconds",
    )
    assert (setting.range, setting.default) == ("a number from 0 to 3600", 15.0)
    assert BY_NAME["log_level"].range == "one of debug, info, warning, error"


def test_what_was_chosen_is_told_with_its_source() -> None:
    settings, places = read("--max-writes", "4", env={"DRA_OPERATOR_MODE": "replace"})
    assert chosen(settings, places) == {
        "mode": "replace (DRA_OPERATOR_MODE)",
        "maxWrites": "4 (--max-writes)",
    }


def test_the_help_fits_a_terminal_and_tells_each_setting_with_its_range_and_default() -> None:
    output = run("--help").output
    assert max(map(len, output.splitlines())) <= 80
    text = " ".join(output.replace("-\n", "-").split())
    for setting in TABLE:
        assert setting.flag in text
        words = (
            setting.unset or f"{setting.default:g}"
            if setting.type is float
            else setting.unset or plain(setting.default)
        )
        assert f"Default: {words}." in text.replace("- ", "-")
        if setting.type is not str:
            assert setting.range[1:] + "." in text
    assert "Usage: command [OPTIONS]" in text


def test_the_help_has_a_heading_for_each_group() -> None:
    lines = run("--help").output.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    groups = list(dict.fromkeys(setting.group.value for setting in TABLE))
    assert headings == [*(f"{group}:" for group in groups), "Other options:"]


def test_a_misspelt_variable_is_told_and_those_that_kubernetes_makes_are_not() -> None:
    """A Service named dra-operator gives pods of its namespace variables with our prefix."""
    services = {
        f"DRA_OPERATOR_{name}" for name in ("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_8080_TCP_ADDR")
    }
    ours = {setting.variable for setting in TABLE} | {"DRA_OPERATOR_CONFIG", "HOME"}
    assert strays(services | ours) == {}
    assert strays(["DRA_OPERATOR_SETLE_SECONDS", "DRA_OPERATOR_KUBE_CONFIG"]) == {
        "DRA_OPERATOR_SETLE_SECONDS": "DRA_OPERATOR_SETTLE_SECONDS",
        "DRA_OPERATOR_KUBE_CONFIG": "DRA_OPERATOR_KUBECONFIG",
    }


@pytest.mark.parametrize(
    ("given", "flag", "words"),
    [
        ({"lease_seconds": 5}, "--renew-seconds", r"less than leaseSeconds \(5\)"),
        ({"retry_seconds": 6}, "--retry-seconds", r"at most half of renewSeconds \(10\)"),
    ],
)
def test_the_times_of_an_election_fit_into_each_other(given: Any, flag: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=words) as error:
        build(**given)
    assert error.value.path == flag


@pytest.mark.parametrize(("word", "value"), [("true", True), ("false", False)])
def test_yes_and_no_are_words(word: str, *, value: bool) -> None:
    assert build(leader_elect=word).leader_elect is value
    assert BY_NAME["leader_elect"].range == "one of true, false"
