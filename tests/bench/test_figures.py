"""What the bench makes of its measurements, and how it reports them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from . import arguments, real
from .figures import TABLE, Spread, percentile, rate, ratios, spreads
from .load import Timeline, is_bound, is_released
from .report import SCHEMA, Goal, Result, document, table, write
from .subject import served_writes, writes
from .workload import Size

if TYPE_CHECKING:
    from pathlib import Path

RUNS = [{"podsPerSecond": 120.0, "operatorCpu": 5.0}, {"podsPerSecond": 80.0, "operatorCpu": 7.0}]
STOCK_RUNS = [{"podsPerSecond": 100.0}, {"podsPerSecond": 100.0}]


def result(**more: object) -> Result:
    return Result(
        "embedded",
        "2 pods",
        {"pods": 2},
        {"cores": 2},
        {"operator": RUNS},
        goals={"podsPerSecond": Goal(100, at_least=True)},
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (1, 1.0), (50, 50.0), (50.5, 51.0), (99, 99.0), (100, 100.0)]
)
def test_a_percentile_is_a_value_that_occurred(percent: float, expected: float) -> None:
    assert percentile(map(float, range(100, 0, -1)), percent) == expected


def test_percentiles_of_few_values() -> None:
    assert (percentile([3.0], 50), percentile([3.0], 99), percentile([1.0, 2.0], 50)) == (3.0, 3.0, 1.0)
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_rate_counts_from_the_first_creation_to_the_last_placement() -> None:
    assert rate([11.0, 14.0, 12.0], begin=10.0) == 0.75


def test_spreads_have_the_figures_that_all_runs_have() -> None:
    found = spreads(
        [{"podsPerSecond": 3.0, "startFull": 1.0}, {"podsPerSecond": 1.0}, {"podsPerSecond": 8.0}]
    )
    assert found == {"podsPerSecond": Spread(1.0, 3.0, 8.0)}


def test_a_ratio_compares_the_two_runs_of_a_turn() -> None:
    """A machine that became twice as slow between two turns does not change it."""
    stock = [{"podsPerSecond": 100.0}, {"podsPerSecond": 50.0}]
    ours = [{"podsPerSecond": 90.0}, {"podsPerSecond": 45.0}]
    assert ratios(ours, stock, "podsPerSecond") == Spread(0.9, 0.9, 0.9)


def test_turns_alternate_in_pairs_so_that_neither_is_always_first() -> None:
    assert real.turns(3) == ["stock", "operator", "operator", "stock", "stock", "operator"]


def pod(name: str, *, gated: bool = False, node: str = "") -> dict[str, object]:
    gates = {"schedulingGates": [{"name": "g"}]} if gated else {}
    return {"metadata": {"name": name}, "spec": {**gates, **({"nodeName": node} if node else {})}}


def test_a_timeline_takes_the_first_moment_at_which_a_pod_is_placed() -> None:
    timeline = Timeline(is_released)
    timeline.sent = {"a": 1.0, "b": 2.0}
    for moment, event in enumerate(
        [
            {"type": "ADDED", "object": pod("a", gated=True)},
            {"type": "MODIFIED", "object": pod("a")},
            {"type": "MODIFIED", "object": pod("a", node="n")},
            {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}},
            {"type": "MODIFIED", "object": pod("b")},
        ]
    ):
        timeline.see(event, float(moment))
    assert timeline.placed == {"a": 1.0, "b": 4.0}
    assert timeline.figures() == {"podsPerSecond": 2 / 3, "latencyP50": 0.0, "latencyP99": 2.0}


def test_bound_is_more_than_released() -> None:
    assert [is_bound(pod("a")), is_bound(pod("a", node="n"))] == [False, True]


def test_the_document_has_all_that_is_needed_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.json"
    write(path, document(result(versions={"kubernetes": "v1.37.2"})))
    found = json.loads(path.read_text())
    assert found["schema"] == SCHEMA
    assert found["parameters"] == {"pods": 2}
    assert found["machine"] == {"cores": 2}
    assert {"dra-operator", "kopf", "kubernetes"} <= found["versions"].keys()
    assert found["runs"] == {"operator": RUNS}
    assert found["summary"]["operator"]["podsPerSecond"] == {"least": 80.0, "median": 100.0, "most": 120.0}
    assert found["units"] == {"podsPerSecond": "pods/s", "operatorCpu": "ms/pod"}
    assert found["goals"] == {"podsPerSecond": 100}


def test_the_table_prints_spread_and_goal_and_judges_nothing() -> None:
    text = "pods/s, operator / stock"
    found = table(
        result(
            ratios={text: ratios(RUNS, STOCK_RUNS, "podsPerSecond")},
            ratio_goals={text: Goal(0.9, at_least=True)},
        )
    )
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert "operator, 2 runs unit min median max goal" in lines
    assert "pods placed pods/s 80 100 120 >= 100" in lines
    assert "CPU of the operator ms/pod 5 6 7" in lines
    assert f"{text} 0.8 1 1.2 >= 0.9" in lines


def test_every_figure_says_its_unit() -> None:
    assert all(row.unit and row.text for row in TABLE.values())
    assert len({row.text for row in TABLE.values()}) == len(TABLE)


def test_writes_are_read_from_the_operators_own_metrics() -> None:
    text = """# TYPE dra_operator_writes counter
dra_operator_writes_total{code="200",resource="pods",verb="patch"} 5.0
dra_operator_writes_total{code="409",resource="pods",verb="patch"} 2.0
"""
    assert writes(text) == (7.0, 2.0)


def test_writes_of_everybody_are_read_from_the_api_servers_metrics() -> None:
    text = """# HELP apiserver_request_total Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="pods",subresource="",verb="PATCH"} 5
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 2
apiserver_request_total{code="200",resource="pods",subresource="",verb="LIST"} 30
apiserver_request_total{code="0",resource="pods",subresource="",verb="WATCH"} 40
apiserver_request_duration_seconds_count{resource="pods",verb="PATCH"} 500
"""
    assert served_writes(text) == 7.0


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        (Size(), None),
        (Size(8, 1, 8), None),
        (Size(9, 1, 8), "9 pods want more than the 1 x 8 devices"),
        (Size(0, 1, 1), "pods, nodes and devices must be at least 1"),
    ],
)
def test_a_size_that_cannot_end_placed_is_refused(size: Size, problem: str | None) -> None:
    assert size.problem() == problem


def test_flags_that_make_no_sense_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    made = arguments.parser("embedded", None, Size(), repeat=3)
    with pytest.raises(SystemExit):
        arguments.size_of(made.parse_args(["--repeat", "0"]), made)
    assert "--repeat and --clients must be at least 1" in capsys.readouterr().err


def test_the_callers_settings_do_not_reach_the_operator_under_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_OPERATOR_MODE", "replace")
    arguments.forget_settings()
    assert "DRA_OPERATOR_MODE" not in os.environ
