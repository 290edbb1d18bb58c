"""Scheduling constraints of a pod that placement does not evaluate (yet).

Called by `Placer.classify`. A pod that has one is left alone, with the field and the way out in its event: pinning it to a
node chosen without that constraint could strand it for good (cp I-27).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.words import listed

from .faults import BY_KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import Pod, PodAffinityTerms

NAMED: Final = 3
"""Fields that a message names; more paths do not fit an event line."""

_STEPS: Final = {
    "spec.affinity": "preferredDuringSchedulingIgnoredDuringExecution in its place",
    "spec.topologySpreadConstraints": "whenUnsatisfiable: ScheduleAnyway",
    "spec.volumes": "a volume that binds it to no node, such as emptyDir, in place of each claim",
}
"""What helps, by the beginning of the path."""


def unevaluated_fields(pod: Pod) -> tuple[str, ...]:
    """Paths of the fields that hold a required constraint which we do not evaluate, in the order of the spec."""
    return (*_affinity_fields(pod), *_spread_fields(pod), *_volume_fields(pod))


def refusal(pod: Pod, fields: tuple[str, ...]) -> str:
    """The sentence for the user: which fields, and what to do."""
    steps = dict.fromkeys(map(_step, fields))
    ways = ["leave spec.schedulerName out"] if pod.names_us else []
    ways += [BY_KUBE_SCHEDULER] if pod.spec.resource_claims else []
    return (
        f"{listed(fields, NAMED)} must hold on the node that is chosen, and dra-operator does not evaluate such constraints yet. "
        f"Recreate the pod with {' and '.join(steps)}, or {' and '.join(ways)}"
    )


def _step(field: str) -> str:
    """What the pod can do without the constraint; a required node affinity beside it would not help, as it is not looked at."""
    return next(step for start, step in _STEPS.items() if field.startswith(start))


def _affinity_fields(pod: Pod) -> Iterator[str]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    if _is_required(affinity.pod_affinity):
        yield "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if _is_required(affinity.pod_anti_affinity):
        yield "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def _is_required(terms: PodAffinityTerms | None) -> bool:
    return terms is not None and bool(terms.required_during_scheduling_ignored_during_execution)


def _spread_fields(pod: Pod) -> Iterator[str]:
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            yield f"spec.topologySpreadConstraints[{index}]"


def _volume_fields(pod: Pod) -> Iterator[str]:
    for index, volume in enumerate(pod.spec.volumes):
        if volume.persistent_volume_claim is not None:
            yield f"spec.volumes[{index}].persistentVolumeClaim"
        elif volume.ephemeral is not None:
            yield f"spec.volumes[{index}].ephemeral"
