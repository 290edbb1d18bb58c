"""What must hold of all allocations when all is quiet: the rules of the specification, by the verifier that knows nothing of the allocator. Pure; reads lists as
the API gives them.

Judged are allocations that name one node, all together, so that none has what another holds; which claims were decided in one call is not known any more. Taints are not looked at: they may have come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.verification import Allocated, Snapshot, verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.model import AllocationResult

Object = dict[str, Any]

LATER: Final = frozenset({"taint", "all"})
"""Rules that hold when devices are given, and need not hold later."""


def disobeyed(
    claims: Sequence[Object], slices: Sequence[Object], classes: Sequence[Object], nodes: Sequence[Object]
) -> list[str]:
    """All rules that allocations break, one sentence each; empty is good."""
    by_name = {each["metadata"]["name"]: from_object(Node, each) for each in nodes}
    snapshot = Snapshot(
        DEFAULT_1_37,
        [from_object(ResourceSlice, each) for each in slices],
        {each["metadata"]["name"]: from_object(DeviceClass, each) for each in classes},
        default_compiler(),
    )
    judged = list(_judged([from_object(ResourceClaim, each) for each in claims], by_name))
    return [f"rule {each}" for each in verify(judged, snapshot) if each.rule not in LATER]


def _judged(claims: Sequence[ResourceClaim], nodes: dict[str, Node]) -> Iterator[Allocated]:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is not None and (name := _node_of(allocation)) in nodes:
            yield Allocated(claim, allocation, nodes[name], call=claim.key)


def _node_of(allocation: AllocationResult) -> str:
    """The node that an allocation names; empty if it names none, or several."""
    terms = allocation.node_selector.node_selector_terms if allocation.node_selector is not None else ()
    named = [each.values for term in terms for each in term.match_fields if each.key == "metadata.name"]
    return named[0][0] if len(terms) == 1 and len(named) == 1 and len(named[0]) == 1 else ""
