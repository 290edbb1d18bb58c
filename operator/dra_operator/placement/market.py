"""The claims of one side of a pod, and the pools that they can be served from.

`Placer` makes two for each decision: ours from owned pools, kube-scheduler's from the others. A market tells whether a node is
worth a search, searches it, and says afterwards what went wrong. Findings are made only when they are asked for, as most nodes that
fail are forgotten when a later one succeeds. It must not look at anything of a node but its devices.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as replace_fields

from dra_operator.allocator import (
    SILENT,
    AllocatedState,
    Allocator,
    Collector,
    Options,
    RequestRef,
    Why,
    view_of,
)
from dra_operator.errors import (
    AllConflict,
    CelError,
    NodeFailure,
    NoSolution,
    SearchLimitReached,
    Unsatisfied,
)
from dra_operator.model import POD_CLAIM_NAME

from .candidates import Supply, all_needs, needs_of
from .findings import tallies
from .lesser import asking, lesser
from .options import DEFAULT_TOTAL_LOOKS, DEFAULT_TOTAL_STEPS
from .outcomes import Cause, ClaimDecision, NodeFinding, Offer
from .ownership import alternatives

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.allocator import Inputs, Rejection, Reporter
    from dra_operator.cluster import RestrictedSlices
    from dra_operator.model import (
        AllocationResult,
        DeviceId,
        DeviceSubRequest,
        ExactDeviceRequest,
        Node,
        PoolId,
        ResourceClaim,
        ResourceSlice,
    )

    from .candidates import Need
    from .census import Census
    from .outcomes import DeviceTally

    Teller = Callable[[], NodeFinding]

VALIDATION_STEPS: Final = 1
"""A search that is only asked whether the claims are valid ends at once."""


DETAIL_STEPS: Final = 20_000
"""Search steps for explanations of one decision: they repeat searches that failed. Nodes beyond it fold into the same text without
figures. Arbitrary; a tenth of what the decision itself may take."""

DETAIL_LOOKS: Final = 30_000
"""The same for looks at devices."""

OFFERS: Final = 4
"""Smaller amounts that are tried on a node whose devices have too little capacity. Arbitrary: each is a search."""


class NodeError(Exception):
    """A node does not serve the pod; `tell` makes the finding. Never leaves this package."""

    def __init__(self, tell: Teller) -> None:
        super().__init__("the node does not serve the pod")
        self.tell = tell


class Limits(NamedTuple):
    """How far one side of a decision may search, over all nodes; None for no limit.

    Args:
        steps: search steps.
        looks: looks at devices.
    """

    steps: int | None
    looks: int | None


DEFAULT_LIMITS: Final = Limits(DEFAULT_TOTAL_STEPS, DEFAULT_TOTAL_LOOKS)
"""Those of `PlacementOptions`."""


class Market:
    """One side of one decision.

    Args:
        census: what is published.
        view: the slices of the pools that count.
        inputs: of the allocator, over the same slices.
        options: of the allocator.
        claims: unallocated, in pod order; may be empty.
        total: limits over all nodes.

    Attributes:
        steps: search steps taken for the decision itself, explanations aside.
        looks: looks at devices, the same.
        limits: nodes whose search was given up.
    """

    def __init__(
        self,
        census: Census,
        view: RestrictedSlices,
        inputs: Inputs,
        options: Options,
        claims: Sequence[ResourceClaim],
        total: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.steps = 0
        self.looks = 0
        self.limits = 0
        self._total = total
        self._details = DETAIL_STEPS
        self._detail_looks = DETAIL_LOOKS
        self._last: Need | None = None
        self._census = census
        self._view = view
        self._inputs = inputs
        self._options = options
        self._claims = claims
        self._needs = needs_of(claims)
        self._supply = Supply(census, view.includes, inputs.allocated.devices, self._needs)

    def check(self, node: Node) -> None:
        """Count the node's free devices.

        Raises:
            NodeError: there are surely too few.
        """
        need = self._supply.lacking(node.name)
        if need is not None:
            raise NodeError(lambda: self._shortage(need, node))

    def allocate(self, node: Node) -> tuple[ClaimDecision, ...]:
        """Devices for all claims together, on one node.

        Raises:
            NodeError: there is no solution there, or none was found.
            CelError, InvalidClaim, FeatureUnsupported: as the allocator raises them.
        """
        if not self._claims:
            return ()
        if self._is_used_up:
            unsearched = NodeFinding(
                node.name, Cause.LIMIT, "node(s) were not searched after others took too long"
            )
            raise NodeError(lambda: unsearched)
        try:
            results = self._search(node)
        except (NoSolution, AllConflict) as error:
            raise NodeError(lambda: self._conflict(node)) from error
        except NodeFailure as error:
            fault = _fault(node.name, error)
            raise NodeError(lambda: fault) from error
        except SearchLimitReached as error:
            self.limits += 1
            text = f"node(s) where the search gave up after {error.effort}"
            limit = NodeFinding(node.name, Cause.LIMIT, text)
            raise NodeError(lambda: limit) from error
        return tuple(map(ClaimDecision, self._claims, results))

    def _search(self, node: Node) -> tuple[AllocationResult, ...]:
        options = replace(
            self._options,
            max_steps=_least(self._options.max_steps, _left(self._total.steps, self.steps)),
            max_looks=_least(self._options.max_looks, _left(self._total.looks, self.looks)),
        )
        allocator = Allocator(self._inputs, options, SILENT)
        try:
            return allocator.allocate(node, self._claims)
        finally:
            self.steps += allocator.steps
            self.looks += allocator.looks

    @property
    def _is_used_up(self) -> bool:
        left = (_left(self._total.steps, self.steps), _left(self._total.looks, self.looks))
        return any(limit is not None and limit <= 0 for limit in left)

    def validate(self, node: Node) -> None:
        """Have the allocator say what is wrong with the claims themselves, even if no node was worth a search.

        Raises:
            InvalidClaim, FeatureUnsupported: that is why the pod will never be served.
        """
        if self._claims:
            options = Options(ignored_taints=self._options.ignored_taints, max_steps=VALIDATION_STEPS)
            with suppress(Unsatisfied, CelError):
                Allocator(self._inputs, options, SILENT).allocate(node, self._claims)

    # --- candidates

    def local_nodes(self) -> tuple[Sequence[str], Need] | None:
        """See `Supply.local_nodes`."""
        return self._supply.local_nodes()

    def absence(self, need: Need, count: int, *, nowhere: bool) -> NodeFinding:
        """The finding for nodes that no matching slice names; with figures over all pools if that is every node."""
        text = f"node(s) have no device for {self._label(need)}"
        slices = self._view.all() if nowhere else ()
        found = tallies(self._census, need, slices, self._inputs.allocated.devices) if nowhere else ()
        return NodeFinding("", Cause.ABSENT, text, found, lasting=True, count=count)

    # --- findings

    def _shortage(self, need: Need, node: Node) -> NodeFinding:
        lasting = self._supply.is_hopeless(need, node.name)
        pool = self._unusable(self._problems(node), need) if lasting else None
        if pool:
            return _pool_fault(node.name, *pool)
        text = f"node(s) have too few {'' if lasting else 'free '}devices for {self._label(need)}"
        found = self._tallies(need, node.name, self._inputs.allocated.devices)
        visible = (*self._view.on_node(node.name), *self._view.shared())
        cause = Cause.FEATURE if lasting and self._lacks_feature(need, visible) else Cause.DEVICES
        return NodeFinding(node.name, cause, text, found, lasting=lasting)

    def _lacks_feature(self, need: Need, slices: Sequence[ResourceSlice]) -> bool:
        """Whether some of the devices there would do for the need if a feature of theirs were built."""
        fits = [self._census.fits(form.wish).by_slice for form in need.forms]
        found = (by_slice[slice_.metadata.name] for by_slice in fits for slice_ in slices)
        return any(item.unbuilt for fit in found for item in fit.rejected)

    def _conflict(self, node: Node) -> NodeFinding:
        """Why the search failed: it is repeated with somebody listening, which success never pays for."""
        if min(self._details, self._detail_looks) <= 0:
            return NodeFinding(node.name, Cause.COMBINATION, self._no_combination(self._last))
        heard = Collector()
        with suppress(Unsatisfied):
            self._explore(node, self._inputs, heard)
        return self._combination(node, heard, self._inputs.allocated.devices, lasting=False)

    def hindrance(self, node: Node) -> NodeFinding | None:
        """What would keep the claims off the node with every device free and untainted; None if nothing, or if it takes too long.

        What lasts comes before a pool that its driver may yet publish anew.

        Raises:
            CelError, InvalidClaim, FeatureUnsupported: as the allocator raises them.
        """
        if not self._claims or min(self._details, self._detail_looks) <= 0:
            return None
        # As `check` would say of an idle node: what the search meets first may look as if it passed.
        shortage = first_lasting(self._shortage(need, node) for need in self._supply.hopeless(node.name))
        if shortage is not None:
            return shortage
        heard = Collector()
        try:
            self._explore(node, self._untouched, heard)
        except NoSolution:
            pool = self._unusable(heard.pools, self._blamed(heard))
            return _pool_fault(node.name, *pool) if pool else self._combination(node, heard, (), lasting=True)
        except NodeFailure as error:
            return _fault(node.name, error)
        except SearchLimitReached:
            return None
        return None

    @cached_property
    def _untouched(self) -> Inputs:
        features = replace_fields(self._inputs.features, device_taints=False)
        return replace(self._inputs, features=features, allocated=AllocatedState(), avoided=frozenset())

    def _combination(
        self, node: Node, heard: Collector, taken: Collection[DeviceId], *, lasting: bool
    ) -> NodeFinding:
        need = self._last = self._blamed(heard)
        in_use = frozenset() if need and need.looks else frozenset(taken)
        found = self._tallies(need, "", in_use, heard, at=node.name) if need else ()
        offer = self._offer(node, need, heard, later=lasting) if need else None
        text = self._no_combination(need)
        return NodeFinding(node.name, Cause.COMBINATION, text, found, lasting=lasting, offer=offer)

    def _offer(self, node: Node, need: Need, heard: Collector, *, later: bool) -> Offer | None:
        """What the need could have on the node if it asked for less of a capacity, as a search finds it; None if nothing, or after too many tries."""
        inputs = replace(self._inputs, allocated=AllocatedState()) if later else self._inputs
        slices = (*self._view.on_node(node.name), *self._view.shared())
        devices = [(slice_.device_id(device), device) for slice_ in slices for device in slice_.spec.devices]
        tries = [
            (name, entry, tried)
            for name, entry in self._entries(need)
            for refused in [heard.devices.get(RequestRef(need.claim, name), {})]
            for tried in lesser(entry, devices, refused, inputs.allocated.capacity)
        ]
        for name, entry, tried in tries[:OFFERS]:
            claims = [
                asking(claim, name, entry, tried.amounts) if claim.key == need.claim else claim
                for claim in self._claims
            ]
            device = self._served(node, inputs, claims, RequestRef(need.claim, name))
            if device is not None:
                alternative = name.partition("/")[2]
                label = f"{f'alternative {alternative} of ' if alternative else ''}{self._label(need)}"
                return Offer(label, tried.amounts, device, node.name, tried.part, later)
        return None

    def _entries(self, need: Need) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
        """The forms of a request, as they are written."""
        for claim in self._claims:
            for request in claim.spec.devices.requests:
                if (claim.key, request.name) == (need.claim, need.request):
                    yield from alternatives(request)

    def _served(
        self, node: Node, inputs: Inputs, claims: Sequence[ResourceClaim], request: RequestRef
    ) -> DeviceId | None:
        """The first device that a request gets on the node with these claims; None if there is no solution, or none was found."""
        if min(self._details, self._detail_looks) <= 0:
            return None
        with suppress(Unsatisfied, CelError):
            for claim, found in zip(claims, self._explore(node, inputs, SILENT, claims), strict=True):
                results = found.devices.results if claim.key == request.claim else ()
                for result in results:
                    if result.request == request.request:
                        return result.device_id
        return None

    def _no_combination(self, need: Need | None) -> str:
        free = "" if need and need.looks else "free "
        return f"node(s) have no combination of {free}devices for {self._label(need)}"

    def _problems(self, node: Node) -> dict[PoolId, Rejection]:
        pools = view_of(self._inputs.slices, node, self._inputs.features).pools
        return {pool.id: pool.problem for pool in pools if pool.problem is not None}

    def _unusable(
        self, problems: Mapping[PoolId, Rejection], need: Need | None
    ) -> tuple[PoolId, Rejection] | None:
        """The first pool with devices for the need of which nothing can be had now, and why."""
        if not problems:  # as on most nodes; the pools of all are many
            return None
        wanted = {
            pool for form in (need.forms if need else ()) for pool in self._census.fits(form.wish).pools
        }
        return next(((pool, why) for pool, why in sorted(problems.items()) if pool in wanted), None)

    def _explore(
        self, node: Node, inputs: Inputs, reporter: Reporter, claims: Sequence[ResourceClaim] = ()
    ) -> tuple[AllocationResult, ...]:
        """Search for an explanation's sake: on, where a request for all devices would end it, as that may hang on what is in use."""
        options = replace(
            self._options,
            past_conflicts=True,
            max_steps=_least(self._options.max_steps, self._details),
            max_looks=self._detail_looks,
        )
        allocator = Allocator(inputs, options, reporter)
        try:
            return allocator.allocate(node, claims or self._claims)
        finally:
            self._details -= allocator.steps
            self._detail_looks -= allocator.looks

    def _tallies(
        self,
        need: Need,
        node_name: str,
        taken: AbstractSet[DeviceId],
        heard: Collector | None = None,
        *,
        at: str = "",
    ) -> tuple[DeviceTally, ...]:
        """The node's own devices and those that it shares with others, told apart: these count once for all nodes.

        Args:
            need: the request.
            node_name: devices that name another node are told apart; empty for not.
            taken: devices in use.
            heard: what the search reported.
            at: the node, if not `node_name`.
        """
        local, shared = self._view.on_node(at or node_name), self._view.shared()
        own = tallies(self._census, need, local, taken, heard, node_name) if local or not shared else ()
        common = tallies(self._census, need, shared, taken, heard, node_name) if shared else ()
        return (*own, *(replace(tally, shared=True) for tally in common if tally.seen))

    def _blamed(self, heard: Collector) -> Need | None:
        """The need to show: the last that the search could not meet, as everything before it was met at least once."""
        reached = [
            need
            for need in all_needs(self._claims)
            if any(_was_refused(heard, need.claim, form.name) for form in need.forms)
        ]
        return next(reversed(reached or self._needs), None)

    def _label(self, need: Need | None) -> str:
        """The request as the user finds it; the claim is named only where its name alone is not enough.

        Generated claims go by the name of the pod's entry, which is what the user wrote, and the same for all pods of a template.
        """
        if need is None:
            return "claim " + ", ".join(map(_entry_name, self._claims))
        if need.together:
            return f"all requests of the pod for class {need.forms[0].wish.device_class} together"
        holders = [claim for claim in self._claims if _has_request(claim, need.request)]
        if len(holders) == 1:
            return f"request {need.request}"
        claim = next(claim for claim in holders if claim.key == need.claim)
        return f"request {need.request} of claim {_entry_name(claim)}"


