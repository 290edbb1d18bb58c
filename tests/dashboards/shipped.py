"""The shipped dashboards as data: their panels, queries and variables. For the tests that hold them to the table of metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path(__file__).parents[2] / "manifests" / "components" / "dashboard"
NAMES: Final = ("dra-operator-fleet", "dra-operator-tenant", "dra-operator")
"""Of the files, without `.json`, and addresses of the dashboards."""

BUILT_IN: Final[Mapping[str, str]] = {"$__rate_interval": "20s"}
"""What Grafana fills in by itself, with values for a Prometheus that scrapes once a second."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of one panel; variables are still in it."""

    board: str
    panel: str
    ref: str
    expression: str
    legend: str

    def filled(self, values: Mapping[str, str]) -> str:
        """The expression with values for Grafana's and the dashboard's variables (without `$`)."""
        text = self.expression
        given = {**BUILT_IN, **{f"${name}": value for name, value in values.items()}}
        for name in sorted(given, key=len, reverse=True):
            text = text.replace(name, given[name])
        return text


def load(name: str) -> dict[str, Any]:
    """One whole document."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


def queries() -> list[Query]:
    """All queries of all panels of all dashboards."""
    return [
        Query(name, panel["title"], target["refId"], target["expr"], target["legendFormat"])
        for name in NAMES
        for panel in load(name)["panels"]
        for target in panel["targets"]
    ]


def variables(name: str) -> dict[str, dict[str, Any]]:
    """The variables of a dashboard by name."""
    return {found["name"]: found for found in load(name)["templating"]["list"]}
