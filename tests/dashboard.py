"""The shipped Grafana dashboard as data: its panels, queries and variables. For the tests that hold it to the table of metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH: Final = Path(__file__).parents[1] / "manifests" / "components" / "dashboard" / "dra-operator.json"

BUILT_IN: Final[Mapping[str, str]] = {"$__rate_interval": "20s"}
"""What Grafana fills in by itself, with values for a Prometheus that scrapes once a second."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of one panel; variables are still in it."""

    panel: str
    ref: str
    expression: str

    def filled(self, values: Mapping[str, str]) -> str:
        """The expression with values for Grafana's and the dashboard's variables (without `$`)."""
        text = self.expression
        given = {**BUILT_IN, **{f"${name}": value for name, value in values.items()}}
        for name in sorted(given, key=len, reverse=True):
            text = text.replace(name, given[name])
        return text


def load() -> dict[str, Any]:
    """The whole document."""
    document: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return document


def queries() -> list[Query]:
    """All queries of all panels."""
    return [
        Query(panel["title"], target["refId"], target["expr"])
        for panel in load()["panels"]
        for target in panel["targets"]
    ]


def variables() -> dict[str, dict[str, Any]]:
    """The dashboard's variables by name."""
    return {found["name"]: found for found in load()["templating"]["list"]}
