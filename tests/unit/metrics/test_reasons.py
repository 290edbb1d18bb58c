"""The label `reason` of waiting pods is one of a fixed set of words: each stands in the code, and in the docs."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dra_operator import placement
from dra_operator.metrics import LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(placement.__file__).parent
RUNBOOK = Path(__file__).parents[3] / "docs" / "runbook.md"


def answers() -> Iterator[tuple[str, str]]:
    """File and reason of every `Wait(…)` and `Refuse(…)` of placement; for a reason that is no word of the code, its source text."""
    for path in sorted(SOURCE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Constant)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"Wait", "Refuse"}
            ):
                given = node.args[0]
                found = given.value if isinstance(given, ast.Constant) else words.get(ast.unparse(given))
                yield path.name, str(found or ast.unparse(given))


def test_every_reason_is_a_word_of_the_code() -> None:
    found = list(answers())
    assert len(found) > 10
    assert [item for item in found if not re.fullmatch(r"([A-Z][a-z]+)+", item[1])] == []


def test_every_reason_is_in_the_runbook_or_in_the_page_of_metrics() -> None:
    told = RUNBOOK.read_text(encoding="utf-8") + LABELS["reason"]
    assert {reason for _, reason in answers() if f"`{reason}`" not in told} == set()
