"""Checks of single devices: there, usable on the node, selected, not tainted (alloc sections 2, 4 and 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelError

from .places import usable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.model import DeviceSelector, DeviceTaint, DeviceToleration

    from .facts import Claim, Facts, Known, Wanted
    from .places import Place
    from .snapshot import Broken

KEEP_OFF: Final = ("NoSchedule", "NoExecute")
"""Effects of taints that matter to allocations (alloc T-2)."""

NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""The feature that a node declares which can leave out operations."""


def check_places(facts: Facts) -> Iterator[Broken]:
    """Rules `pool`, `device`, `node`."""
    for claim in facts.claims:
        for result in claim.results:
            pool = facts.pool(result.device_id.pool_id, claim.node)
            if pool is not None and pool.problem:
                yield claim.broken("pool", pool.problem, result.request, result.device_id)
            elif pool is None or pool.find(result.device) is None:
                text = "there is no such device" if claim.node is None else "the node sees no such device"
                yield claim.broken("device", text, result.request, result.device_id)
        for known in claim.known:
            node = claim.node
            if node is not None and not usable(known.place, node):
                yield known.broken("node", f"it cannot be used on {node.name}")


def check_devices(facts: Facts) -> Iterator[Broken]:
    """Rules `gate` (what devices use), `node-operations`, `selector`, `taint`."""
    for known in facts.known:
        yield from _gates(known)
        problem = selector_problem(known.claim, known.wanted, known.place)
        if problem:
            yield known.broken("selector", problem)
        yield from _taints(known)


def _gates(known: Known) -> Iterator[Broken]:
    features, device = known.claim.snapshot.features, known.place.device
    if device.binding_conditions and not features.device_binding_and_status:
        yield known.broken("gate", "it has binding conditions, and they are off")
    if device.consumes_counters and not features.partitionable_devices:
        yield known.broken("gate", "it draws from counters, and partitionable devices are off")
    if known.place.slice_.spec.skip_node_operations and features.optional_node_operations:
        node = known.claim.node
        if node is not None and NODE_OPERATIONS not in node.status.declared_features:
            yield known.broken("node-operations", f"node {node.name} does not declare {NODE_OPERATIONS}")


def is_selected(claim: Claim, wanted: Wanted, place: Place) -> bool:
    """Whether the request selects the device, free or not (alloc L-1)."""
    hidden = place.device.binding_conditions and not claim.snapshot.features.device_binding_and_status
    if hidden or selector_problem(claim, wanted, place):
        return False
    return claim.node is None or usable(place, claim.node)


def selector_problem(claim: Claim, wanted: Wanted, place: Place) -> str:
    """The first selector of class or request that is not true on the device; empty if all are."""
    of_class = wanted.device_class.spec.selectors if wanted.device_class is not None else ()
    for owner, selectors in (("the class", of_class), ("the request", wanted.entry.selectors)):
        problem = _selector_problem(claim, selectors, place)
        if problem:
            return f"{owner}: {problem}"
    return ""


def _selector_problem(claim: Claim, selectors: Sequence[DeviceSelector], place: Place) -> str:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            return f"selector #{index} has no expression"
        try:
            compiled = claim.snapshot.selectors.compile(selector.cel.expression, claim.snapshot.features)
            if not compiled.matches(place.slice_, place.device):
                return f"selector #{index} is false"
        except CelError as error:
            return f"selector #{index} fails: {error}"
    return ""


def _taints(known: Known) -> Iterator[Broken]:
    if not known.claim.snapshot.features.device_taints:
        return
    ignored = known.claim.snapshot.ignored_taints
    for taint in known.place.device.taints:
        if taint.effect not in KEEP_OFF or taint.key in ignored:
            continue
        if not any(_tolerates(each, taint) for each in known.wanted.entry.tolerations):
            yield known.broken("taint", f"{taint.key}={taint.value}:{taint.effect} is not tolerated")


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value
