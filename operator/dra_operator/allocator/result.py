"""Allocation results out of a solved search (alloc section 13).

Called by `allocate` once per claim. Nothing is decided here, except that node selectors which cannot be expressed fail (O-21). The
timestamp is the writer's business (B-4).
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

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

    from .capacity import Share
    from .pools import Candidate
    from .requests import Wanted

_SHARES: Final = uuid.UUID("6f0c9f0e-5d0b-4b52-9a5e-7d3f5c0a9d41")
"""The name space of share ids; any UUID does."""


class Taken(NamedTuple):
    """A device, and the request or alternative that it was taken for.

    Attributes:
        share: what was taken of a device that several may use; None for dedicated ones.
        drew: whether it drew from the counters of its pool.
        position: of the device among the candidates.
    """

    wanted: Wanted
    candidate: Candidate
    share: Share | None = None
    drew: bool = False
    position: int = -1


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
    results = tuple(
        _device_result(entry, features, _share_id(claim, number) if entry.share else None)
        for number, entry in enumerate(taken)
    )
    has_config = claim.spec.devices.config or any(wanted.device_class.spec.config for wanted in chosen)
    config = _cleared(chosen, (*_class_config(chosen), *_claim_config(claim, chosen))) if has_config else ()
    devices = DeviceAllocationResult(results=results, config=config)
    return AllocationResult(devices=devices, node_selector=_node_selector(claim, taken, node))


def _share_id(claim: ResourceClaim, number: int) -> str:
    """A UUID that no other share has (alloc Q-9), without chance: an allocation changes the claim's version, so no two of them have the same."""
    meta = claim.metadata
    return str(uuid.uuid5(_SHARES, f"{meta.uid or meta.key} {meta.resource_version} {number}"))


def _device_result(entry: Taken, features: Features, share_id: str | None) -> DeviceRequestAllocationResult:
    """One entry (alloc O-2…O-7, Q-9); `adminAccess` is there only when true (O-4)."""
    wanted, candidate, share, *_ = entry
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
        share_id=share_id,
        consumed_capacity=dict(share.amounts) if share else {},
        skip_node_operations=(
            candidate.slice_.spec.skip_node_operations if features.optional_node_operations else ()
        ),
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
    for _, candidate, *_ in taken:
        spec = candidate.slice_.spec
        published = candidate.device if spec.per_device_node_selection else spec
        if published.node_name is not None or candidate.device.binds_to_node:
            return _local(node.name)
        if published.node_selector is not None:
            term = _only_term(claim, candidate, published.node_selector)
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields)),))


@lru_cache(maxsize=1024)
def _local(node_name: str) -> NodeSelector:
    """The one form in which a driver on the node may later publish device status (cp V-80)."""
    name = NodeSelectorRequirement("metadata.name", "In", (node_name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))


def _only_term(claim: ResourceClaim, candidate: Candidate, selector: NodeSelector) -> NodeSelectorTerm:
    terms = selector.node_selector_terms
    if len(terms) != 1:
        text = f"create NodeSelector for claim {claim.metadata.name}: unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
        raise InvalidPool(str(candidate.pool_id), text)
    return terms[0]


def _merge(merged: list[NodeSelectorRequirement], added: Sequence[NodeSelectorRequirement]) -> None:
    """An AND without repetitions (alloc O-18, O-20)."""
    for need in added:
        if not any(_equal(need, known) for known in merged):
            merged.append(need)


def _equal(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))
