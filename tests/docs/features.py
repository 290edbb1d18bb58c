"""docs/features.md: what there is behind which gate, and how many of the project's own conformance cases tell it. The cases are run for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.allocator.unbuilt import NODE_ALLOCATABLE
from dra_operator.cel import default_compiler
from dra_operator.features import FIELDS, GATES, ON_SINCE, PLAIN_NAMES, THERE_SINCE
from tests.conformance.lines import kind_of
from tests.conformance.problems import decode_case, own_lines
from tests.conformance.running import Verdict, verdict

from .markdown import generated, joined, table

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_V1: Final = 34
"""Of Kubernetes, the minor version that has `resource.k8s.io/v1`."""

INTRODUCTION = """
# Features

What of Dynamic Resource Allocation the allocator knows, each feature behind Kubernetes' own gate. The operator reads `resource.k8s.io/v1`: a server that has a feature off
keeps its fields off the objects, so nothing asks for it; what 1.37 has on by default is on here, and the others are named in the setting `featureGates`, as kube-scheduler has them. The number of cases is that of the project's own conformance cases
(`tests/conformance/cases/`) that need the gate, pass, and so show the feature at work; `make conformance` runs them.
"""

PLACED = "none: upstream's allocator does not look at it. The room of nodes counts it, in the forms of 1.36 and 1.37"

KINDS = """
## Other cases

Features that are always on, and what stands beside the allocator:
"""


def page() -> str:
    """The page.

    Raises:
        ValueError: a case fails, so that it tells nothing.
    """
    lines = [raw for _, raw in own_lines()]
    cases = [decode_case(raw, raw["id"]) for raw in lines if kind_of(raw) is None]
    compiler = default_compiler()
    if failing := [case.id for case in cases if verdict(case, compiler) != Verdict()]:
        raise ValueError(f"these cases fail: {', '.join(failing)}")
    needed = [frozenset(case.required or ()) for case in cases]
    rows = [_row(gates, str(sum(1 for each in needed if each & set(gates)))) for gates in GATES.values()]
    rows.append(_row((NODE_ALLOCATABLE,), PLACED))
    others = [
        ("the allocator, whatever the gates", str(sum(1 for each in needed if not each))),
        *((name, str(count)) for name, count in _others(kind_of(raw) for raw in lines)),
    ]
    return joined(
        generated("operator/dra_operator/features.py and a run of tests/conformance/cases"),
        INTRODUCTION,
        table(
            (
                "feature",
                "gate",
                "in Kubernetes since",
                "in API v1 since",
                "on by default since",
                "fields",
                "cases",
            ),
            sorted(rows),
        ),
        KINDS,
        table(("about", "cases"), others),
    )


def _row(gates: tuple[str, ...], cases: str) -> tuple[str, ...]:
    there = max(THERE_SINCE[gate] for gate in gates)
    since = [ON_SINCE.get(gate) for gate in gates]
    known = [minor for minor in since if minor is not None]
    on = f"1.{max(known)}" if len(known) == len(since) else "no version so far"
    fields = ", ".join(f"`{field}`" for gate in gates for field in FIELDS[gate])
    names = ", ".join(f"`{gate}`" for gate in gates)
    plain = PLAIN_NAMES[gates[0]]
    return (
        plain,
        names,
        f"1.{there}",
        f"1.{max(there, FIRST_V1)}",
        on,
        fields or "values of those before",
        cases,
    )


def _others(kinds: Iterable[str | None]) -> list[tuple[str, int]]:
    named = [kind for kind in kinds if kind is not None]
    return sorted((kind, named.count(kind)) for kind in set(named))