def _left(total: int | None, spent: int) -> int | None:
    return None if total is None else total - spent


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def first_lasting(findings: Iterable[NodeFinding]) -> NodeFinding | None:
    """The first finding that lasts, or else the first; None if there is none. Looks no further than it must."""
    passing: NodeFinding | None = None
    for finding in findings:
        if finding.lasting:
            return finding
        passing = passing or finding
    return passing


def _fault(node_name: str, error: NodeFailure) -> NodeFinding:
    return NodeFinding(node_name, Cause.FAULT, f"node(s) where {error}")


def _pool_fault(node_name: str, pool_id: PoolId, problem: Rejection) -> NodeFinding:
    state = "incomplete" if problem.why is Why.POOL_INCOMPLETE else "invalid"
    return NodeFinding(node_name, Cause.FAULT, f"node(s) whose pool {pool_id} is {state} ({problem.detail})")


def _has_request(claim: ResourceClaim, name: str) -> bool:
    return any(request.name == name for request in claim.spec.devices.requests)


def _entry_name(claim: ResourceClaim) -> str:
    return claim.metadata.annotations.get(POD_CLAIM_NAME) or claim.metadata.name


def _was_refused(heard: Collector, claim: str, name: str) -> bool:
    ref = RequestRef(claim, name)
    return ref in heard.devices or ref in heard.requests
