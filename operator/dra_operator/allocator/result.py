"""Allocation results out of a solved search (alloc section 13).

Called by `allocate` once per claim. Nothing is decided here, except that node selectors which cannot be expressed fail (O-21). The
timestamp is the writer's business (B-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dra_operator.errors import InvalidPool
from dra_operator.model import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.features import Features
    from dra_operator.model import Node, ResourceClaim

    from .pools import Candidate
    from .requests import Wanted


class Taken(NamedTuple):
    """A device, and the request or alternative that it was taken for."""

    wanted: Wanted
    candidate: Candidate


def build(
    claim: ResourceClaim, chosen: Sequence[Wanted], taken: Sequence[Taken], node: Node, features: Features
) -> AllocationResult:
    """The result of one claim.

    Args:
        claim: as given.
        chosen: per top-level request the entry that was satisfied, in claim order.
        taken: in the order of taking (alloc O-1).
        node: the node that the search was for.
        features: which fields are copied.

    Raises:
        InvalidPool: a used slice selects nodes by other than one term (alloc O-21).
    """
    results = tuple(_device_result(entry, features) for entry in taken)
    config = _cleared(chosen, (*_class_config(chosen), *_claim_config(claim, chosen)))
    devices = DeviceAllocationResult(results=results, config=config)
    return AllocationResult(devices=devices, node_selector=_node_selector(claim, taken, node))


def _device_result(entry: Taken, features: Features) -> DeviceRequestAllocationResult:
    """One entry (alloc O-2…O-6); `adminAccess` is there only when true (O-4)."""
    wanted, candidate = entry
    device = candidate.device
    binding = features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=wanted.ref,
        driver=candidate.id.driver,
        pool=candidate.id.pool,
        device=candidate.id.device,
        admin_access=True if wanted.is_admin else None,
        tolerations=wanted.tolerations,
        binding_conditions=(device.binding_conditions or ()) if binding else (),
        binding_failure_conditions=(device.binding_failure_conditions or ()) if binding else (),
    )


def _class_config(chosen: Sequence[Wanted]) -> Iterator[DeviceAllocationConfiguration]:
    """Each class once, where it is used first, with all requests that use it (alloc O-8)."""
    users: dict[str, list[Wanted]] = {}
    for wanted in chosen:
        users.setdefault(wanted.device_class.metadata.name, []).append(wanted)
    for wanteds in users.values():
        refs = tuple(wanted.ref for wanted in wanteds)
        for config in wanteds[0].device_class.spec.config:
            yield DeviceAllocationConfiguration(source="FromClass", requests=refs, opaque=config.opaque)


def _claim_config(claim: ResourceClaim, chosen: Sequence[Wanted]) -> Iterator[DeviceAllocationConfiguration]:
    """Entries for all requests, or naming a request or a chosen alternative; lists are kept verbatim (alloc O-9)."""
    known = {name for wanted in chosen for name in (wanted.base, wanted.ref)}
    for config in claim.spec.devices.config:
        if not config.requests or known.intersection(config.requests):
            yield DeviceAllocationConfiguration(
                source="FromClaim", requests=config.requests, opaque=config.opaque
            )


def _cleared(
    chosen: Sequence[Wanted], config: tuple[DeviceAllocationConfiguration, ...]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Lists that cover every request become empty, which means all (alloc O-10)."""
    return tuple(
        DeviceAllocationConfiguration(source=entry.source, opaque=entry.opaque)
        if all(not {wanted.base, wanted.ref}.isdisjoint(entry.requests) for wanted in chosen)
        else entry
        for entry in config
    )


def _node_selector(claim: ResourceClaim, taken: Sequence[Taken], node: Node) -> NodeSelector | None:
    """Where all the devices can be used; None means everywhere (alloc O-14…O-21)."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for _, candidate in taken:
        spec = candidate.slice_.spec
        published = candidate.device if spec.per_device_node_selection else spec
        if published.node_name is not None or candidate.device.binds_to_node:
            return _local(node)
        if published.node_selector is not None:
            term = _only_term(claim, candidate, published.node_selector)
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields)),))


def _local(node: Node) -> NodeSelector:
    """The one form in which a driver on the node may later publish device status (cp V-80)."""
    name = NodeSelectorRequirement("metadata.name", "In", (node.name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))


def _only_term(claim: ResourceClaim, candidate: Candidate, selector: NodeSelector) -> NodeSelectorTerm:
    terms = selector.node_selector_terms
    if len(terms) != 1:
        text = f"create NodeSelector for claim {claim.metadata.name}: unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
        raise InvalidPool(str(candidate.id.pool_id), text)
    return terms[0]


def _merge(merged: list[NodeSelectorRequirement], added: Sequence[NodeSelectorRequirement]) -> None:
    """An AND without repetitions (alloc O-18, O-20)."""
    for need in added:
        if not any(_equal(need, known) for known in merged):
            merged.append(need)


def _equal(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))
