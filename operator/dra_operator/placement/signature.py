"""When two pods are alike for placement: then the failure of one is the failure of the other, until something changes.

A burst of equal pods on a full cluster would otherwise search all nodes once for each. Pure; used by the allocation controller and by
`simulation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dra_operator.cluster import volume_claim_keys
from dra_operator.model import to_object

if TYPE_CHECKING:
    from dra_operator.model import Pod, Value

    from .outcomes import Allocate


def signature(pod: Pod, work: Allocate, *, by_labels: bool = False) -> bytes:
    """Equal for pods that only differ in names; empty for pods that are like no other.

    Pods with an allocated claim, with volumes by claim, or bound or nominated to a node, have something of their own; so are those that
    devices failed.

    Args:
        pod: the pod.
        work: what is to be allocated for it.
        by_labels: whether its labels count: pods on nodes keep others off by them. Those of pods with constraints on other pods always do.
    """
    is_own = work.allocated or work.bound_node or work.avoid or pod.status.nominated_node_name
    if is_own or volume_claim_keys(pod):
        return b""
    spec = msgspec.structs.replace(pod.spec, resource_claims=())
    sides = [[_plain(claim.spec) for claim in claims] for claims in (work.ours, work.theirs)]
    matters = by_labels or spec.affinity is not None or bool(spec.topology_spread_constraints)
    labels = pod.metadata.labels if matters else {}
    entries = [entry.name for entry in pod.spec.resource_claims]  # by which containers refer to the claims
    known = [pod.metadata.namespace, labels, to_object(spec), entries, sides]
    return msgspec.json.encode(known, order="sorted")


def _plain(value: Value) -> dict[str, object]:
    return to_object(value)
