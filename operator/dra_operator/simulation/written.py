"""The claims and pods of a simulation as a Kubernetes List: as they would be once all is written, ready to be given again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .outcomes import CLAIM, POD

if TYPE_CHECKING:
    from .given import Given
    from .outcomes import Outcome, Report

UNSCHEDULABLE: Final = "Unschedulable"
"""core/v1's word for pods that no scheduler can place."""


def written(report: Report, given: Given) -> dict[str, Any]:
    """A List: each claim that the simulation looked at, once, then each pod; and what was not placed, beside the items.

    A pod that is placed has `spec.nodeName`; one that is not has the condition `PodScheduled` with the reason, as schedulers write it.
    """
    claims = {
        claim.key: given.raw(CLAIM)[claim.key] for outcome in report.outcomes for claim in outcome.claims
    }
    pods = [_pod(outcome, given.raw(POD)[outcome.key]) for outcome in report.outcomes if outcome.kind == POD]
    items = [*map(_tidy, claims.values()), *map(_tidy, pods)]
    unplaced = [_unplaced(outcome) for outcome in report.outcomes if not outcome.is_placed]
    return {"apiVersion": "v1", "kind": "List", "items": items, "notPlaced": unplaced}


def _unplaced(outcome: Outcome) -> dict[str, str]:
    return {
        "kind": outcome.kind,
        "namespace": outcome.namespace,
        "name": outcome.name,
        "reason": outcome.reason,
        "verdict": outcome.verdict,
        "message": outcome.message,
    }


def _pod(outcome: Outcome, raw: dict[str, Any]) -> dict[str, Any]:
    if outcome.is_placed:
        return raw
    status = raw.get("status", {})
    others = [found for found in status.get("conditions", ()) if found.get("type") != "PodScheduled"]
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": UNSCHEDULABLE,
        "message": f"{outcome.reason}: {outcome.message}",
    }
    return {**raw, "status": {**status, "conditions": [*others, condition]}}


def _tidy(raw: dict[str, Any]) -> dict[str, Any]:
    """In the order in which people write objects."""
    first = ("apiVersion", "kind", "metadata", "spec", "status")
    return {name: raw[name] for name in dict.fromkeys((*first, *raw)) if name in raw}
