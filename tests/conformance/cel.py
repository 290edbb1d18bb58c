"""Compares our selectors with recorded answers of upstream: `python -m tests.conformance.cel FILE…`.

Each line of a file (`.jsonl`, or `.jsonl.gz`) is a case: expression, device, environment, gates, and what upstream answered.
An answer of ours *agrees* (same outcome, same bool), is *unsupported* (we say that we cannot tell), or is *WRONG*. Cases about
derived attributes, which are not selectors, are skipped. Exit status 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dra_operator.cel import CelPythonCompiler
from dra_operator.cel.environment import new_expressions, stored_expressions
from dra_operator.errors import CelCompileError, CelError, CelRuntimeError, CelUnsupported
from dra_operator.features import Features
from dra_operator.model import ResourceSlice, from_object

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPILERS = {
    "StoredExpressions": CelPythonCompiler(lambda _: stored_expressions()),
    "NewExpressions": CelPythonCompiler(new_expressions),
}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.splitlines():
        yield json.loads(line)


def questions(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Environment, gates and answer of each run of a selector case."""
    if case.get("derived"):
        return
    if "runs" in case:
        for run in case["runs"]:
            yield run["env"], run["features"], run
    elif "result" in case:
        yield case["env"], case["features"], case["result"]


def slice_of(device: dict[str, Any]) -> ResourceSlice:
    """A slice with the device of a case."""
    fields = {key: value for key, value in device.items() if key != "driver"}
    spec = {"driver": device.get("driver", ""), "devices": [{"name": "device", **fields}]}
    return from_object(ResourceSlice, {"metadata": {"name": "slice"}, "spec": spec})


def ours(expression: str, environment: str, gates: dict[str, bool], slice_: ResourceSlice) -> tuple[str, str]:
    """Our outcome and its text."""
    features = Features(
        consumable_capacity=gates["ConsumableCapacity"], list_type_attributes=gates["ListTypeAttributes"]
    )
    outcomes: dict[type[CelError], str] = {
        CelUnsupported: "unsupported",
        CelCompileError: "compile-error",
        CelRuntimeError: "runtime-error",
    }
    try:
        selector = COMPILERS[environment].compile(expression, features)
        return f"ok {selector.matches(slice_, slice_.spec.devices[0])}", ""
    except CelError as error:
        return outcomes[type(error)], str(error)


def verdict(expected: str, actual: str) -> str:
    """How an outcome of ours compares."""
    if actual == "unsupported":
        return "unsupported"
    return "agree" if actual == expected else "WRONG"


def same_words(theirs: str, text: str) -> bool:
    """Whether the first line of upstream's message is in ours."""
    return theirs.partition("\n")[0].partition("Syntax error")[0] in text


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; returns the exit status."""
    parser = argparse.ArgumentParser(description="compare selectors with recorded answers of upstream")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--words", action="store_true", help="also print where an error has other words than upstream's"
    )
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    unsupported: Counter[str] = Counter()
    for case in (case for path in options.files for case in lines(path)):
        slice_ = slice_of(case["device"])
        for environment, gates, answer in questions(case):
            expected = f"ok {answer.get('match', False)}" if answer["outcome"] == "ok" else answer["outcome"]
            actual, text = ours(case["expression"], environment, gates, slice_)
            found = verdict(expected, actual)
            counts[found] += 1
            if found == "unsupported":
                unsupported[text] += 1
            elif found == "WRONG":
                print(
                    f"WRONG {case['id']} {case['expression']!r}: expected {expected} ({answer.get('error', '')!r}), got {actual} {text!r}"
                )
            elif text and not same_words(answer["error"], text):
                counts["other words"] += 1
                if options.words:
                    print(
                        f"words {case['id']} {case['expression']!r}:\n  upstream {answer['error']!r}\n  ours     {text!r}"
                    )
    for text, number in unsupported.most_common():
        print(f"unsupported {number:6} {text}")
    print(", ".join(f"{counts[name]} {name}" for name in ("agree", "unsupported", "WRONG", "other words")))
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
