"""What to tell of a pod that is bound already, and whose claims nobody will make fit (cp C-50…C-53, I-28).

By hand, by a DaemonSet, or by a scheduler that knows no claims: such a pod never passes kube-scheduler. Its kubelet starts it when each claim
is allocated and reserved for it, and says otherwise only that it is not. Called by `Intake`. It must not decide what is allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.allocator import selector_matches
from dra_operator.errors import InvalidInput

from .entries import LAG
from .outcomes import Wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import Node, NodeSelector, Pod, ResourceClaim

RUNNING: Final = "Running"
"""The phase of pods that the kubelet has started: it does only when their claims are in order."""


def elsewhere(node: Node, allocated: Iterable[ResourceClaim]) -> Wait | None:
    """The first claim whose devices the pod's node cannot reach; nobody else compares them (cp C-52).

    Quiet at first: the feeds of pods and claims overtake each other.
    """
    for claim in allocated:
        selector = _selector(claim)
        if selector is not None and not _reaches(node, claim):
            text = (
                f"spec.nodeName: Node {node.name}, to which this pod is bound, cannot reach the devices of ResourceClaim {claim.key}: "
                f"status.allocation.nodeSelector of the claim asks for {_where(selector)}. No pod is moved and no claim taken from its pods: "
                "delete this pod, and create it without spec.nodeName, or on that node, or with a claim of its own"
            )
            return Wait("AllocatedElsewhere", text, quiet=True, told_after=LAG)
    return None


def unserved(pod: Pod, theirs: Iterable[ResourceClaim]) -> Wait | None:
    """The first unallocated claim that is kube-scheduler's to allocate: it does so only for pods that it binds itself (cp C-51)."""
    for claim in theirs:
        text = (
            f"spec.nodeName: this pod is bound to Node {pod.spec.node_name} already, and ResourceClaim {claim.key} is not allocated: its "
            "devices are of pools that no AllocationPolicy owns, and kube-scheduler allocates for pods only that it binds itself. Create the "
            "pod without spec.nodeName, with a node affinity if it has to run there, or ask an admin to give the pool to dra-operator"
        )
        return Wait("NobodyAllocates", text, quiet=True, told_after=LAG)
    return None


def _reaches(node: Node, claim: ResourceClaim) -> bool:
    """Whether the devices of an allocated claim can be used on the node; also if its selector cannot be parsed: nobody knows then."""
    selector = _selector(claim)
    try:
        return selector is None or selector_matches(selector, node)
    except InvalidInput:
        return True


def _selector(claim: ResourceClaim) -> NodeSelector | None:
    return claim.status.allocation.node_selector if claim.status.allocation else None


def _where(selector: NodeSelector) -> str:
    """The nodes that a selector means, in words: by name if it names one."""
    fields = [need for term in selector.node_selector_terms for need in term.match_fields]
    names = [name for need in fields if need.operator == "In" for name in need.values]
    return f"node {names[0]}" if len(names) == 1 else "other nodes"
