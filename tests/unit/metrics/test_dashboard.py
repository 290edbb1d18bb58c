"""The shipped dashboards are what the code makes, fit Grafana's schema and ask only for what the table of metrics has; no server is needed for that.

Grafana's own SDK is the schema: what it does not know is lost on the way through it. The end-to-end tier runs each query.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dra_operator.metrics import LABELS, TABLE, Kind
from dra_operator.metrics.table import (
    CLAIM_STATES,
    DEVICE_STATES,
    POOL_CONDITIONS,
)
from tests.dashboards.build import files
from tests.dashboards.panels import BOARDS
from tests.dashboards.shipped import FOLDER, NAMES, load, queries, variables
from tests.promql import SCRAPED, known_series, selectors
from tests.unit.manifests.build import built_with, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_QUERY = [pytest.param(query, id=f"{query.board}-{query.panel}-{query.ref}") for query in queries()]
VALUES = {
    "state": {*DEVICE_STATES, *CLAIM_STATES},
    "condition": set(POOL_CONDITIONS),
    "owned": {"true", "false"},
    "reason": {"ended"},
}


def filled(expression: str) -> str:
    return expression.replace("$__rate_interval", "5m")


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """What is in a document and not, or otherwise, in another."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                yield from lost(value, kept[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, value in enumerate(given):
            yield from lost(value, kept[number], f"{path}[{number}]")
    elif given != kept:
        yield path


def through_grafana(document: dict[str, Any]) -> dict[str, Any]:
    register_default_plugins()
    kept: dict[str, Any] = json.loads(JSONEncoder().encode(Dashboard.from_json(document)))
    return kept


BY_BOARD = pytest.mark.parametrize("name", NAMES)


def test_the_files_are_what_the_code_makes() -> None:
    """`make docs` writes them."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == files()
    assert [board.uid for board in BOARDS] == list(NAMES)


@BY_BOARD
def test_grafana_knows_every_field(name: str) -> None:
    assert list(lost(load(name), through_grafana(load(name)))) == []


def test_a_misspelt_field_would_be_found() -> None:
    document = load("dra-operator")
    document["panels"][0]["fieldConfig"]["defaults"]["unti"] = "s"
    assert list(lost(document, through_grafana(document))) == [".panels[0].fieldConfig.defaults.unti"]


@BY_BOARD
def test_panels_have_words_and_a_unit(name: str) -> None:
    panels = load(name)["panels"]
    for panel in panels:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in {"none", "ops", "s", "percentunit"}
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)


def test_a_board_has_all_queries_of_its_panels() -> None:
    for board in BOARDS:
        expected = [(panel.title, shown.expression) for panel in board.panels for shown in panel.queries]
        assert [
            (query.panel, query.expression) for query in queries() if query.board == board.uid
        ] == expected


@BY_BOARD
def test_panels_do_not_overlap_and_fill_the_rows(name: str) -> None:
    places = [panel["gridPos"] for panel in load(name)["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells)) == 24 * max(y + 1 for _, y in cells)


@BY_BOARD
def test_the_data_source_is_always_the_variable(name: str) -> None:
    named = re.findall(r'"uid": "([^"]*)"', (FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert set(named) == {"${datasource}", name}
    assert variables(name)["datasource"]["type"] == "datasource"


@BY_BOARD
def test_the_address_of_a_dashboard_stays(name: str) -> None:
    assert load(name)["uid"] == name


@pytest.mark.parametrize("query", BY_QUERY)
def test_a_query_asks_only_for_what_the_table_has(query: Any) -> None:
    known = known_series()
    for selector in selectors(filled(query.expression)):
        assert selector.name in known
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched - SCRAPED <= known[selector.name] <= {*LABELS, "le"}
        assert matched >= SCRAPED, "several operators can be told apart"


@pytest.mark.parametrize("query", BY_QUERY)
def test_a_query_matches_only_values_that_there_are(query: Any) -> None:
    for selector in selectors(filled(query.expression)):
        for matcher in selector.matchers.matchers:
            if matcher.value.startswith("$"):
                assert matcher.value[1:] in variables(query.board)
            else:
                assert matcher.value in VALUES[matcher.name]


@pytest.mark.parametrize("query", BY_QUERY)
def test_a_legend_names_only_labels_that_are_left(query: Any) -> None:
    wanted = set(re.findall(r"{{(\w+)}}", query.legend))
    grouped = re.match(r"(?:sum|max) by \(([\w, ]+)\)", query.expression)
    assert wanted == (set(grouped[1].split(", ")) if grouped else set())


def test_counters_and_histograms_are_never_shown_raw() -> None:
    rising = {row.full_name for row in TABLE if row.kind is Kind.COUNTER}
    for query in queries():
        for name in re.findall(r"dra_operator_\w+", query.expression):
            if name in rising or name.endswith("_bucket"):
                assert f"rate({name}" in query.expression


@BY_BOARD
@pytest.mark.parametrize("variable", ["namespace", "job", "driver"])
def test_a_variable_asks_for_labels_that_there_are(name: str, variable: str) -> None:
    found = variables(name)[variable]
    asked = re.fullmatch(rf"label_values\((.+), {variable}\)", found["query"]["query"])
    assert asked is not None
    (selector,) = selectors(asked[1])
    assert variable in known_series()[selector.name] | SCRAPED
    assert found["allValue"] == ".*"


def test_the_component_ships_them_as_grafanas_sidecar_wants_it() -> None:
    found = of_kind(built_with(("manifests/components/dashboard",)), "ConfigMap")
    (shipped,) = [item for item in found if "dashboard" in item["metadata"]["name"]]
    assert shipped["metadata"]["name"] == "dra-operator-dashboard", "without a hash: nothing refers to it"
    assert shipped["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text) for name, text in shipped["data"].items()} == {
        f"{name}.json": load(name) for name in NAMES
    }
