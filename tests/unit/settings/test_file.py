"""The settings file: what wins over it, and what is said about each way in which it can be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from dra_operator.placement import NodeScore
from dra_operator.settings import TABLE, GenerateClaims, Mode, ReplaceRefused, Settings, chosen

from .reading import complaint, read, written

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = {
    "kubeconfig": "/etc/kubeconfig",
    "context": "prod",
    "mode": "replace",
    "generateClaims": "always",
    "nodeScore": "pack",
    "featureGates": "DRAListTypeAttributes=true",
    "leaderElect": False,
    "leaseNamespace": "elsewhere",
    "leaseSeconds": 30,
    "renewSeconds": 20,
    "retrySeconds": 0.5,
    "settleSeconds": 20,
    "sweepSeconds": 0.5,
    "bindingTimeoutSeconds": 30,
    "reportSeconds": 60,
    "replaceRefused": "owned",
    "refusedSeconds": 40,
    "maxWrites": 4,
    "httpHost": "127.0.0.1",
    "httpPort": 0,
    "metricsByPool": True,
    "metricsOfClaims": True,
    "webhookCertificates": "/etc/webhook",
    "webhookPort": 0,
    "logLevel": "debug",
    "logFormat": "json",
}


def test_every_setting_can_stand_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, yaml.safe_dump(WHOLE))
    settings, places = read("--config", path)
    assert settings == Settings(
        kubeconfig="/etc/kubeconfig",
        context="prod",
        mode=Mode.REPLACE,
        generate_claims=GenerateClaims.ALWAYS,
        node_score=NodeScore.PACK,
        feature_gates="DRAListTypeAttributes=true",
        leader_elect=False,
        lease_namespace="elsewhere",
        lease_seconds=30.0,
        renew_seconds=20.0,
        retry_seconds=0.5,
        settle_seconds=20.0,
        sweep_seconds=0.5,
        binding_timeout_seconds=30.0,
        report_seconds=60.0,
        replace_refused=ReplaceRefused.OWNED,
        refused_seconds=40.0,
        max_writes=4,
        http_host="127.0.0.1",
        http_port=0,
        metrics_by_pool=True,
        metrics_of_claims=True,
        webhook_certificates="/etc/webhook",
        webhook_port=0,
        log_level="debug",
        log_format="json",
    )
    assert places == {setting.name: f"{path}: {setting.key}" for setting in TABLE}
    assert set(WHOLE) == {setting.key for setting in TABLE}


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "maxWrites: 2\nsettleSeconds: 2\nsweepSeconds: 2\n")
    env = {
        "DRA_OPERATOR_CONFIG": path,
        "DRA_OPERATOR_MAX_WRITES": "3",
        "DRA_OPERATOR_SETTLE_SECONDS": "3",
    }
    settings, places = read("--max-writes", "4", env=env)
    assert (settings.max_writes, settings.settle_seconds, settings.sweep_seconds) == (4, 3.0, 2.0)
    assert settings.http_port == Settings().http_port
    assert chosen(settings, places) == {
        "settleSeconds": "3.0 (DRA_OPERATOR_SETTLE_SECONDS)",
        "sweepSeconds": f"2.0 ({path})",
        "maxWrites": "4 (--max-writes)",
    }


def test_the_flag_names_the_file_before_the_environment_does(tmp_path: Path) -> None:
    path = written(tmp_path, "maxWrites: 2\n")
    settings, _ = read("--config", path, env={"DRA_OPERATOR_CONFIG": "nowhere"})
    assert settings.max_writes == 2


def test_a_file_may_say_that_it_sets_nothing(tmp_path: Path) -> None:
    assert read("--config", written(tmp_path, "{}  # nothing")) == (Settings(), {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("settleSecond: 5", "PATH: settleSecond: is no setting; did you mean settleSeconds?"),
        ("settle-seconds: 5", "PATH: settle-seconds: is no setting; did you mean settleSeconds?"),
        ("SETTLE_SECONDS: 5", "PATH: SETTLE_SECONDS: is no setting; did you mean settleSeconds?"),
        ("frobnicate: 5", "PATH: frobnicate: is no setting; there are bindingTimeoutSeconds, context,"),
        ("1: 5", "PATH: 1: is no setting; there are bindingTimeoutSeconds,"),
        ("maxWrites: many", "PATH: maxWrites: must be a whole number from 1 to 1000, not 'many'"),
        ("maxWrites: '4'", "PATH: maxWrites: must be a whole number from 1 to 1000, not '4'"),
        ("maxWrites: 4.5", "PATH: maxWrites: must be a whole number from 1 to 1000, not 4.5"),
        ("maxWrites: true", "PATH: maxWrites: must be a whole number from 1 to 1000, not true"),
        ("maxWrites: [4]", "PATH: maxWrites: must be a whole number from 1 to 1000, not [4]"),
        ("maxWrites:", "PATH: maxWrites: must be a whole number from 1 to 1000, not empty"),
        ("maxWrites: 0", "PATH: maxWrites: must be a whole number from 1 to 1000, not 0"),
        ("settleSeconds: .nan", "PATH: settleSeconds: must be a number from 0 to 3600, not nan"),
        ("settleSeconds: .inf", "PATH: settleSeconds: must be a number from 0 to 3600, not inf"),
        ("mode: on", "PATH: mode: must be one of cooperate, replace, not true"),
        ("logFormat: xml", "PATH: logFormat: must be one of text, json, not 'xml'"),
        ("httpHost: ''", "PATH: httpHost: must be text, not ''"),
        ("context: prod", "PATH: context: names a context of a kubeconfig"),
        (
            "mode: replace\ngenerateClaims: never",
            "PATH: generateClaims: mode replace has nobody else to generate claims; use always",
        ),
        ("maxWrites: 1\nmode: replace\nmaxWrites: 2", "PATH: maxWrites: stands in lines 1 and 3; remove one"),
        ("", "PATH: holds no settings; write {} if none are wanted"),
        ("# maxWrites: 4\n", "PATH: holds no settings"),
        ("[maxWrites]", "PATH: must be a mapping, a line for each setting"),
        ("maxWrites", "PATH: must be a mapping, a line for each setting"),
        ("maxWrites: 4\nmode: [", "PATH, line 2: is not YAML: "),
        ("maxWrites: 4\n---\nmode: replace", "PATH, line 2: is not YAML: "),
        ("maxWrites: *many", "PATH, line 1: is not YAML: "),
        ("maxWrites: 2026-13-32", "PATH: is not YAML: "),
        ("maxWrites: \x01", "PATH: is not YAML: "),
        ("maxWrites: !!python/object/apply:os.abort []", "PATH, line 1: is not YAML: "),
        ("[" * 50_000, "PATH: is not YAML: "),
        (b"maxWrites: \xff", "PATH: is not UTF-8 text; give the path of a settings file"),
        (b"#" * (1 << 21), "PATH: is larger than 1 MiB; give the path of a settings file"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_wrong_file_is_told_with_file_key_and_remedy(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = written(tmp_path, text)
    assert complaint("--config", path).startswith(words.replace("PATH", path))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    assert complaint("--config", missing).startswith(f"{missing}: cannot be read: No such file")
    assert complaint(env={"DRA_OPERATOR_CONFIG": str(tmp_path)}).startswith(f"{tmp_path}: cannot be read: ")


def test_a_long_wrong_value_is_cut(tmp_path: Path) -> None:
    text = complaint("--config", written(tmp_path, "maxWrites: " + "x" * 100_000))
    assert len(text) < len(str(tmp_path)) + 150
