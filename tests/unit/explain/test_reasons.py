"""Reasons of events and conditions: what the code says, the table has; what the table has, the runbook explains and a scenario provokes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import dra_operator
from dra_operator.explain import CONDITIONS, EVENTS, SILENT
from dra_operator.explain.driftkinds import KINDS as DRIFT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(dra_operator.__file__).parent
ROOT = Path(__file__).parents[3]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
SCENARIOS = ROOT / "tests" / "scenarios" / "operator"
SPEAKERS = ("placement", "controllers")
KINDS = {
    "pod": "Pod",
    "group": "PodGroup",
    "claim": "ResourceClaim",
    "policy": "AllocationPolicy",
    "rule": "DeviceTaintRule",
    "slice": "ResourceSlice",
    "node": "Node",
    "any": "any",
}


def calls() -> Iterator[tuple[str, list[ast.expr]]]:
    """Name and arguments of every call in the packages that speak to users."""
    for package in SPEAKERS:
        for path in sorted((SOURCE / package).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield ast.unparse(node.func).rpartition(".")[2], node.args


def literals(folder: Path) -> set[str]:
    """All strings in the sources of a folder."""
    return {
        node.value
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def said(name: str, position: int) -> set[str]:
    """The strings at one position in all calls of that name."""
    given = (args[position] for called, args in calls() if called == name and len(args) > position)
    return {node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def section(title: str) -> list[list[str]]:
    """The cells of the first table of a section of the runbook, without its head."""
    text = RUNBOOK.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([A-Z]\w+)`", cell)


def test_what_the_code_says_is_in_the_table() -> None:
    waits = said("Wait", 0) | said("Refuse", 0)
    events = said("record", 2) | said("relieve", 2)

    assert len(waits) > 10
    assert len(events) > 5
    assert waits - set(EVENTS) - SILENT == set()
    assert events - set(EVENTS) == set()


def test_what_is_in_the_table_the_code_says() -> None:
    known = literals(SOURCE / "placement") | literals(SOURCE / "controllers") | set(DRIFT)

    assert set(EVENTS) - known == set()
    assert SILENT - known == set()


def test_conditions_are_those_of_the_table() -> None:
    found = [
        [node.value if isinstance(node, ast.Constant) else "" for node in args[:3]]
        for name, args in calls()
        if name == "Verdict"
    ]
    table = {
        (kind, status, reason)
        for kind, statuses in CONDITIONS.items()
        for status, reasons in statuses.items()
        for reason in reasons
    }

    assert len(found) > 15
    assert [item for item in found if all(item) and tuple(item) not in table] == []
    assert {reason for _, _, reason in table} - literals(SOURCE / "controllers") == set()


def test_the_runbook_explains_the_events_of_the_table_and_no_others() -> None:
    told = {
        reason: tuple(KINDS[kind] for kind in kinds.split(", "))
        for reasons, kinds, meaning, step in section("Events")
        for reason in words(reasons)
        if meaning and step
    }

    assert told == {reason: entry.kinds for reason, entry in EVENTS.items()}


def test_the_runbook_explains_the_conditions_of_the_table_and_no_others() -> None:
    told: dict[str, dict[str, tuple[str, ...]]] = {}
    for kind, status, reasons in section("Conditions of an AllocationPolicy"):
        told.setdefault(kind.strip("`"), {})[status] = tuple(words(reasons))

    assert told == CONDITIONS


def test_every_kind_of_drift_is_a_reason_and_the_runbook_has_its_row_word_for_word() -> None:
    told = section("Drift")
    wanted = [[f"`{row.name}`", row.means, row.repair or "reports it", row.remedy] for row in DRIFT.values()]

    assert set(DRIFT) - set(EVENTS) == set()
    assert [[cell.removesuffix(" |") for cell in cells] for cells in told] == wanted


def test_every_reason_has_a_scenario() -> None:
    known = literals(SCENARIOS)
    reasons = {reason for statuses in CONDITIONS.values() for found in statuses.values() for reason in found}

    assert (set(EVENTS) | reasons) - known == set()
