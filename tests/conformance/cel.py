"""Compares our CEL engine with recorded answers of upstream: `python -m tests.conformance.cel FILE…`, and part of `python -m tests.conformance`.

Each line of a file (`.jsonl`, or `.jsonl.gz`) is a case: expression, device, environment, gates, and what upstream answered, for one or several environments.
An answer of ours *agrees*, is *unsupported* (we say that we cannot tell), or is *WRONG*: another outcome, value or cost than the case names, or an error without the
words that it demands. *Other words* than upstream's in an error are counted besides. Exit status 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import with_hint
from tests.oracle.ours import Ours

from .problems import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

EXACT: Final = ("match", "attribute", "maxCost", "actualCost")
"""Fields of an answer that must be the same where both sides name them."""

SHOWN: Final = 400
"""Characters of an expression that a report shows."""

DEFAULTS: Final = {
    "env": "StoredExpressions",
    "features": {},
    "derived": False,
    "device": {"driver": ""},
}


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer of ours.

    Attributes:
        verdict: `agree`, `unsupported` or `WRONG`.
        told: what is wrong or unsupported.
        words: upstream's error and ours, where they differ in words alone.
    """

    verdict: str
    told: str = ""
    words: tuple[str, str] | None = None


def runs(case: Json) -> Iterator[tuple[Json, Json]]:
    """Question and upstream's answer, for each environment that the case is about."""
    for run in case.get("runs") or [case.get("result") or {}]:
        stated = {**case.get("expect", {}), **run} if _is_about_the_table(case, run) else run
        question = {name: run.get(name, case.get(name, default)) for name, default in DEFAULTS.items()}
        yield {**question, "expression": case["expression"]}, _answer(stated)


def _is_about_the_table(case: Json, run: Json) -> bool:
    """Whether what upstream's table expects holds for this run; a table is for some environments only."""
    return not run or "outcome" not in run or bool(run.get("inUpstreamTable")) or "runs" not in case


def _answer(stated: Json) -> Json:
    """With the names that all kinds of cases share."""
    answer = dict(stated)
    for name, other in (("attribute", "actualAttr"), ("error", "actualError")):
        if other in answer:
            answer[name] = answer.pop(other)
    answer.setdefault("outcome", "runtime-error" if answer.get("error") else "ok")
    return answer


def judge(case: Json, engine: Ours) -> Iterator[Judged]:
    """Our answers to a case."""
    for question, answer in runs(case):
        if answer["outcome"] == "compiles":
            question.pop("device")
        yield _judged(question, answer, engine.answer(question))


def _judged(question: Json, answer: Json, ours: Json) -> Judged:
    if ours["outcome"] == "unsupported":
        return Judged("unsupported", ours["error"])
    wanted = "ok" if answer["outcome"] == "compiles" else answer["outcome"]
    wrong = [
        f"{name} {ours[name]}, not {answer[name]}"
        for name in EXACT
        if name in answer and ours.get(name, answer[name]) != answer[name]
    ]
    if ours["outcome"] != wanted:
        wrong = [f"{ours['outcome']} {ours.get('error', '')!r}, not {wanted} {answer.get('error', '')!r}"]
    elif answer.get("errorContains", "") not in ours.get("error", ""):
        wrong.append(f"error {ours.get('error')!r} without {answer['errorContains']!r}")
    if wrong:
        return Judged(
            "WRONG",
            f"{question['expression'][:SHOWN]!r} in {question['env']} {question['features']}: {'; '.join(wrong)}",
        )
    theirs, own = answer.get("error", ""), ours.get("error", "")
    return Judged("agree", words=None if same_words(theirs, own) else (theirs, own))


def same_words(theirs: str, text: str) -> bool:
    """Whether the first line of upstream's message is in ours."""
    return theirs.partition("\n")[0].partition("Syntax error")[0] in text


def hint_difference(case: Json) -> str:
    """What is wrong with our hint on an error; empty when nothing is. Errors are text, or an object with text in it when they have the hint already."""
    error, wanted = case["case"].get("err"), case["case"].get("want") or ""
    if isinstance(error, dict):
        texts = [text for text in error.values() if isinstance(text, str)]
        ours = texts[0] if texts else wanted
    else:
        ours = with_hint(error or "")
    return "" if ours == wanted else f"{ours!r}, not {wanted!r}"


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; returns the exit status."""
    parser = argparse.ArgumentParser(description="compare CEL with recorded answers of upstream")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--words", action="store_true", help="also print where an error has other words than upstream's"
    )
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    unsupported: Counter[str] = Counter()
    engine = Ours()
    for case in (case for path in options.files for _, case in read_lines(path) if "expression" in case):
        for judged in judge(case, engine):
            counts[judged.verdict] += 1
            counts["other words"] += judged.words is not None
            if judged.verdict == "unsupported":
                unsupported[judged.told] += 1
            elif judged.verdict == "WRONG":
                print(f"WRONG {case['id']} {judged.told}")
            if judged.words and options.words:
                print(
                    f"words {case['id']} {case['expression']!r}:\n  upstream {judged.words[0]!r}\n  ours     {judged.words[1]!r}"
                )
    for text, number in unsupported.most_common():
        print(f"unsupported {number:6} {text}")
    print(", ".join(f"{counts[name]} {name}" for name in ("agree", "unsupported", "WRONG", "other words")))
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
