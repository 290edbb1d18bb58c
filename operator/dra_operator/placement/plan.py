"""One node and devices for all claims of a pod together: the choice that the write protocol commits.

`Placer` is made once and asked for every pod, one at a time: an answer holds for the cluster model as it is, so the caller
reserves what it is about to write (`Cluster.reserve`, `Cluster.place`) before it asks again. For each candidate node, by name: can
it take the pod at all; can our claims be had from owned pools that may be allocated from; can kube-scheduler's own claims of the pod
be had from the other pools. The first node where all of that holds is the answer. Errors stay in the smallest scope that is safe: what is
wrong with a node spoils that node, what is wrong with a claim spoils the pod.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dra_operator.allocator import (
    SILENT,
    Allocator,
    Collector,
    Inputs,
    Options,
    RequestRef,
    selector_matches,
)
from dra_operator.errors import (
    CelCompileError,
    CelError,
    FeatureUnsupported,
    InvalidInput,
    NodeFailure,
    NoSolution,
    SearchLimitReached,
    Unsatisfied,
)
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import OWNED_TAINT, POD_CLAIM_NAME

from .candidates import Supply, needs_of
from .census import Census
from .findings import tallies
from .intake import Intake
from .nodes import node_reason
from .options import PlacementOptions
from .outcomes import Allocate, Cause, ClaimDecision, NodeFinding, Plan, Refuse, Unplaced, Wait
from .ownership import Rules
from .resources import demand_of, dra_resource_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dra_operator.cel.interface import SelectorCompiler
    from dra_operator.cluster import Change, Cluster, RestrictedSlices
    from dra_operator.features import Features
    from dra_operator.model import Node, Pod, PoolId, ResourceClaim, ResourceSlice

    from .candidates import Need
    from .outcomes import Classification, Decision, Outcome
    from .resources import Demand


@dataclass(frozen=True, slots=True)
class _Market:
    """The claims of one side and the pools that they can be served from."""

    claims: tuple[ResourceClaim, ...]
    view: RestrictedSlices
    supply: Supply
    inputs: Inputs
    options: Options


_Markets: TypeAlias = tuple[_Market, _Market]
"""Ours and theirs."""

_VALIDATION_STEPS: Final = 1
"""A search that is only asked whether the claims are valid ends at once."""


class _NodeError(Exception):
    """A node does not serve the pod; carries the finding. Never leaves this module."""

    def __init__(self, finding: NodeFinding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class Placer:
    """Decides for pods against the live cluster model.

    Args:
        cluster: the model; followed by `on_change`, never changed.
        compiler: evaluates selectors.
        features: Kubernetes' switches as this cluster has them.
        options: see `PlacementOptions`.
    """

    def __init__(
        self,
        cluster: Cluster,
        compiler: SelectorCompiler,
        features: Features = DEFAULT_1_37,
        options: PlacementOptions | None = None,
    ) -> None:
        self._cluster = cluster
        self._compiler = compiler
        self._features = features
        self._options = options or PlacementOptions()
        self._census = Census(compiler, features, frozenset({OWNED_TAINT}))
        self._rules = Rules(
            self._census, lambda pool: cluster.owned(pool) is not None, replace=self._options.replace
        )
        self._intake = Intake(cluster, self._rules, replace=self._options.replace)
        self._stale = {"ResourceSlice", "DeviceClass", "AllocationPolicy", "Node"}
        self._nodes: Sequence[str] = ()
        self._dra_resources: frozenset[str] = frozenset()
        cluster.on_change(self._note)

    def decide(self, pod: Pod) -> Decision:
        """What to do with a pod: `classify`, and `plan` if it is to be allocated."""
        answer = self.classify(pod)
        return self.plan(pod, answer) if isinstance(answer, Allocate) else answer

    def classify(self, pod: Pod) -> Classification:
        """Whether the pod and its claims are ours, and ready to be placed. Looks at no node."""
        self._refresh()
        return self._intake.classify(pod)

    def plan(self, pod: Pod, work: Allocate) -> Outcome:
        """A node and devices for what `classify` found to do.

        Wait is answered when only pools that may not be allocated from yet stand between the pod and a node.
        """
        self._refresh()
        try:
            found = self._search(pod, work)
        except InvalidInput as error:
            return Refuse("InvalidClaim", f"not allocated: {error}")
        except CelError as error:
            return Refuse("SelectorFailed", f"not allocated: {error}. Correct the selector")
        except FeatureUnsupported as error:
            return Refuse("FeatureUnsupported", f"not allocated: {error}")
        return self._settling(work) or found if isinstance(found, Unplaced) else found

    def owns(self, pool_id: PoolId) -> bool:
        """Whether a pool is ours, settled or not."""
        return self._rules.owns(pool_id)

    # --- following the model

    def _note(self, change: Change) -> None:
        self._stale.add("ResourceSlice" if change.kind == "DeviceTaintRule" else change.kind)

    def _refresh(self) -> None:
        stale, self._stale = self._stale, set()
        if "ResourceSlice" in stale:
            self._census.slices_changed(self._cluster.slices.all())
        if "DeviceClass" in stale:
            self._census.classes_changed(self._cluster.classes)
            self._dra_resources = dra_resource_names(self._cluster.classes.values())
        if stale & {"ResourceSlice", "DeviceClass", "AllocationPolicy"}:
            self._rules.forget()
        if "Node" in stale:
            self._nodes = sorted(self._cluster.nodes)

    # --- the search over nodes

    def _search(self, pod: Pod, work: Allocate) -> Plan | Unplaced:
        markets = self._markets(work)
        names, findings = self._candidates(work, markets)
        failures: list[CelError] = []
        demand = demand_of(pod)
        for name in names:
            try:
                return self._try_node(pod, work, markets, (self._cluster.nodes[name], demand))
            except _NodeError as error:
                findings.append(error.finding)
            except CelCompileError:
                raise
            except CelError as error:
                failures.append(error)
                findings.append(
                    NodeFinding(name, Cause.FAULT, f"node(s) where a selector fails: {error}", lasting=True)
                )
        if failures and all(finding.lasting for finding in findings):
            raise failures[0]
        self._validate(markets)
        return Unplaced(1 if work.bound_node else len(self._nodes), tuple(findings))

    def _try_node(self, pod: Pod, work: Allocate, markets: _Markets, place: tuple[Node, Demand]) -> Plan:
        """The plan for one node.

        Raises:
            _NodeError: it cannot be.
            CelError, InvalidClaim, FeatureUnsupported: from the allocator.
        """
        node, demand = place
        self._check_claims(work.allocated, node)
        for market in markets:
            self._check_supply(market, node)
        if not work.bound_node:
            usage = self._cluster.node_usage(node.name)
            found = node_reason(pod, demand, node, usage, self._dra_resources)
            if found is not None:
                raise _NodeError(NodeFinding(node.name, found.cause, found.text, lasting=found.lasting))
        ours, theirs = (self._allocate(market, node) for market in markets)
        return Plan(node.name, ours, work.reserve, theirs)

    def _check_claims(self, allocated: Iterable[ResourceClaim], node: Node) -> None:
        """Claims that hold an allocation bind the pod to its nodes (alloc H-2, cp S-21)."""
        for claim in allocated:
            selector = claim.status.allocation.node_selector if claim.status.allocation else None
            if selector is not None and not selector_matches(selector, node):
                text = f"node(s) cannot reach the devices that claim {claim.key} holds"
                raise _NodeError(NodeFinding(node.name, Cause.CLAIM, text, lasting=True))

    def _check_supply(self, market: _Market, node: Node) -> None:
        need = market.supply.lacking(node.name)
        if need is not None:
            lasting = market.supply.is_hopeless(need, node.name)
            raise _NodeError(self._shortage(market, need, node.name, lasting=lasting))

    def _allocate(self, market: _Market, node: Node) -> tuple[ClaimDecision, ...]:
        if not market.claims:
            return ()
        try:
            results = Allocator(market.inputs, market.options, SILENT).allocate(node, market.claims)
        except NoSolution as error:
            raise _NodeError(self._conflict(market, node)) from error
        except NodeFailure as error:
            raise _NodeError(NodeFinding(node.name, Cause.FAULT, f"node(s) where {error}")) from error
        except SearchLimitReached as error:
            text = f"node(s) where the search gave up after {error.steps} steps"
            raise _NodeError(NodeFinding(node.name, Cause.LIMIT, text)) from error
        return tuple(map(ClaimDecision, market.claims, results))

    def _validate(self, markets: _Markets) -> None:
        """Have the allocator say what is wrong with the claims themselves, even if no node was worth a search.

        Raises:
            InvalidClaim, FeatureUnsupported: that is why the pod will never be served.
        """
        for market in markets:
            if market.claims and self._nodes:
                options = Options(ignored_taints=market.options.ignored_taints, max_steps=_VALIDATION_STEPS)
                node = self._cluster.nodes[self._nodes[0]]
                with suppress(Unsatisfied, CelError):
                    Allocator(market.inputs, options, SILENT).allocate(node, market.claims)

    # --- candidates

    def _candidates(self, work: Allocate, markets: _Markets) -> tuple[Sequence[str], list[NodeFinding]]:
        """Names of the nodes to try, in order, and a finding for those that are left out at once."""
        if work.bound_node:
            known = work.bound_node in self._cluster.nodes
            finding = NodeFinding(
                work.bound_node, Cause.STATE, f"node(s) not known: {work.bound_node}", lasting=True
            )
            return ((work.bound_node,), []) if known else ((), [finding])
        local = [(found, market) for market in markets if (found := market.supply.local_nodes()) is not None]
        if not local:
            return self._nodes, []
        (names, need), market = min(local, key=lambda item: len(item[0][0]))
        chosen = sorted(name for name in names if name in self._cluster.nodes)
        left_out = len(self._nodes) - len(chosen)
        if not left_out:
            return chosen, []
        return chosen, [self._absence(market, need, left_out, nowhere=not chosen)]

    # --- findings

    def _absence(self, market: _Market, need: Need, count: int, *, nowhere: bool) -> NodeFinding:
        text = f"node(s) have no device for {_label(market, need)}"
        slices = market.view.all() if nowhere else ()
        found = tallies(self._census, need, slices, market.inputs.allocated.devices)
        return NodeFinding("", Cause.ABSENT, text, found, lasting=True, count=count)

    def _shortage(self, market: _Market, need: Need, node_name: str, *, lasting: bool) -> NodeFinding:
        text = f"node(s) have too few {'' if lasting else 'free '}devices for {_label(market, need)}"
        found = tallies(self._census, need, self._visible(market, node_name), market.inputs.allocated.devices)
        return NodeFinding(node_name, Cause.DEVICES, text, found, lasting=lasting)

    def _conflict(self, market: _Market, node: Node) -> NodeFinding:
        """Why the search failed: it is repeated with somebody listening, which success never pays for."""
        heard = Collector()
        with suppress(Unsatisfied):
            Allocator(market.inputs, market.options, heard).allocate(node, market.claims)
        need = _blamed(market, heard)
        text = f"node(s) have no combination of free devices for {_label(market, need)}"
        visible = self._visible(market, node.name)
        found = tallies(self._census, need, visible, market.inputs.allocated.devices, heard) if need else ()
        return NodeFinding(node.name, Cause.COMBINATION, text, found)

    def _visible(self, market: _Market, node_name: str) -> Sequence[ResourceSlice]:
        return (*market.view.on_node(node_name), *market.view.shared())

    # --- pools that settle

    def _settling(self, work: Allocate) -> Wait | None:
        """Pools that would count, but may not be allocated from yet or any more (architecture, section 2)."""
        for need in needs_of(work.ours):
            for form in need.forms:
                for pool_id in self._census.fits(form.wish).pools:
                    if self._rules.owns(pool_id) and not self._options.allocatable(pool_id):
                        return Wait("Settling", _settling_text(need, pool_id))
        return None

    # --- markets

    def _markets(self, work: Allocate) -> _Markets:
        owned = frozenset({OWNED_TAINT})
        ours = self._market(
            work.ours, self._may_allocate, Options(ignored_taints=owned, max_steps=self._options.max_steps)
        )
        theirs = self._market(work.theirs, self._is_theirs, Options(max_steps=self._options.max_steps))
        return ours, theirs

    def _market(
        self, claims: tuple[ResourceClaim, ...], includes: Callable[[PoolId], bool], options: Options
    ) -> _Market:
        view = self._cluster.slices.view(includes)
        allocated = self._cluster.allocated_state()
        inputs = Inputs(self._features, self._cluster.classes, view, allocated, self._compiler)
        supply = Supply(self._census, view.includes, allocated.devices, needs_of(claims))
        return _Market(claims, view, supply, inputs, options)

    def _may_allocate(self, pool_id: PoolId) -> bool:
        return self._rules.owns(pool_id) and self._options.allocatable(pool_id)

    def _is_theirs(self, pool_id: PoolId) -> bool:
        return not self._rules.owns(pool_id)


def _label(market: _Market, need: Need | None) -> str:
    """The request as the user finds it; the claim is named only where its name alone is not enough.

    Generated claims go by the name of the pod's entry, which is what the user wrote, and the same for all pods of a template.
    """
    if need is None:
        return "claim " + ", ".join(map(_entry_name, market.claims))
    holders = [claim for claim in market.claims if _has_request(claim, need.request)]
    if len(holders) == 1:
        return f"request {need.request}"
    claim = next(claim for claim in holders if claim.key == need.claim)
    return f"request {need.request} of claim {_entry_name(claim)}"


def _has_request(claim: ResourceClaim, name: str) -> bool:
    return any(request.name == name for request in claim.spec.devices.requests)


def _entry_name(claim: ResourceClaim) -> str:
    return claim.metadata.annotations.get(POD_CLAIM_NAME) or claim.metadata.name


def _blamed(market: _Market, heard: Collector) -> Need | None:
    """The need to show: the last that the search could not meet, as everything before it was met at least once."""
    needs = needs_of(market.claims)
    reached = [
        need for need in needs if any(_was_refused(heard, need.claim, form.name) for form in need.forms)
    ]
    return next(reversed(reached or needs), None)


def _was_refused(heard: Collector, claim: str, name: str) -> bool:
    ref = RequestRef(claim, name)
    return ref in heard.devices or ref in heard.requests


def _settling_text(need: Need, pool_id: PoolId) -> str:
    return (
        f"request {need.request} of claim {need.claim} waits for pool {pool_id}: it has come under an AllocationPolicy only "
        "now, or is about to leave it, and is not allocated from until kube-scheduler surely knows. Goes on by itself"
    )
