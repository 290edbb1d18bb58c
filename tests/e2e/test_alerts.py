"""The shipped rules as Prometheus' own tool sees them: each alert fires when it has to, clears, and is quiet before; each record has its value."""

from __future__ import annotations

import json
import subprocess
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.alertrules import PATH, alerts, load, records
from tests.e2e.alerts import RECORDS, TRIALS
from tests.e2e.harness.build import ensure_prometheus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.alerts import Recorded, Trial

pytestmark = pytest.mark.timeout(900)  # the first build of promtool takes minutes


@pytest.fixture(scope="module")
def promtool() -> Path:
    return ensure_prometheus().promtool


def said(promtool: Path, *arguments: str) -> str:
    """What promtool has to complain of; empty when it is content."""
    done = subprocess.run(
        [str(promtool), *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def tried(promtool: Path, folder: Path, document: dict[str, Any]) -> str:
    """The complaints of `promtool test rules`. JSON is YAML."""
    path = folder / "tests.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return said(promtool, "test", "rules", str(path))


def test_promtool_takes_the_rules(promtool: Path) -> None:
    assert said(promtool, "check", "rules", "--lint=all", "--lint-fatal", str(PATH)) == ""


def test_every_alert_and_every_record_is_tried() -> None:
    assert sorted(trial.alert for trial in TRIALS) == sorted(alerts())
    assert sorted(recorded.record for recorded in RECORDS) == sorted(records())
    for trial in TRIALS:
        assert min(trial.quiet) < trial.fires < max(trial.quiet), "quiet before and after"


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.alert)
def test_an_alert_fires_and_clears(trial: Trial, promtool: Path, tmp_path: Path) -> None:
    assert tried(promtool, tmp_path, trial.document(str(PATH), alerts()[trial.alert])) == ""


@pytest.mark.parametrize("recorded", RECORDS, ids=lambda recorded: recorded.record)
def test_a_record_has_its_value(recorded: Recorded, promtool: Path, tmp_path: Path) -> None:
    assert tried(promtool, tmp_path, recorded.document(str(PATH))) == ""


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.alert)
@pytest.mark.parametrize("never", [True, False], ids=["never fires", "never clears"])
def test_a_broken_alert_is_noticed(
    trial: Trial,
    never: bool,  # noqa: FBT001
    promtool: Path,
    tmp_path: Path,
) -> None:
    """With an alert that cannot fire, or always does, the same trial fails."""
    broken = deepcopy(load())
    for group in broken["groups"]:
        for rule in group["rules"]:
            if rule.get("alert") == trial.alert:
                rule["expr"] = "vector(0) > 1" if never else "vector(1)"
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(broken), encoding="utf-8")
    assert "FAILED" in tried(promtool, tmp_path, trial.document(str(rules), alerts()[trial.alert]))
