"""docs/rules.md: which end-to-end test shows which rule, out of the rulebook and of the names of the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .collected import Shown, collect, others, shown
from .markdown import generated, joined, table
from .rulebook import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

INTRODUCTION = """
# Rules and the tests that show them

Each rule of the claim controller (C-) and of standing beside, or in the place of, the stock control plane (I-), with the tests on a real Kubernetes control
plane that are named after it. *Mode* and *way* are those in which these tests run: in `cooperate` the stock parts are on, in `replace` they are off; pods come
by the scheduling `gate`, or by the scheduler `name`. Run one with `.venv/bin/pytest tests/e2e -k c62`.
"""

UNSEEN = """
## What no test on a real control plane can show

With the reason, and the tests on the embedded API server that have it in their names.
"""

DEFAULTS = {
    "test_generation.py": ("cooperate", "gate"),
    "test_replace.py": ("replace", "gate"),
}
"""Mode and way of the tests of a file whose ids do not tell."""


@cache
def all_shown() -> tuple[Shown, ...]:
    """The end-to-end tests with rules in their names."""
    return tuple(shown(collect(), DEFAULTS))


def page() -> str:
    """The page."""
    by_rule: dict[str, list[Shown]] = {}
    for test in all_shown():
        for rule in test.rules:
            by_rule.setdefault(rule, []).append(test)
    below = others()
    rows = [_row(rule, text, by_rule.get(rule, ())) for rule, (text, unseen) in RULES.items() if not unseen]
    unseen = [(rule, text, why, _names(below.get(rule, ()))) for rule, (text, why) in RULES.items() if why]
    return joined(
        generated("tests/docs/rulebook.py and the names of the tests"),
        INTRODUCTION,
        table(("rule", "what holds", "mode", "way", "tests"), rows),
        UNSEEN,
        table(("rule", "what holds", "why not", "tests"), unseen),
    )


def _row(rule: str, text: str, found: Iterable[Shown]) -> tuple[str, ...]:
    several = list(found)
    modes = dict.fromkeys(mode for test in several for mode in test.modes)
    ways = dict.fromkeys(way for test in several for way in test.ways)
    names = "<br>".join(f"`{Path(test.file).name}` `{test.name}`" for test in several)
    return rule, text, ", ".join(sorted(modes)), ", ".join(sorted(ways)), names


def _names(found: Iterable[str]) -> str:
    return "<br>".join(
        f"`{Path(test.partition('::')[0]).name}` `{test.partition('::')[2]}`" for test in found
    )
