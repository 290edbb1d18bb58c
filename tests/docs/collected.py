"""The end-to-end tests as pytest collects them, and the names of all others: which of them show which rule.

`python -m tests.docs.collected` prints the collected ids; it is a process of its own, since pytest cannot collect within itself.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
E2E = "tests/e2e"
OTHERS = ("tests/unit", "tests/scenarios", "tests/contract", "tests/properties")
IDS = re.compile(r"(?<=_)([ci])(\d{1,2})(?=_|$)")
MODES, WAYS = ("cooperate", "replace"), ("gate", "name")


class Shown(NamedTuple):
    """One test, or several that differ in mode or way alone."""

    file: str
    name: str
    modes: tuple[str, ...]
    ways: tuple[str, ...]
    rules: tuple[str, ...]


def rules_of(name: str) -> tuple[str, ...]:
    """The ids in a test's name: `test_c62_i40_…` → C-62, I-40."""
    return tuple(f"{letter.upper()}-{int(number)}" for letter, number in IDS.findall(name.partition("[")[0]))


def collect() -> list[str]:
    """Ids of all end-to-end tests.

    Raises:
        subprocess.CalledProcessError: they cannot be collected.
    """
    command = [sys.executable, "-m", "tests.docs.collected"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def shown(ids: list[str], defaults: dict[str, tuple[str, str]]) -> list[Shown]:
    """The tests with rules in their names.

    Args:
        ids: as of `collect`.
        defaults: mode and way of the tests of a file whose ids do not tell; `cooperate` and `gate` for the others.
    """
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for test in ids:
        file, _, rest = test.partition("::")
        name, _, params = rest.partition("[")
        words = set(params.rstrip("]").split("-"))
        mode, way = defaults.get(Path(file).name, ("cooperate", "gate"))
        if rules_of(name):
            place = (
                next((word for word in MODES if word in words), mode),
                next((word for word in WAYS if word in words), way),
            )
            found.setdefault((file, name), []).append(place)
    return [
        Shown(
            file,
            name,
            tuple(dict.fromkeys(mode for mode, _ in places)),
            tuple(dict.fromkeys(way for _, way in places)),
            rules_of(name),
        )
        for (file, name), places in found.items()
    ]


def others() -> dict[str, list[str]]:
    """Tests below the end-to-end tier by the rules in their names, as `file::name`."""
    found: dict[str, list[str]] = {}
    for folder in OTHERS:
        for file in sorted((ROOT / folder).rglob("test_*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                    for rule in rules_of(node.name):
                        found.setdefault(rule, []).append(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def main() -> int:
    """Print the ids; pytest's exit status."""
    return int(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", E2E]))


if __name__ == "__main__":
    sys.exit(main())
