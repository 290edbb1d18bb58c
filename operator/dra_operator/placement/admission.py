"""What a new pod gets on its way in: the operator's gate, its scheduler name, or nothing. Pure.

Asked by the admission webhook (`handlers`), which stands in for the MutatingAdmissionPolicy of manifests/gate-policy where the API server has
none: it must answer as that policy does, and as its variant in manifests/components/bind-pods does. One table of cases is run through all of
them (tests/admission.py), so whoever changes one side hears of the other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from dra_operator.model import GATE, SCHEDULER_NAME

if TYPE_CHECKING:
    from dra_operator.model import NewPod, NewPodSpec

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""What the API server has filled in before anybody is asked, where the user names no scheduler."""


class Way(StrEnum):
    """Which of the two policies is stood in for; also the path of the webhook."""

    GATE = "gate"
    NAME = "name"


class Admission(StrEnum):
    """What is done to a pod; the words are those of the metric."""

    GATED = "gated"
    NAMED = "named"
    UNTOUCHED = "untouched"


def admit(pod: NewPod, way: Way) -> Admission:
    """What a pod gets that is about to be created, in a namespace that the webhook is asked for.

    Asked again about its own answer, it changes nothing more.
    """
    spec = pod.spec
    if not _is_for_us(spec):
        return Admission.UNTOUCHED
    if way is Way.NAME and _can_be_bound_by_us(spec):
        return Admission.NAMED
    has_it = any(gate.name == GATE for gate in spec.scheduling_gates)
    return Admission.UNTOUCHED if has_it else Admission.GATED


def _is_for_us(spec: NewPodSpec) -> bool:
    """The policy's matchConditions. A gated pod with a node name would be refused by the API server."""
    return bool(spec.resource_claims) and not spec.node_name and spec.scheduler_name != SCHEDULER_NAME


def _can_be_bound_by_us(spec: NewPodSpec) -> bool:
    """The variables of components/bind-pods: for the default scheduler, at no gate, of no group, without volumes by claim."""
    return (
        spec.scheduler_name in {"", DEFAULT_SCHEDULER}
        and not spec.scheduling_gates
        and spec.scheduling_group is None
        and all(
            volume.persistent_volume_claim is None and volume.ephemeral is None for volume in spec.volumes
        )
    )
