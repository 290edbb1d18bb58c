"""The table keeps to Prometheus' conventions, and what is rendered is what the table says."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dra_operator.metrics import LABELS, TABLE, Kind, Metrics, Row
from dra_operator.metrics.row import PREFIX, UPSTREAM

UNITS = ("_seconds", "_bytes", "_info")
NO_UNIT = re.compile(r"(milli|micro|nano)seconds?|_ms$|minutes|hours|_percent|kilobytes|_kb$|_mb$")
BY_ROW = [pytest.param(row, id=row.name) for row in TABLE]


def filled() -> Metrics:
    """Each row with one more series."""
    metrics = Metrics()
    for row in TABLE:
        values = tuple(f"some-{label}" for label in row.labels)
        if row.kind is Kind.COUNTER:
            metrics.count(row, *values)
        elif row.kind is Kind.GAUGE:
            metrics.set(row, 1, *values)
        else:
            metrics.observe(row, 0.1, *values)
    return metrics


def test_names_are_there_once() -> None:
    assert len({row.full_name for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("row", BY_ROW)
def test_a_row_keeps_to_the_conventions(row: Row) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", row.name)
    assert not row.name.endswith(("_total", "_count", "_sum", "_bucket"))
    assert NO_UNIT.search(row.name) is None
    assert re.fullmatch(r"[A-Z1].*\.", row.text, re.DOTALL), "help is a sentence"
    assert "\n" not in row.text
    assert set(row.labels) <= set(LABELS)
    assert all(len(values) == len(row.labels) for values in row.initial)
    assert (row.kind is Kind.HISTOGRAM) == bool(row.buckets)
    assert list(row.buckets) == sorted(set(row.buckets))


@pytest.mark.parametrize("row", BY_ROW)
def test_times_are_in_seconds_and_the_name_says_so(row: Row) -> None:
    assert row.text.startswith("Seconds ") == row.name.endswith("_seconds")


def test_rows_of_a_setting_have_no_series_without_it() -> None:
    """Where it is off, nothing may tell names that users choose, or count what the stock controller counts (cp M-21)."""
    assert [row.name for row in TABLE if row.only and (row.initial)] == []
    text = Metrics().render().decode()
    for row in TABLE:
        if row.only and row.labels:
            assert re.search(rf"^{row.full_name}[ {{]", text, re.MULTILINE) is None


def test_every_label_is_used() -> None:
    assert {label for row in TABLE for label in row.labels} == set(LABELS)


def test_what_is_rendered_is_the_table_and_the_process() -> None:
    families = list(text_string_to_metric_families(filled().render().decode()))
    ours = {family.name: family for family in families if family.name.startswith((PREFIX, UPSTREAM))}
    assert list(ours) == [row.family for row in TABLE]
    for row in TABLE:
        family = ours[row.family]
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert (family.type, family.documentation, labels) == (row.kind.value, row.text, set(row.labels))
    others = {family.name for family in families} - set(ours)
    assert {"process_resident_memory_bytes", "process_cpu_seconds", "process_open_fds"} <= others
    assert [name for name in others if not name.startswith(("process_", "python_"))] == []


def test_counters_have_no_second_series_for_their_birth() -> None:
    assert "_created" not in filled().render().decode()


def test_initial_series_are_there_with_0() -> None:
    text = Metrics().render().decode()
    samples = {
        (sample.name, *sample.labels.values())
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.value
    }
    for row in TABLE:
        for values in row.initial:
            name = f"{row.full_name}_count" if row.kind is Kind.HISTOGRAM else row.full_name
            assert (name, *values) in samples
