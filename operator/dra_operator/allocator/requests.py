"""Claims as the search wants them: validated, with their classes, and with the members of allocationMode All counted.

Called once per node and call by `allocate`. Validation follows alloc E-6: claims in order,
requests in order, then the limit, then the constraints; nothing of the search has run by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import InvalidCapacity, InvalidClaim, InvalidPool, NodeFailure
from dra_operator.model import ExactDeviceRequest

from .answers import Answers, Ask
from .capacity import Rules, share_of
from .constraints import Attributes, Constraint, DistinctAttribute, MatchAttribute
from .matcher import (
    UNREADABLE,
    ClaimSpot,
    Matcher,
    check_readable,
    matcher_of,
    may_be_of,
    not_selectable,
)
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

_MODES: Final = frozenset({"All", "ExactCount"})


@dataclass(slots=True, eq=False)
class Wanted:
    """One request, or one alternative of a prioritized list.

    Attributes:
        claim: that it is of.
        path: of the entry in the claim.
        ref: `request` or `request/subrequest`, as results name it (alloc O-2).
        base: the top-level request.
        number: devices to take.
        members: for allocationMode All, positions in the view's candidates (alloc R-5); None for ExactCount.
        constraints: those of the claim that apply to it, in order; known once all requests are read.
        derived: expressions of derived attributes, by name (alloc D-1).
        is_admin: whether it only looks at devices, whoever uses them (alloc R-8, S-12).
        entry: as the claim has it.
        known: what the devices of the view are to it.
        is_all: whether it asks for all matching devices.
    """

    claim: ResourceClaim
    path: str
    ref: str
    base: str
    number: int
    members: tuple[int, ...] | None
    device_class: DeviceClass
    entry: AnyRequest
    derived: Mapping[str, str]
    known: Answers
    is_all: bool
    is_admin: bool
    _inputs: Inputs
    constraints: tuple[Constraint, ...] = ()
    _matcher: Matcher | None = None

    @property
    def report(self) -> RequestRef:
        """How the reporter names it."""
        return RequestRef(self.claim.metadata.key, self.ref)

    @property
    def spot(self) -> ClaimSpot:
        """How errors name it."""
        return ClaimSpot(claim_label(self.claim), f"ResourceClaim {self.claim.key}", f"{self.path}.")

    @property
    def matcher(self) -> Matcher:
        """Its selectors, those of the class first. Made when it is asked for: equal requests share what is known of devices."""
        if self._matcher is None:
            inputs = self._inputs
            self._matcher = matcher_of(
                inputs.selectors, inputs.features, self.device_class, self.entry, self.spot
            )
        return self._matcher

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
    """What it asks of capacities: name, units of 10^-9, and how it is written, which upstream minds (oracle 7 no. 3)."""
    if entry.capacity is None:
        return ()
    return tuple((name, asked.nano, asked.text) for name, asked in sorted(entry.capacity.requests.items()))


def _expressions(entry: AnyRequest) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in entry.selectors if selector.cel is not None)


def claim_label(claim: ResourceClaim) -> str:
    """`claim <namespace>/<name>`, or only the name (alloc E-14)."""
    return f"claim {claim.metadata.key}"


def _label(claim: ResourceClaim, request: str) -> str:
    """How upstream names a request or sub-request in errors."""
    return f"{claim_label(claim)}, request {request}"


class _Fault(NamedTuple):
    """What is wrong with an entry, where in it, and what upstream's name of the place has in addition."""

    path: str
    text: str
    more_label: str = ""


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
        name = base if isinstance(entry, ExactDeviceRequest) else entry.name
        fault = self._fault(entry)
        if fault is not None:
            raise _invalid(
                claim, f"{path}.{fault.path}", f"{_label(claim, name)}{fault.more_label}", fault.text
            )
        device_class = self._inputs.classes[entry.device_class_name]
        check_readable(device_class)
        is_all = entry.allocation_mode == "All"
        wanted = Wanted(
            claim=claim,
            path=path,
            ref=base if isinstance(entry, ExactDeviceRequest) else f"{base}/{name}",
            base=base,
            number=entry.count,
            members=None,
            device_class=device_class,
            entry=entry,
            derived={each.name: each.expression for each in entry.derived_attributes},
            known=self._answers(device_class, entry, is_all=is_all),
            is_all=is_all,
            is_admin=isinstance(entry, ExactDeviceRequest) and bool(entry.admin_access),
            _inputs=self._inputs,
        )
        if is_all:
            wanted.members = self._members(wanted, name)
            wanted.number = len(wanted.members)
        return wanted

    def _answers(self, device_class: DeviceClass, entry: AnyRequest, *, is_all: bool) -> Answers:
        ask = Ask(id(device_class), _expressions(entry), entry.tolerations, _amounts(entry), is_all)
        return self._view.memory.of(Answers, ask, lambda: Answers(device_class, len(self._view.candidates)))

    def _fault(self, entry: AnyRequest) -> _Fault | None:
        """What is wrong with an entry, first things first. Derived attributes must not be ignored without their gate: what they restrict would be
        allocated all the same (oracle 1.1).
        """
        features = self._inputs.features
        if entry.derived_attributes and not features.derived_attributes:
            text = "cannot handle request with derived attributes, the feature is disabled"
            return _Fault("derivedAttributes", text)
        for index, selector in enumerate(entry.selectors):
            if selector.cel is None:
                return _Fault(f"selectors[{index}]", UNREADABLE, f", selector #{index}")
        if getattr(entry, "admin_access", None) is not None and not features.admin_access:
            return _Fault("adminAccess", "admin access is requested, but the feature is disabled")
        if not entry.device_class_name:
            return _Fault("deviceClassName", "missing device class name (unsupported request type?)")
        if entry.device_class_name not in self._inputs.classes:
            text = f"could not retrieve device class {entry.device_class_name}: there is no such DeviceClass"
            return _Fault("deviceClassName", text)
        if entry.allocation_mode not in _MODES:
            return _Fault("allocationMode", f"unsupported count mode {entry.allocation_mode}")
        return _Fault("count", f"the count {entry.count} is negative") if entry.count < 0 else None

    def _members(self, wanted: Wanted, name: str) -> tuple[int, ...]:
        """Positions of all selectable devices (alloc R-5), without those that could not even serve it if nobody used them."""
        if wanted.known.members is not None:
            return wanted.known.members
        label = _label(wanted.claim, name)
        members: list[int] = []
        position = 0
        for pool in self._view.pools:
            if pool.problem is not None and self._concerns(pool.id, wanted.matcher):
                self._fail_all(pool, label)
            for slice_ in pool.slices:
                for _ in slice_.spec.devices:
                    if not_selectable(
                        self._inputs.features, self._view, wanted.matcher, position
                    ) is None and self._is_large_enough(wanted.claim, wanted.entry, position, label):
                        members.append(position)
                    position += 1
        wanted.known.members = tuple(members)
        return wanted.known.members

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
