"""PromQL as data, and the series that the operator can have: for the tests of the dashboards and of the alerts."""

from __future__ import annotations

from typing import Any, Final

import promql_parser

from dra_operator.metrics import TABLE, Kind

SCRAPED: Final = {"namespace", "job"}
"""Labels that Prometheus adds when it scrapes."""


def known_series() -> dict[str, set[str]]:
    """Labels by the name of each series that the operator can have."""
    found: dict[str, set[str]] = {}
    for row in TABLE:
        if row.kind is Kind.HISTOGRAM:
            found[f"{row.full_name}_bucket"] = {*row.labels, "le"}
        else:
            found[row.full_name] = set(row.labels)
    return found


def selectors(expression: str) -> list[Any]:
    """All vector selectors of an expression."""
    found: list[Any] = []

    def visit(part: Any) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            found.append(part)
        elif isinstance(part, promql_parser.MatrixSelector):
            found.append(part.vector_selector)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
