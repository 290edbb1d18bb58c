"""`make chaos`: a storm on a real control plane, and the word whether anything was ever wrong. See CONTRIBUTING.md.

Ends with 1 if something was; with `--without GUARD`, if nothing was: then the check would not have noticed that the guard is missing.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING

from dra_operator.settings.table import BY_NAME
from tests.chaos.ledger import CHECKS
from tests.chaos.mutant import GUARDS
from tests.chaos.storm import Plan, Result, run

if TYPE_CHECKING:
    from collections.abc import Iterable

QUIET_SHARE = 30.0
"""Seconds of the wanted minutes that are left for the start and for quiet: as long as they take on a machine with nothing else to do."""

SHOWN = 5
"""Violations whose story is printed; where there is one, there are often hundreds."""

ROTATE = "rotate"


def main() -> int:
    """Run what the command line says. Returns: the exit status."""
    arguments = _parser().parse_args()
    seconds = max(30.0, arguments.minutes * 60 - QUIET_SHARE)
    if arguments.mutations:
        return _all_mutations(arguments.seed, seconds, arguments.operators)
    guard = _guard_in_turn() if arguments.without == ROTATE else arguments.without
    result = run(Plan(arguments.seed, seconds, guard, arguments.operators))
    _report(result, arguments.seed, seconds, guard)
    return _status(result, guard)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    minutes = float(os.environ.get("MINUTES") or 3)
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    parser.add_argument("--seed", type=int, default=seed, help="default: $SEED, or any")
    parser.add_argument("--minutes", type=float, default=minutes, help="default: $MINUTES, or 3")
    operators = 2 if "leader_elect" in BY_NAME else 1  # without leader election two of them must not run
    parser.add_argument("--operators", type=int, default=operators)
    parser.add_argument(
        "--without",
        default="",
        choices=[*GUARDS, ROTATE],
        help=f"switch a guard of the operators off; {ROTATE}: the one whose turn it is, by the number of commits",
    )
    parser.add_argument("--mutations", choices=["all"], help="one storm without each guard, and a table")
    return parser


def _guard_in_turn() -> str:
    """By the number of commits; by the day where the history is not whole, so that its number says nothing."""
    if _git("rev-parse", "--is-shallow-repository") == "false":
        turn = int(_git("rev-list", "--count", "HEAD"))
    else:
        turn = date.today().toordinal()  # noqa: DTZ011  # any day will do
    return in_turn(turn)


def in_turn(number: int) -> str:
    """Each guard's turn comes once in as many numbers as there are guards."""
    return list(GUARDS)[number % len(GUARDS)]


def _git(*arguments: str) -> str:
    """What git says; nothing outside of a repository."""
    found = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def _status(result: Result, guard: str) -> int:
    """With a guard off, only what the operator did wrong counts: not that the machine was slow."""
    if guard:
        return 0 if result.violations or result.at_rest else 1
    return 0 if result.is_good else 1


def _all_mutations(seed: int, seconds: float, operators: int) -> int:
    rows, status = [], 0
    for guard in GUARDS:
        result = run(Plan(seed, seconds, guard, operators))
        status |= _status(result, guard)
        what = [violation.text for violation in result.violations] or result.at_rest or ["NOTHING WAS FOUND"]
        rows.append(f"| {guard} | {len(result.violations)} | {len(result.at_rest)} | {what[0]} |")
        print(rows[-1], flush=True)
    print("\n| guard switched off | violations | wrong at rest | the first |\n| --- | --- | --- | --- |")
    print("\n".join(rows))
    return status


def _report(result: Result, seed: int, seconds: float, guard: str) -> None:
    without = f", without {guard}" if guard else ""
    print(f"storm of {seconds:.0f} s with seed {seed}{without}: {result.rate:.1f} changes a second")
    _section("injected", (f"{count:6} {what}" for what, count in sorted(result.done.items())))
    _section("checked", (f"{result.checked[what]:6} {what}: {how}" for what, how in CHECKS.items()))
    if result.walked:
        print(
            f"  {result.walked:6} versions read one by one, since kube-apiserver's restart had ended the watch"
        )
    _section("memory", result.memory)
    print(f"at rest after {result.settled:.0f} s of quiet" if not result.at_rest else "never at rest")
    for violation in result.violations[:SHOWN]:
        _section(f"VIOLATION: {violation.text}", violation.story)
    if len(result.violations) > SHOWN:
        print(f"and {len(result.violations) - SHOWN} more violations")
    _section("WRONG AT REST", result.at_rest)
    _section("TROUBLE", result.troubles)
    if result.logs is not None:
        print(f"logs: {result.logs}")
        print(f"once more: make chaos SEED={seed} MINUTES={(seconds + QUIET_SHARE) / 60:g}")


def _section(title: str, lines: Iterable[str]) -> None:
    found = list(lines)
    if found:
        print(title)
        for line in found:
            print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
