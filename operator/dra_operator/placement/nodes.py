"""Whether a node can take a pod, devices aside: the filters of kube-scheduler that its default profile runs.

Called by `Placer` for candidate nodes only. Each check gives the text that kube-scheduler gives, so that users and their
tools recognise it; the first check that fails decides, in kube-scheduler's order (cp S-33). Not here: what looks at other
pods or at volumes (filters.py) and devices (the allocator).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.allocator import selector_matches
from dra_operator.cluster import NodeUsage
from dra_operator.errors import InvalidInput
from dra_operator.model import NodeSelector, Taint

from .outcomes import Cause
from .resources import absent_resources, resource_reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dra_operator.model import Node, NodeSelectorTerm, Pod, Toleration

    from .resources import Demand

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What a pod must tolerate to go to a cordoned node."""

EMPTY_USAGE: Final = NodeUsage()
"""A node with nothing on it: what does not fit there never fits."""

LIFECYCLE_PREFIXES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that Kubernetes itself sets for the state of a node, and takes off again."""

NOT_READY = "node(s) were not ready"
UNSCHEDULABLE = "node(s) were unschedulable"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Taint effects that keep pods off; PreferNoSchedule only ranks nodes."""


class NodeReason(NamedTuple):
    """Why a node cannot take a pod, in kube-scheduler's words, and whether only a change of the node or the pod can mend it."""

    cause: Cause
    text: str
    lasting: bool
    absent: tuple[str, ...] = ()
    """Resources that the node does not offer at all."""


def node_reason(
    pod: Pod, demand: Demand, node: Node, usage: NodeUsage, dra_resources: Collection[str]
) -> NodeReason | None:
    """Why the node cannot take the pod; None if it can.

    Args:
        pod: the pod; its own share of `usage` must not be counted in.
        demand: what the pod asks of any node, from `resources.demand_of`.
        node: the node.
        usage: what other pods use there, ours on their way included.
        dra_resources: extended resources that kube-scheduler can serve by a device class (alloc section 18).
    """
    found = standing_reason(pod, node)
    if found is not None:
        return found
    text = resource_reason(demand, node, usage, dra_resources)
    if text is None:
        return None
    lasting = resource_reason(demand, node, EMPTY_USAGE, dra_resources) is not None
    return NodeReason(Cause.ROOM, text, lasting, absent_resources(demand, node, dra_resources))


def standing_reason(pod: Pod, node: Node) -> NodeReason | None:
    """Why the node cannot take the pod whatever runs there: state, taints, affinity; None if it can."""
    if node.spec.unschedulable and not tolerates(pod.spec.tolerations, UNSCHEDULABLE_TAINT):
        return NodeReason(Cause.STATE, UNSCHEDULABLE, lasting=False)
    if not is_ready(node):
        return NodeReason(Cause.STATE, NOT_READY, lasting=False)
    taint = blocking_taint(pod, node)
    if taint is not None:
        return _taint_reason(taint)
    return None if matches_affinity(pod, node) else NodeReason(Cause.POD, AFFINITY, lasting=True)


def lasting_reason(pod: Pod, demand: Demand, node: Node, dra_resources: Collection[str]) -> NodeReason | None:
    """Why the node cannot take the pod even when it is up and empty; None if it can. Arguments as for `node_reason`."""
    taints = map(_taint_reason, _untolerated(pod, node))
    found = next((reason for reason in taints if reason.lasting), None)
    if found is not None:
        return found
    if not matches_affinity(pod, node):
        return NodeReason(Cause.POD, AFFINITY, lasting=True)
    text = resource_reason(demand, node, EMPTY_USAGE, dra_resources)
    if text is None:
        return None
    return NodeReason(Cause.ROOM, text, lasting=True, absent=absent_resources(demand, node, dra_resources))


def is_ready(node: Node) -> bool:
    """Whether its Ready condition is True; unknown and absent are not: the kubelet has to have said so."""
    return any(
        condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions
    )


def blocking_taint(pod: Pod, node: Node) -> Taint | None:
    """The first taint that keeps the pod off the node; None if there is none."""
    return next(_untolerated(pod, node), None)


def _untolerated(pod: Pod, node: Node) -> Iterator[Taint]:
    """The taints that keep the pod off the node."""
    for taint in node.spec.taints:
        if taint.effect in BLOCKING_EFFECTS and not tolerates(pod.spec.tolerations, taint):
            yield taint


def _taint_reason(taint: Taint) -> NodeReason:
    """In kube-scheduler's words; a taint for the state of the node goes as the state does."""
    shown = f"{taint.key}: {taint.value}" if taint.value else taint.key
    passes = taint.key.startswith(LIFECYCLE_PREFIXES)
    cause = Cause.STATE if passes else Cause.POD
    return NodeReason(cause, f"node(s) had untolerated taint {{{shown}}}", lasting=not passes)


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint (core/v1 rules; the alpha operators Gt and Lt never do)."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and bool(toleration.key) and toleration.value == taint.value


def matches_affinity(pod: Pod, node: Node) -> bool:
    """Whether nodeSelector and required node affinity both hold; a required selector without terms matches nothing."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(_holds(term, node) for term in required.node_selector_terms)


def _holds(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether a term matches; one that cannot be parsed does not, and another one may, as kube-scheduler sees the terms of pods."""
    try:
        return selector_matches(NodeSelector((term,)), node)
    except InvalidInput:
        return False
