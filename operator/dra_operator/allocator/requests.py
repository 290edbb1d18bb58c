"""Claims as the search wants them: validated, with their classes, and with the members of allocationMode All counted.

Called once per node and call by `allocate`. Validation follows alloc E-6: claims in order,
requests in order, then the limit, then the constraints; nothing of the search has run by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dra_operator.errors import InvalidCapacity, InvalidClaim, InvalidPool, NodeFailure
from dra_operator.model import ExactDeviceRequest

from .capacity import Rules, share_of
from .constraints import Attributes, Constraint, DistinctAttribute, MatchAttribute
from .matcher import UNREADABLE, ClaimSpot, Matcher, matcher_of, may_be_of, not_selectable
from .reporter import RequestRef
from .state import RESULTS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.model import (
        DeviceClass,
        DeviceRequest,
        DeviceSubRequest,
        DeviceToleration,
        PoolId,
        ResourceClaim,
    )

    from .pools import Pool, View
    from .state import Inputs, Options

    AnyRequest = ExactDeviceRequest | DeviceSubRequest


@dataclass(slots=True, eq=False)
class Wanted:
    """One request, or one alternative of a prioritized list.

    Attributes:
        ref: `request` or `request/subrequest`, as results name it (alloc O-2).
        base: the top-level request.
        number: devices to take.
        members: for allocationMode All, positions in the view's candidates (alloc R-5); None for ExactCount.
        constraints: those of the claim that apply to it, in order; known once all requests are read.
        derived: expressions of derived attributes, by name (alloc D-1).
        is_admin: whether it only looks at devices, whoever uses them (alloc R-8, S-12).
        spot: how errors name it.
        entry: as the claim has it.
        amounts: what it asks of capacities: name, units of 10^-9, and how it is written, which upstream minds (oracle 7 no. 3).
    """

    report: RequestRef
    ref: str
    base: str
    number: int
    members: tuple[int, ...] | None
    device_class: DeviceClass
    matcher: Matcher
    spot: ClaimSpot
    entry: AnyRequest
    derived: Mapping[str, str]
    amounts: tuple[tuple[str, int, str], ...] = ()
    constraints: tuple[Constraint, ...] = ()
    is_admin: bool = False

    @property
    def is_all(self) -> bool:
        """Whether it asks for all matching devices."""
        return self.members is not None

    @property
    def tolerations(self) -> tuple[DeviceToleration, ...]:
        """Of device taints (alloc T-8)."""
        return self.entry.tolerations

    def derived_path(self, name: str) -> str:
        """Where in the claim the expression of a derived attribute is."""
        names = [each.name for each in self.entry.derived_attributes]
        return f"{self.spot.path}derivedAttributes[{names.index(name)}].expression"


@dataclass(frozen=True, slots=True)
class Request:
    """A top-level request: one entry, or the alternatives of a prioritized list in order."""

    name: str
    alternatives: tuple[Wanted, ...]
    is_list: bool

    @property
    def minimum(self) -> int:
        """Fewest devices that can satisfy it (alloc R-7)."""
        return min(wanted.number for wanted in self.alternatives)


@dataclass(frozen=True, slots=True)
class ClaimRequests:
    """A claim, validated.

    Attributes:
        claim: as given.
        requests: in claim order.
    """

    claim: ResourceClaim
    requests: tuple[Request, ...]


def _amounts(entry: AnyRequest) -> tuple[tuple[str, int, str], ...]:
    if entry.capacity is None:
        return ()
    return tuple((name, asked.nano, asked.text) for name, asked in sorted(entry.capacity.requests.items()))


def claim_label(claim: ResourceClaim) -> str:
    """`claim <namespace>/<name>`, or only the name (alloc E-14)."""
    return f"claim {claim.metadata.key}"


class Reader:
    """Validates the claims of one call.

    Args:
        inputs: classes, features, compiler.
        options: scopes of errors.
        view: what the node sees.
    """

    def __init__(self, inputs: Inputs, options: Options, view: View) -> None:
        self._inputs = inputs
        self._options = options
        self._view = view
        self._attributes = Attributes(inputs.selectors, inputs.features)
        self._lists = inputs.features.list_type_attributes

    def read(self, claim: ResourceClaim) -> ClaimRequests:
        """Validate one claim.

        Raises:
            InvalidClaim: alloc E-6…E-9.
            NodeFailure: mode All, and a pool that matters is incomplete or invalid (alloc E-13).
            InvalidPool: the same in upstream's scope (BUG-10).
            CelError: from counting the members of mode All.
        """
        constraints: list[Constraint] = []
        requests, total = [], 0
        for index, request in enumerate(claim.spec.devices.requests):
            path = f"spec.devices.requests[{index}]"
            requests.append(self._request(claim, request, path))
            minimum = requests[-1].minimum
            if total + minimum > RESULTS_LIMIT:
                raise _over_the_limit(claim, request, path, minimum, total)
            total += minimum
        for index, constraint in enumerate(claim.spec.devices.constraints):
            if constraint.match_attribute is not None:
                constraints.append(MatchAttribute(constraint, index, self._attributes, lists=self._lists))
            elif constraint.distinct_attribute is not None:
                constraints.append(DistinctAttribute(constraint, index, self._attributes, lists=self._lists))
            else:
                where = f"spec.devices.constraints[{index}]"
                text = "empty constraint (unsupported constraint type?)"
                raise _invalid(claim, where, f"{claim_label(claim)}, constraint #{index}", text)
        for constraint_ in constraints:
            _bind(constraint_, requests)
        return ClaimRequests(claim, tuple(requests))

    def _request(self, claim: ResourceClaim, request: DeviceRequest, path: str) -> Request:
        self._check_gates(claim, request, path)
        if request.first_available:
            alternatives = tuple(
                self._wanted(claim, request.name, sub, f"{path}.firstAvailable[{index}]")
                for index, sub in enumerate(request.first_available)
            )
            return Request(request.name, alternatives, is_list=True)
        if request.exactly is None:
            label = f"{claim_label(claim)}, request {request.name}"
            raise _invalid(claim, path, label, "needs either exactly or firstAvailable")
        return Request(
            request.name,
            (self._wanted(claim, request.name, request.exactly, f"{path}.exactly"),),
            is_list=False,
        )

    def _check_gates(self, claim: ResourceClaim, request: DeviceRequest, path: str) -> None:
        """Gates of the request as a whole (alloc E-7a, E-7b)."""
        if request.first_available and not self._inputs.features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise _invalid(claim, path, f"{claim_label(claim)}, request {request.name}", text)
        if self._inputs.features.consumable_capacity:
            return
        named: list[tuple[str, AnyRequest | None]] = [(f"request {request.name}", request.exactly)]
        named += [(f"subrequest {sub.name}", sub) for sub in request.first_available]
        for label, entry in named:
            if entry is not None and entry.capacity is not None:
                text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                raise _invalid(claim, path, f"{claim_label(claim)}, {label}", text)

    def _wanted(self, claim: ResourceClaim, base: str, entry: AnyRequest, path: str) -> Wanted:
        """Validate one entry in the order of alloc E-7c…E-7g and count its devices."""
        ref = base if isinstance(entry, ExactDeviceRequest) else f"{base}/{entry.name}"
        label = (
            f"{claim_label(claim)}, request {base if isinstance(entry, ExactDeviceRequest) else entry.name}"
        )
        self._check_derived(claim, entry, path, label)
        device_class = self._check_entry(claim, entry, path, label)
        spot = ClaimSpot(claim_label(claim), f"ResourceClaim {claim.key}", f"{path}.")
        matcher = matcher_of(self._inputs.selectors, self._inputs.features, device_class, entry, spot)
        members = self._members(claim, entry, matcher, label) if entry.allocation_mode == "All" else None
        return Wanted(
            report=RequestRef(claim.metadata.key, ref),
            ref=ref,
            base=base,
            number=entry.count if members is None else len(members),
            members=members,
            device_class=device_class,
            matcher=matcher,
            spot=spot,
            entry=entry,
            amounts=_amounts(entry),
            derived={each.name: each.expression for each in entry.derived_attributes},
            is_admin=bool(getattr(entry, "admin_access", None)),
        )

    def _check_derived(self, claim: ResourceClaim, entry: AnyRequest, path: str, label: str) -> None:
        """Without the gate they must not be ignored: what they restrict would be allocated all the same (oracle 1.1)."""
        if entry.derived_attributes and not self._inputs.features.derived_attributes:
            text = "cannot handle request with derived attributes, the feature is disabled"
            raise _invalid(claim, f"{path}.derivedAttributes", label, text)

    def _check_entry(self, claim: ResourceClaim, entry: AnyRequest, path: str, label: str) -> DeviceClass:
        for index, selector in enumerate(entry.selectors):
            if selector.cel is None:
                where = f"{label}, selector #{index}"
                raise _invalid(claim, f"{path}.selectors[{index}]", where, UNREADABLE)
        if getattr(entry, "admin_access", None) is not None and not self._inputs.features.admin_access:
            text = "admin access is requested, but the feature is disabled"
            raise _invalid(claim, f"{path}.adminAccess", label, text)
        if not entry.device_class_name:
            text = "missing device class name (unsupported request type?)"
            raise _invalid(claim, f"{path}.deviceClassName", label, text)
        device_class = self._inputs.classes.get(entry.device_class_name)
        if device_class is None:
            text = f"could not retrieve device class {entry.device_class_name}: there is no such DeviceClass"
            raise _invalid(claim, f"{path}.deviceClassName", label, text)
        if entry.allocation_mode not in {"All", "ExactCount"}:
            text = f"unsupported count mode {entry.allocation_mode}"
            raise _invalid(claim, f"{path}.allocationMode", label, text)
        if entry.count < 0:
            raise _invalid(claim, f"{path}.count", label, f"the count {entry.count} is negative")
        return device_class

    def _members(
        self, claim: ResourceClaim, entry: AnyRequest, matcher: Matcher, label: str
    ) -> tuple[int, ...]:
        """Positions of all selectable devices (alloc R-5), without those that could not even serve it if nobody used them."""
        members: list[int] = []
        position = 0
        for pool in self._view.pools:
            if pool.problem is not None and self._concerns(pool.id, matcher):
                self._fail_all(pool, label)
            for slice_ in pool.slices:
                for _ in slice_.spec.devices:
                    if not_selectable(
                        self._inputs.features, self._view, matcher, position
                    ) is None and self._is_large_enough(claim, entry, position, label):
                        members.append(position)
                    position += 1
        return tuple(members)

    def _is_large_enough(self, claim: ResourceClaim, entry: AnyRequest, position: int, label: str) -> bool:
        """Whether the device has what is asked for; what others use of it is not looked at."""
        features, device = self._inputs.features, self._view.candidates[position].device
        if not features.consumable_capacity:
            return True
        try:
            rules = Rules(features.fractional_capacity_range, self._options.upstream_0_37)
            share = share_of(device, entry.capacity, rules)
        except InvalidCapacity as error:
            if self._options.upstream_0_37:
                text = f"checking capacity for device {device.name}: {error}"
                raise _invalid(claim, "", label, text) from error
            return False
        return not share.refusal

    def _concerns(self, pool_id: PoolId, matcher: Matcher) -> bool:
        """Whether devices of the pool could be members; upstream asks any pool of the node to be whole (alloc R-5)."""
        return self._options.upstream_0_37 or may_be_of(matcher, pool_id)

    def _fail_all(self, pool: Pool, label: str) -> None:
        state = "being updated" if pool.is_incomplete else "invalid"
        text = f"{label}: asks for all devices, but resource pool {pool.id} is currently {state}"
        raise InvalidPool(str(pool.id), text) if self._options.upstream_0_37 else NodeFailure(text)


def _invalid(claim: ResourceClaim, path: str, label: str, text: str) -> InvalidClaim:
    """`label` is how upstream names the place, `text` what is wrong there."""
    return InvalidClaim(path, f"{label}: {text}", claim=claim.key, plain=text)


def _over_the_limit(
    claim: ResourceClaim, request: DeviceRequest, path: str, minimum: int, total: int
) -> InvalidClaim:
    """More devices than an allocation has room for (alloc E-8); a count of `All` is one of the moment."""
    entry = request.exactly
    mode = (
        ""
        if entry is None
        else ".exactly.count"
        if entry.allocation_mode != "All"
        else ".exactly.allocationMode"
    )
    asks = "for All finds" if mode.endswith("Mode") else "asks for" if mode else "asks for at least"
    more = f", with {total} asked for by the requests before it" if total else ""
    return InvalidClaim(
        f"{path}{mode}",
        f"{claim_label(claim)}, request {request.name}: adding {minimum} devices exceeds the claim limit of "
        f"{RESULTS_LIMIT}, with {total} already accounted for",
        claim=claim.key,
        plain=f"request {request.name} {asks} {minimum} devices{more}; a claim can hold {RESULTS_LIMIT}: ask for the others in a second claim",
    )


def _bind(constraint: Constraint, requests: Sequence[Request]) -> None:
    """Give it to the alternatives that it applies to."""
    for request in requests:
        for wanted in request.alternatives:
            if constraint.applies_to(wanted.base, wanted.ref):
                wanted.constraints = (*wanted.constraints, constraint)
