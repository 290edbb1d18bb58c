"""Scheduling constraints of a pod that placement does not evaluate (yet).

Called by `Placer.classify`. A pod that has one is left alone, with the field and the way out in its event: pinning it to a
node chosen without that constraint could strand it for good (cp I-27). The component `bind-pods` of the manifests says the same in CEL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.words import listed

from .faults import BY_KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import Pod

NAMED: Final = 3
"""Fields that a message names; more paths do not fit an event line."""

_STEPS: Final = {
    "spec.volumes": "a volume that binds it to no node, such as emptyDir, in place of each claim",
}
"""What helps, by the beginning of the path."""


def unevaluated_fields(pod: Pod) -> tuple[str, ...]:
    """Paths of the fields that hold a required constraint which we do not evaluate, in the order of the spec."""
    return tuple(_volume_fields(pod))


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


def _volume_fields(pod: Pod) -> Iterator[str]:
    for index, volume in enumerate(pod.spec.volumes):
        if volume.persistent_volume_claim is not None:
            yield f"spec.volumes[{index}].persistentVolumeClaim"
        elif volume.ephemeral is not None:
            yield f"spec.volumes[{index}].ephemeral"
