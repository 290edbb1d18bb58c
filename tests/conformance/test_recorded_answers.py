"""The tools that compare CEL, hints and quantities with recorded answers tell right from wrong from unsupported."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from dra_operator.cel.answers import HINT
from tests.conformance import cel
from tests.conformance.__main__ import main
from tests.conformance.problems import own_lines
from tests.oracle.ours import Ours

if TYPE_CHECKING:
    from pathlib import Path

GATES = {"ConsumableCapacity": True, "ListTypeAttributes": True}
DEVICE = {"driver": "d", "attributes": {"i": {"int": 3}}}
BEYOND_OUR_MEANS = f'"a".matches("{"(x{1,1000}y)" * 800}")'
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


def judged(folder: Path, *cases: dict[str, Any]) -> tuple[int, list[str]]:
    """Exit status and output of the runner of all kinds of cases."""
    done = CliRunner().invoke(main, [written(folder / "cases.jsonl.gz", *cases)])
    return done.exit_code, done.output.splitlines()


def test_agreement_and_what_is_unsupported_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        case("device.attributes.d.i == 3", {"outcome": "ok", "match": True}),
        case("x", ERROR),
        case("device.driver", {"outcome": "ok", "attribute": {"string": "d"}}, derived=True),
        case(BEYOND_OUR_MEANS, {"outcome": "ok", "match": False}),
    ]
    assert cel.main([written(tmp_path / "cases.jsonl.gz", *cases)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 agree, 1 unsupported, 0 WRONG, 0 other words"


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


def test_what_upstreams_table_expects_holds_where_a_run_says_no_more() -> None:
    table = {
        "kind": "evaluate",
        "derived": True,
        "env": "StoredExpressions",
        "features": GATES,
        "device": DEVICE,
    }
    value = {
        **table,
        "expression": "device.attributes.d.i",
        "expect": {"outcome": "ok", "attribute": {"int": 3}},
    }
    fails = {
        **table,
        "expression": "device.attributes.d.x",
        "expect": {"outcome": "runtime-error", "errorContains": "no such key"},
    }
    compiles = {**table, "expression": "device.attributes.d.x", "expect": {"outcome": "compiles"}}
    wrong = {**value, "runs": [{"actualAttr": {"int": 4}}]}
    right = {**fails, "runs": [{"actualError": "no such key: x"}]}

    verdicts = [
        each.verdict for one in (value, fails, compiles, wrong, right) for each in cel.judge(one, Ours())
    ]

    assert verdicts == ["agree", "agree", "agree", "WRONG", "agree"]


def test_an_error_has_the_words_that_a_case_demands() -> None:
    demands = {
        "expression": "device.attributes.d.x",
        "device": DEVICE,
        "expect": {"outcome": "runtime-error", "errorContains": "key: y"},
    }

    assert [each.verdict for each in cel.judge(demands, Ours())] == ["WRONG"]


def hint(error: object, wanted: str) -> dict[str, Any]:
    return {"id": "hint", "group": "g", "case": {"err": error, "want": wanted}}


def test_quantities_hints_and_cel_are_told_apart_and_counted_together(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [
        {"id": "1", "op": "parse", "input": "1K", "error": "unable to parse quantity's suffix"},
        {"id": "2", "op": "parse", "input": ".5", "canonicalAfterAddZero": "500m", "format": "DecimalSI", "decimal": "0.5"},
        {"id": "3", "op": "parse", "input": "1000E", "canonicalAfterAddZero": "1", "format": "DecimalSI", "decimal": "1e21"},
        {
            "id": "4", "op": "pair", "a": "1Ki", "b": "24", "cmp": 1, "equal": False,
            "sum": "1048", "difference": "1k", "sumDecimal": "1048", "differenceDecimal": "1000",
        },
        hint(None, ""), hint("other", "other"), hint("no such key: x", f"no such key: x{HINT}"), hint({"text": f"told{HINT}"}, f"told{HINT}"),
        case("true", {"outcome": "ok", "match": True}),
    ]  # fmt: skip

    assert judged(tmp_path, *cases) == (0, ["9 passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize(
    "wrong",
    [
        {
            "id": "x",
            "op": "parse",
            "input": ".5",
            "canonicalAfterAddZero": "500m",
            "format": "DecimalSI",
            "decimal": "0.4",
        },
        hint("no such key: x", "no such key: x"),
        case("true", {"outcome": "ok", "match": False}),
    ],
)
def test_one_wrong_line_fails(tmp_path: Path, wrong: dict[str, Any]) -> None:
    status, told = judged(tmp_path, wrong)

    assert (status, told[-1]) == (1, "0 passed, 1 failed, 0 skipped")


def test_what_is_unsupported_is_skipped_by_name(tmp_path: Path) -> None:
    status, told = judged(
        tmp_path, case("true", {"outcome": "ok", "match": True}), case(BEYOND_OUR_MEANS, ERROR)
    )

    assert (status, told[-1]) == (0, "1 passed, 0 failed, 1 skipped")
    assert told[0].startswith("skipped cases need: CEL: ")


def test_a_line_of_no_kind_fails_and_the_others_are_judged(tmp_path: Path) -> None:
    status, told = judged(tmp_path, {"id": "x", "one": 1}, case("true", {"outcome": "ok", "match": True}))

    assert (status, told[-1]) == (1, "1 passed, 1 failed, 0 skipped")
    assert told[0].endswith("a case of no kind (fields: id, one)")


def spoiled(value: Any) -> Any:
    """Another answer of the same form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return {**value, "name": "other"}
    if isinstance(value, int):
        return value + 1
    return value[1:] if value and isinstance(value, list) else f"{value or ''}9"


def with_another_answer(raw: dict[str, Any]) -> dict[str, Any]:
    """An own case as if upstream had said something else."""
    if "actual" in raw:
        theirs = raw["actual"]["*"]
        other: dict[str, Any] = {"pools": []} if theirs.get("pools") or "error" in theirs else {"error": "e"}
        return {**raw, "actual": {"*": other}}
    if "out" in raw:
        return {**raw, "out": {"consumed": "77", "consumedDecimal": "77", "fits": True}}
    case = raw["case"]
    told = [name for name in case if name.startswith("expect") or name == "want"]
    is_error = case.get("expectedError") or case.get("expectErr")
    wanted = next(name for name in told if not is_error or name.endswith(("Error", "Err")))
    return {**raw, "case": {**case, wanted: spoiled(case[wanted])}}


OTHERS = [raw for _, raw in own_lines() if "claims" not in raw]


@pytest.mark.parametrize("raw", OTHERS, ids=lambda raw: raw["id"])
def test_another_answer_than_ours_fails_whatever_the_kind(tmp_path: Path, raw: dict[str, Any]) -> None:
    assert judged(tmp_path, with_another_answer(raw))[0] == 1


def test_what_a_function_of_upstreams_asserts_is_not_compared(tmp_path: Path) -> None:
    raw = next(raw for raw in OTHERS if "events" in raw.get("case", ()))
    unknown = {**raw, "case": {**raw["case"], "expectedHandlerEvents": "<func>"}}

    assert judged(tmp_path, unknown)[0] == 0
