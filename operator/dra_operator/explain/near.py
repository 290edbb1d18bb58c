"""The smallest changes with which a pod could be served: proposed by what keeps devices off, and each tried by a search on the changed input.

The cheapest come first: wait for a pool, tolerate a taint, free a claim, ask for less of a capacity, drop a clause, drop a constraint, ask for fewer devices,
add devices. What no search has found to work is not proposed. It must not change the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from dra_operator.allocator import Rejection
from dra_operator.allocator import Why as Refusal
from dra_operator.model import DeviceSelector, DeviceToleration, base_request, to_object
from dra_operator.model.devices import CelSelector
from dra_operator.placement.lesser import asking, edited, lesser

from .clauses import clauses, without
from .figures import holder
from .sides import Supposed
from .told import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.model import Device, DeviceId, Node, ResourceClaim, ResourceSlice, ResourceSliceSpec

    from .figures import Form, Key, Part
    from .sides import Sides

TRIALS: Final = 48
"""Searches on changed input for one explanation. Arbitrary: some milliseconds each."""

NODES: Final = 3
"""Nodes on which one change is tried: those that come closest with it. Arbitrary."""

HOLDERS: Final = 8
"""Claims whose freeing is tried. Arbitrary."""

TAINTS: Final = 4
"""Taints of which the toleration is tried. Arbitrary."""

_HELD: Final = frozenset({"InUse", "SharedOut", "Counters", "Groups", "Capacity"})


class Proposal(NamedTuple):
    """A change that is worth a try.

    Attributes:
        change: as it would be told, without node.
        supposed: the changed input.
        form: the request that it is about; None for all.
        codes: reasons that it may overcome.
        node: where to try it; None for the nodes that come closest.
    """

    change: Change
    supposed: Supposed
    form: Form | None = None
    codes: AbstractSet[str] = frozenset()
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """A request, and what became of the devices that it could see."""

    form: Form
    parts: Sequence[Part]

    def there(self, node: Node) -> Iterator[Part]:
        """Those that the node reaches."""
        return (part for part in self.parts if part.reaches(node))


class Near:
    """The nodes by how close they come.

    Args:
        sides: of the pod.
        counted: its requests.
    """

    def __init__(self, sides: Sides, counted: Sequence[Counted]) -> None:
        self.sides = sides
        self.counted = counted
        self.nodes = sides.nodes()
        self._tables = [_by_place(one) for one in counted]

    def parts(self, number: int, node: Node) -> Sequence[Part]:
        """What a request could see on a node."""
        local, wide = self._tables[number]
        return [*local.get(node.name, ()), *(part for part in wide if part.reaches(node))]

    def available(self, number: int, node: Node, codes: AbstractSet[str] = frozenset()) -> int:
        """Free devices of a request on a node, and those that only such reasons keep off."""
        return sum(
            len(part.free) + sum(len(heap.devices) for key, heap in part.heaps.items() if key.code in codes)
            for part in self.parts(number, node)
        )

    def score(self, node: Node, form: Form | None = None, codes: AbstractSet[str] = frozenset()) -> int:
        """How many of the wanted devices the node has; reasons count as overcome for one request, or for all."""
        total = 0
        for number, one in enumerate(self.counted):
            found = self.available(number, node, codes if form is None or form is one.form else frozenset())
            total += min(found, one.form.wanted) if one.form.wanted else found
        return total

    def meets(self, node: Node) -> bool:
        """Whether each request, in one form at least, has enough free devices there, one request at a time."""
        met: dict[tuple[str, str], bool] = {}
        for number, one in enumerate(self.counted):
            base = one.form.claim.key, base_request(one.form.name)
            met[base] = met.get(base, False) or self.enough(number, node)
        return all(met.values())

    def enough(self, number: int, node: Node) -> bool:
        """Whether a request, by itself, has enough free devices there; for all devices, whether all that match are free."""
        wanted, free = self.counted[number].form.wanted, self.available(number, node)
        return (
            0 < free == sum(part.matching for part in self.parts(number, node))
            if not wanted
            else free >= wanted
        )

    def best(self, most: int, score: Callable[[Node], int]) -> Sequence[Node]:
        """The nodes that come closest and can take the pod, by name where they are alike; those that have nothing are none of them."""
        scored = [(score(node), -index, node) for index, node in enumerate(self.nodes)]
        found: list[Node] = []
        for value, _, node in sorted(
            filter(lambda item: item[0] > 0, scored), key=lambda item: (-item[0], -item[1])
        ):
            if value and not self.sides.problem(node)[1]:
                found.append(node)
            if len(found) == most:
                break
        return found


def _by_place(one: Counted) -> tuple[dict[str, list[Part]], list[Part]]:
    local: dict[str, list[Part]] = {}
    wide: list[Part] = []
    for part in one.parts:
        if part.reach is None and part.place:
            local.setdefault(part.place, []).append(part)
        else:
            wide.append(part)
    return local, wide


class Changes:
    """Finds the changes.

    Args:
        near: the nodes.
    """

    def __init__(self, near: Near) -> None:
        self._near = near
        self._sides = near.sides
        self._slices: dict[DeviceId, tuple[ResourceSlice, Device]] = {}

    def found(self) -> tuple[Change, ...]:
        """The first of each kind that works, the cheapest kind first."""
        told: dict[str, Change] = {}
        for proposal in self._proposals():
            if self._sides.trials >= TRIALS:
                break
            if proposal.change.code not in told and (node := self._works(proposal)) is not None:
                told[proposal.change.code] = replace(proposal.change, node=node.name)
        return tuple(told.values())

    def _works(self, proposal: Proposal) -> Node | None:
        nodes = [proposal.node] if proposal.node is not None else self._closest(proposal.form, proposal.codes)
        for node in nodes:
            if self._sides.trials < TRIALS and self._sides.serves(node, proposal.supposed):
                return node
        return None

    def _closest(self, form: Form | None, codes: AbstractSet[str]) -> Sequence[Node]:
        return self._near.best(NODES, lambda node: self._near.score(node, form, codes))

    def _proposals(self) -> Iterator[Proposal]:
        yield from self._complete()
        yield from self._tolerate()
        yield from self._free()
        for one in self._near.counted:
            yield from self._less(one)
        for one in self._near.counted:
            yield from self._drop(one.form, _heaps(one))
        yield from self._loosen()
        for number, one in enumerate(self._near.counted):
            yield from self._fewer(number, one.form)
        for number, one in enumerate(self._near.counted):
            yield from self._more(number, one)

    # --- one kind each

    def _complete(self) -> Iterator[Proposal]:
        for one in self._near.counted:
            for part in one.parts:
                if not any(key.code == "PoolIncomplete" for key in part.heaps):
                    continue
                slices = self._newest(part)
                whole = {
                    slice_.metadata.name: _supposed(
                        slice_,
                        replace(
                            slice_.spec, pool=replace(slice_.spec.pool, resource_slice_count=len(slices))
                        ),
                    )
                    for slice_ in slices
                }
                text = f"wait until pool {part.pool} is complete: what is published of it would do"
                change = Change("CompletePool", text, "", value=str(part.pool))
                yield Proposal(change, Supposed(slices=whole), one.form, frozenset({"PoolIncomplete"}))

    def _newest(self, part: Part) -> Sequence[ResourceSlice]:
        slices = [slice_ for side in self._sides.sides for slice_ in side.view.of_pool(part.pool)]
        newest = max((slice_.spec.pool.generation for slice_ in slices), default=0)
        return [slice_ for slice_ in slices if slice_.spec.pool.generation == newest]

    def _tolerate(self) -> Iterator[Proposal]:
        for one in self._near.counted:
            taints = dict.fromkeys(key.detail for key in _heaps(one) if key.code == "Tainted")
            for text in list(taints)[:TAINTS]:
                left, _, effect = text.rpartition(":")
                key, _, value = left.partition("=")
                toleration = DeviceToleration(key, "Equal" if value else "Exists", value, effect)
                form = one.form
                claim = edited(form.claim, form.name, tolerations=(*form.entry.tolerations, toleration))
                told = f"tolerate the taint {text} in request {form.name} of claim {form.claim.key}"
                yield _of_claim("Tolerate", told, form, claim, text, frozenset({"Tainted"}))

    def _free(self) -> Iterator[Proposal]:
        """Claims that hold what keeps the pod off the nodes that come closest without that."""
        own = self._sides.own
        tried: set[tuple[str, str]] = set()
        for one in self._near.counted:
            for node in self._closest(one.form, _HELD):
                for key in self._holders(one, node):
                    if key in own or (key, node.name) in tried or len(tried) >= HOLDERS:
                        continue
                    tried.add((key, node.name))
                    told = f"free {holder(key, self._sides.cluster)}"
                    change = Change("FreeClaim", told, "", value=key, request=one.form.name)
                    yield Proposal(change, Supposed(freed=frozenset({key})), one.form, _HELD, node)

    def _holders(self, one: Counted, node: Node) -> Iterator[str]:
        """Holders of devices that the request matches there; then, for what others draw, those of the same pools."""
        holders = self._sides.cluster.holders
        told: dict[str, None] = {}
        pools = set()
        for part in one.there(node):
            for key, heap in part.heaps.items():
                if key.code in _HELD:
                    told.update(dict.fromkeys(name for device in heap.devices for name in holders(device)))
                if key.code in {"Counters", "Groups"}:
                    pools.add(part.pool)
        for side in self._sides.sides:
            for pool in sorted(pools):
                devices = (
                    slice_.device_id(device)
                    for slice_ in side.view.of_pool(pool)
                    for device in slice_.spec.devices
                    if device.consumes_counters
                )
                told.update(dict.fromkeys(name for device in devices for name in holders(device)))
        return iter(told)

    def _less(self, one: Counted) -> Iterator[Proposal]:
        form = one.form
        short = frozenset({"Capacity"})
        for node in self._closest(form, short):
            refused = {
                device: Rejection(Refusal.CAPACITY)
                for part in one.there(node)
                for key, heap in part.heaps.items()
                if key.code == "Capacity"
                for device in heap.devices
            }
            devices = [(device, self._device(device)) for device in refused]
            used = self._sides.cluster.allocated_state().capacity
            for offer in lesser(form.entry, devices, refused, used)[:NODES]:
                amounts = ", ".join(f"{name} {amount}" for name, amount in offer.amounts.items())
                claim = asking(form.claim, form.name, form.entry, offer.amounts)
                told = f"ask for {amounts} in request {form.name} of claim {form.claim.key}"
                yield _of_claim("AskForLess", told, form, claim, amounts, short)._replace(node=node)

    def _drop(self, form: Form, heaps: Sequence[Key]) -> Iterator[Proposal]:
        failing = {(key.detail, key.clause) for key in heaps if key.code == "RequestSelector"}
        for index, selector in enumerate(form.entry.selectors):
            expression = selector.cel.expression if selector.cel else ""
            several = clauses(expression)
            for number, clause in enumerate(several):
                if (expression, clause if len(several) > 1 else "") not in failing:
                    continue
                rest = without(expression, number)
                kept = [
                    *form.entry.selectors[:index],
                    *([DeviceSelector(cel=CelSelector(expression=rest))] if rest else []),
                    *form.entry.selectors[index + 1 :],
                ]
                claim = edited(form.claim, form.name, selectors=tuple(kept))
                told = (
                    f"drop or correct the clause `{clause}` of request {form.name} of claim {form.claim.key}"
                )
                found = _of_claim("DropClause", told, form, claim, "", frozenset({"RequestSelector"}))
                yield found._replace(change=replace(found.change, clause=clause))

    def _loosen(self) -> Iterator[Proposal]:
        claims = {one.form.claim.key: one.form.claim for one in self._near.counted}
        for claim in claims.values():
            devices = claim.spec.devices
            for index, constraint in enumerate(devices.constraints):
                kept = (*devices.constraints[:index], *devices.constraints[index + 1 :])
                changed = replace(claim, spec=replace(claim.spec, devices=replace(devices, constraints=kept)))
                kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
                name = constraint.match_attribute or constraint.distinct_attribute or ""
                told = f"drop or loosen the constraint {kind} {name} (spec.devices.constraints[{index}]) of claim {claim.key}"
                change = Change(
                    "DropConstraint", told, "", claim.key, value=f"{kind} {name}", spec=_spec(changed)
                )
                yield Proposal(change, Supposed({claim.key: changed}))

    def _fewer(self, number: int, form: Form) -> Iterator[Proposal]:
        top = self._closest(form, frozenset())
        most = min(max((self._near.available(number, node) for node in top), default=0), form.wanted - 1)
        for count in range(most, max(0, most - NODES), -1):
            claim = edited(form.claim, form.name, count=count)
            told = f"ask for {count} instead of {form.wanted} device(s) in request {form.name} of claim {form.claim.key}"
            yield _of_claim("FewerDevices", told, form, claim, str(count), frozenset())

    def _more(self, number: int, one: Counted) -> Iterator[Proposal]:
        form = one.form
        for node in self._closest(form, frozenset()) or self._closest(form, _HELD):
            lacking = max(form.wanted, 1) - self._near.available(number, node)
            like = next((device for part in one.there(node) for device in _matching(part)), None)
            if lacking <= 0 or like is None:
                continue
            slice_ = self._slice(like)
            device = self._device(like)
            more = tuple(replace(device, name=f"{device.name}-more-{index}") for index in range(lacking))
            changed = _supposed(slice_, replace(slice_.spec, devices=(*slice_.spec.devices, *more)))
            told = f"add {lacking} more free device(s) like {like} on node {node.name}"
            change = Change(
                "AddDevices", told, "", form.claim.key, form.name, value=str(lacking), like=str(like)
            )
            yield Proposal(change, Supposed(slices={slice_.metadata.name: changed}), form, node=node)

    # --- devices

    def _device(self, device_id: DeviceId) -> Device:
        return self._find(device_id)[1]

    def _slice(self, device_id: DeviceId) -> ResourceSlice:
        return self._find(device_id)[0]

    def _find(self, device_id: DeviceId) -> tuple[ResourceSlice, Device]:
        if device_id not in self._slices:
            for side in self._sides.sides:
                for slice_ in side.view.of_pool(device_id.pool_id):
                    for device in slice_.spec.devices:
                        self._slices[slice_.device_id(device)] = slice_, device
        return self._slices[device_id]


def _supposed(slice_: ResourceSlice, spec: ResourceSliceSpec) -> ResourceSlice:
    """A slice with other content: without what answers of selectors are kept by, as those are of the slice that there is."""
    return replace(slice_, metadata=replace(slice_.metadata, uid="", generation=0), spec=spec)


def _heaps(one: Counted) -> list[Key]:
    """What is said of devices of the request, each once."""
    return list(dict.fromkeys(key for part in one.parts for key in part.heaps))


def _matching(part: Part) -> Iterator[DeviceId]:
    yield from part.free
    for key, heap in part.heaps.items():
        if key.code in _HELD:
            yield from heap.devices


def _spec(claim: ResourceClaim) -> dict[str, object]:
    found: dict[str, object] = to_object(claim)["spec"]
    return found


def _of_claim(
    code: str, text: str, form: Form, claim: ResourceClaim, value: str, codes: AbstractSet[str]
) -> Proposal:
    change = Change(code, text, "", claim.key, form.name, value=value, spec=_spec(claim))
    return Proposal(change, Supposed({claim.key: claim}), form, codes)
