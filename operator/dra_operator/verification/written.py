"""Checks of what is written besides the devices: fields of results, config, node selector (alloc section 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.model import (
    DeviceAllocationConfiguration,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Claim, Facts, Known
    from .snapshot import Broken


def check_fields(facts: Facts) -> Iterator[Broken]:
    """Rules `admin-access`, `tolerations`, `binding-conditions`, `skip-node-operations`."""
    for known in facts.known:
        result, device = known.result, known.place.device
        if result.admin_access is not (True if known.wanted.is_admin else None):
            yield known.broken("admin-access", f"it is {result.admin_access}")
        if result.tolerations != known.wanted.entry.tolerations:
            yield known.broken("tolerations", "they are not those of the request")
        on = facts.snapshot.features.device_binding_and_status
        right = (
            ((device.binding_conditions or ()), (device.binding_failure_conditions or ())) if on else ((), ())
        )
        if (result.binding_conditions, result.binding_failure_conditions) != right:
            yield known.broken("binding-conditions", "they are not those of the device")
        yield from _skipped(known)


def _skipped(known: Known) -> Iterator[Broken]:
    """All that the slice has, in its order; none while the gate is off (alloc O-7)."""
    on = known.claim.snapshot.features.optional_node_operations
    right = known.place.slice_.spec.skip_node_operations if on else ()
    if known.result.skip_node_operations != right:
        written = ", ".join(known.result.skip_node_operations) or "none"
        yield known.broken("skip-node-operations", f"{written} instead of {', '.join(right) or 'none'}")


def check_config(facts: Facts) -> Iterator[Broken]:
    """Rule `config`: entries in order, with their requests; those that are for all requests name none."""
    for claim in facts.claims:
        right = [_cleared(claim, each) for each in (*_of_classes(claim), *_of_claim(claim))]
        written = list(claim.allocated.allocation.devices.config)
        if written != right:
            yield claim.broken(
                "config", f"{len(written)} entries are not the {len(right)} that they have to be"
            )


def _of_classes(claim: Claim) -> Iterator[DeviceAllocationConfiguration]:
    """Each class once, where it is used first (alloc O-8)."""
    seen: set[str] = set()
    for first in claim.chosen:
        name = first.entry.device_class_name
        if name in seen or first.device_class is None:
            continue
        seen.add(name)
        refs = tuple(each.ref for each in claim.chosen if each.entry.device_class_name == name)
        for entry in first.device_class.spec.config:
            yield DeviceAllocationConfiguration("FromClass", refs, entry.opaque)


def _of_claim(claim: Claim) -> Iterator[DeviceAllocationConfiguration]:
    """Entries for all requests, and those that name a request or the alternative that was taken (alloc O-9)."""
    names = {name for each in claim.chosen for name in (each.base, each.ref)}
    for entry in claim.allocated.claim.spec.devices.config:
        if not entry.requests or not names.isdisjoint(entry.requests):
            yield DeviceAllocationConfiguration("FromClaim", entry.requests, entry.opaque)


def _cleared(claim: Claim, entry: DeviceAllocationConfiguration) -> DeviceAllocationConfiguration:
    covered = all(each.base in entry.requests or each.ref in entry.requests for each in claim.chosen)
    return DeviceAllocationConfiguration(entry.source, () if covered else entry.requests, entry.opaque)


def check_node_selector(facts: Facts) -> Iterator[Broken]:
    """Rule `node-selector`."""
    for claim in facts.claims:
        if claim.node is None or len(claim.known) < len(claim.results):
            continue
        right, written = _selector(claim.known, claim.node.name), claim.allocated.allocation.node_selector
        if written != right:
            yield claim.broken("node-selector", f"it is {_told(written)}, and has to be {_told(right)}")


def _told(selector: NodeSelector | None) -> str:
    return "none" if selector is None else str(selector.node_selector_terms)


def _selector(known: tuple[Known, ...], node_name: str) -> NodeSelector | None:
    """The node alone if one device is for it alone, else all that the devices ask of nodes (alloc O-15 to O-19)."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for each in known:
        spec, device = each.place.slice_.spec, each.place.device
        source = device if spec.per_device_node_selection else spec
        if source.node_name is not None or device.binds_to_node:
            only = NodeSelectorRequirement("metadata.name", "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(only,)),))
        for term in source.node_selector.node_selector_terms if source.node_selector is not None else ():
            _merge(fields, term.match_fields)
            _merge(labels, term.match_expressions)
    if not fields and not labels:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(labels), tuple(fields)),))


def _merge(into: list[NodeSelectorRequirement], more: tuple[NodeSelectorRequirement, ...]) -> None:
    for need in more:
        known = {(each.key, each.operator, frozenset(each.values)) for each in into}
        if (need.key, need.operator, frozenset(need.values)) not in known:
            into.append(need)
