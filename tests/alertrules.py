"""The shipped rules of Prometheus as data, for the tests that hold them to the table of metrics, to the runbook and to promtool."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[1] / "manifests" / "components" / "prometheus-rules"
PATH: Final = FOLDER / "rules.yaml"

Rule = dict[str, Any]


@cache
def load() -> Rule:
    """The whole file; do not change what it gives."""
    document: Rule = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    return document


def rules() -> list[Rule]:
    """All rules, in their order."""
    return [rule for group in load()["groups"] for rule in group["rules"]]


def alerts() -> dict[str, Rule]:
    """The alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def records() -> dict[str, Rule]:
    """The recording rules by the name of what they record."""
    return {rule["record"]: rule for rule in rules() if "record" in rule}
