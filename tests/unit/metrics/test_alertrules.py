"""The shipped rules ask only for what the table of metrics has, and each alert leads to its section of the runbook.

No Prometheus is needed for that; `tests/e2e/test_alerts.py` has promtool try them.
"""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
import yaml

from dra_operator.explain.driftkinds import KINDS
from dra_operator.metrics import LABELS
from tests.alertrules import FOLDER, alerts, load, records, rules
from tests.docs.links import anchors
from tests.promql import SCRAPED, known_series, selectors
from tests.unit.manifests.build import built_with, of_kind

BY_RULE = [pytest.param(rule, id=rule.get("alert") or rule["record"]) for rule in rules()]
BY_ALERT = [pytest.param(rule, id=name) for name, rule in alerts().items()]


@pytest.mark.parametrize("rule", BY_RULE)
def test_a_rule_asks_only_for_what_there_is(rule: dict[str, Any]) -> None:
    known = known_series()
    found = selectors(rule["expr"])
    assert found
    for selector in found:
        if selector.name in records():
            continue
        assert selector.name in known
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched <= known[selector.name] <= {*LABELS, "le"}


@pytest.mark.parametrize("rule", BY_RULE)
def test_a_rule_keeps_operators_apart(rule: dict[str, Any]) -> None:
    """All that is summed is summed by namespace and job; only what is absent has none."""
    for grouped in re.findall(r"\b(?:sum|max) by \(([^)]*)\)", rule["expr"]):
        assert set(grouped.split(", ")) >= SCRAPED
    assert re.search(r"\b(sum|max|min|avg|count)\b(?! by)\s*\(", rule["expr"]) is None


def test_names_of_records_say_level_metric_and_operation() -> None:
    for name in records():
        assert re.fullmatch(r"job(_driver)?:dra_operator_\w+:\w+", name)


def test_findings_are_words_of_the_table() -> None:
    told = {
        word
        for rule in alerts().values()
        for text in re.findall(r'finding[=!]~"([^"]*)"', rule["expr"])
        for word in text.split("|")
    }
    assert told <= set(KINDS)
    assert told


def test_every_finding_has_one_alert() -> None:
    leak, rest = (alerts()[name]["expr"] for name in ("DraOperatorDeviceLeak", "DraOperatorDrift"))
    leaks = set(re.findall(r'finding=~"([^"]*)"', leak)[0].split("|"))
    left = set(KINDS) - set(re.findall(r'finding!~"([^"]*)"', rest)[0].split("|"))
    assert leaks.isdisjoint(left)
    assert set(KINDS) - leaks - left == {"DeviceHeldTwice", "PoolStuck"}, (
        "they have alerts with metrics of their own"
    )


@pytest.mark.parametrize("rule", BY_ALERT)
def test_an_alert_says_what_it_is_and_where_to_read_on(rule: dict[str, Any]) -> None:
    assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["alert"].lower() in anchors("docs/runbook.md")


@pytest.mark.parametrize("rule", BY_ALERT)
def test_words_name_only_labels_that_are_left(rule: dict[str, Any]) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    grouped = re.search(r"\bby \(([^)]*)\)", rule["expr"])
    assert named <= (set(grouped[1].split(", ")) if grouped else set())


def test_every_section_of_the_runbook_is_of_an_alert() -> None:
    told = {anchor for anchor in anchors("docs/runbook.md") if anchor.startswith("draoperator")}
    assert told == {name.lower() for name in alerts()}


def test_the_component_brings_the_rules_of_the_file() -> None:
    (shipped,) = of_kind(built_with(("manifests/components/prometheus-rules",)), "PrometheusRule")
    assert shipped["spec"] == load()
    assert yaml.safe_load((FOLDER / "prometheusrule.yaml").read_text(encoding="utf-8"))["spec"] == load()


def test_every_expression_is_parsed_and_a_wrong_one_would_not_be() -> None:
    for rule in rules():
        promql_parser.parse(rule["expr"])
    with pytest.raises(ValueError, match="parenthesis"):
        promql_parser.parse("sum by (job) (dra_operator_leader")
