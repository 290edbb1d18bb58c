"""What a search does for its reporter where nobody listens, as counts; and that the allocators it is compared with do the same without."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import dra_operator.allocator
from dra_operator.allocator import SILENT, Collector
from dra_operator.allocator.reporter import Rejection, RequestRef, Silent
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution
from tests.conformance.problems import decode_problem

from . import reporting, unreported

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

PROBLEMS = reporting.problems()
COMPILER = default_compiler()
PACKAGES = reporting.variants()
EVENTS = ("pool", "rejected", "failed", "backtracked")


def searched(raw: reporting.Json, package: ModuleType, reporter: Any) -> Any:
    """An allocator that has tried, warm."""
    asked = decode_problem(raw)
    classes = {each.metadata.name: each for each in asked.classes}
    slices = package.SliceList(asked.slices)
    inputs = package.Inputs(asked.features, classes, slices, asked.allocated, COMPILER)
    found = package.Allocator(inputs, package.Options(), reporter)
    for _ in range(2):
        with suppress(NoSolution):
            found.allocate(asked.nodes[0], asked.claims)
    return found


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_is_told_to_nobody(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event, no name for one; a reason is at most one a look at a device, as the search itself must know that there is one."""
    told: list[str] = []
    made = {Rejection: 0, RequestRef: 0}
    for event in EVENTS:
        monkeypatch.setattr(Silent, event, lambda *_, event=event, **__: told.append(event))
    for kind in (Rejection, RequestRef):

        def counted(cls: Any, *given: Any, new: Any = kind.__new__, kind: Any = kind, **named: Any) -> Any:
            made[kind] += 1
            return new(cls, *given, **named)

        monkeypatch.setattr(kind, "__new__", counted)

    allocator = searched(PROBLEMS[name], dra_operator.allocator, SILENT)

    assert told == []
    assert made[RequestRef] == 0, made
    assert made[Rejection] <= allocator.looks


def test_the_count_sees_what_is_told_to_somebody() -> None:
    heard = Collector()
    searched(PROBLEMS["(e) the last of 8 alternatives"], dra_operator.allocator, heard)

    assert sum(map(len, heard.devices.values())) == 7 * 8
    assert heard.steps > 0


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_allocators_that_are_compared_do_the_same(name: str) -> None:
    found = {
        variant: reporting.call(package, PROBLEMS[name], COMPILER, warm=True)
        for variant, package in PACKAGES.items()
    }

    assert len({call.steps for call in found.values()}) == 1
    assert all(call.outcome == found[reporting.SHIPPED].outcome for call in found.values())


@pytest.mark.parametrize("reasons", [False, True])
def test_the_reporter_is_taken_out_of_them(reasons: bool) -> None:  # noqa: FBT001 -- a parameter
    package, taken_out = unreported.load(reasons=reasons)
    heard = Collector()

    searched(PROBLEMS["(e) the last of 8 alternatives"], package, heard)

    assert heard == Collector()
    assert taken_out >= (20 if reasons else 12)
    assert package.Allocator is not dra_operator.allocator.Allocator


def test_a_miniature_writes_its_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reporting.json"

    assert reporting.main(["--seconds", "0", "--json", str(path)]) == 0

    document = json.loads(path.read_text())
    names = {f"{name}, {kind}" for name in PROBLEMS for kind in ("cold", "warm")}
    assert names < set(document)
    assert set(document["median cost in percent, warm"]) == {"no calls", "no reasons"}
    assert "median of the costs, cold" in capsys.readouterr().out
