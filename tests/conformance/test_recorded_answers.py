"""The tools that compare CEL and quantities with recorded answers tell right from wrong from unsupported."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from tests.conformance import cel, quantities

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

GATES = {"ConsumableCapacity": True, "ListTypeAttributes": True}
DEVICE = {"driver": "d", "attributes": {"i": {"int": 3}}}
ERROR = {
    "outcome": "compile-error",
    "error": "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'",
}


def case(expression: str, result: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = {"env": "StoredExpressions", "features": GATES, "result": result}
    return {"id": expression, "expression": expression, "device": DEVICE, **answer, **more}


def written(path: Path, *cases: dict[str, Any]) -> str:
    text = "".join(f"{json.dumps(one)}\n" for one in cases).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def test_agreement_and_what_is_unsupported_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        case("device.attributes.d.i == 3", {"outcome": "ok", "match": True}),
        case("x", ERROR),
        case("duration('1h') > duration('1m')", {"outcome": "ok", "match": True}),
        case("device.driver", {"outcome": "ok"}, derived=True),
    ]
    assert cel.main([written(tmp_path / "cases.jsonl.gz", *cases)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 agree, 1 unsupported, 0 WRONG, 0 other words"


def test_a_wrong_answer_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case("true", {"outcome": "ok", "match": False}), case("1 == 1", ERROR), case("y", ERROR)]
    assert cel.main([written(tmp_path / "cases.jsonl", *cases), "--words"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 agree, 0 unsupported, 2 WRONG, 1 other words"


def test_runs_of_one_case_are_judged_each_by_its_gates(tmp_path: Path) -> None:
    off = {"ConsumableCapacity": False, "ListTypeAttributes": False}
    refused = {"outcome": "compile-error", "error": "undefined field 'allowMultipleAllocations'"}
    runs = [
        {"env": "StoredExpressions", "features": off, "outcome": "ok", "match": False},
        {"env": "NewExpressions", "features": off, **refused},
    ]
    one = {"id": "c", "expression": "device.allowMultipleAllocations", "device": DEVICE, "runs": runs}
    assert cel.main([written(tmp_path / "cases.jsonl", one)]) == 0


def test_quantities_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good: list[dict[str, Any]] = [
        {"id": "1", "op": "parse", "input": "1K", "error": "unable to parse quantity's suffix"},
        {"id": "2", "op": "parse", "input": ".5", "canonicalAfterAddZero": "500m", "format": "DecimalSI", "decimal": "0.5"},
        {"id": "3", "op": "parse", "input": "1000E", "canonicalAfterAddZero": "1", "format": "DecimalSI", "decimal": "1e21"},
        {
            "id": "4", "op": "pair", "a": "1Ki", "b": "24", "cmp": 1, "equal": False,
            "sum": "1048", "difference": "1k", "sumDecimal": "1048", "differenceDecimal": "1000",
        },
    ]  # fmt: skip
    assert quantities.main([written(tmp_path / "good.jsonl", *good)]) == 0
    assert quantities.main([written(tmp_path / "bad.jsonl", {**good[1], "decimal": "0.4"})]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"
