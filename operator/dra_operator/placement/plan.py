"""One node and devices for all claims of a pod together: the choice that the write protocol commits.

`Placer` is made once and asked for every pod, one at a time: an answer holds for the cluster model as it is, so the caller
reserves what it is about to write (`Cluster.reserve`, `Cluster.place`) before it asks again. For each candidate node, the best first: can
it take the pod at all; can our claims be had from owned pools that may be allocated from; can kube-scheduler's own claims of the pod
be had from the other pools. The first node where all of that holds is the answer. Errors stay in the smallest scope that is safe: what is
wrong with a node spoils that node, what is wrong with a claim spoils the pod.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from dra_operator.allocator import Inputs, Options
from dra_operator.cluster import rules_changed
from dra_operator.errors import (
    CelCompileError,
    CelError,
    FeatureUnsupported,
    InvalidInput,
    InvalidPod,
    WorkLimitReached,
)
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import OWNED_TAINT, Node

from . import burden
from .candidates import needs_of, nominated_first
from .census import Census, Wish
from .checks import NodeChecks
from .diagnosis import Diagnosis
from .faults import costly, invalid_claim, invalid_pod, selector_failed, unsupported
from .intake import Intake
from .market import Limits, Market, NodeError
from .meeting import Meeting
from .options import PlacementOptions
from .outcomes import Allocate, Cause, Effort, NodeFinding, Plan, Refuse, Unplaced, Wait
from .ownership import Rules, Side
from .preferences import compared, has_soft_taint, preferences
from .resources import classes_by_resource, demand_of, dra_resource_names
from .room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.cluster import Change, Cluster
    from dra_operator.features import Features
    from dra_operator.model import DeviceId, Pod, PoolId, ResourceClaim

    from .candidates import Need
    from .market import Teller
    from .nodes import NodeReason
    from .outcomes import ClaimDecision, Classification, Decision, Outcome

_Markets: TypeAlias = tuple[Market, Market]
"""Ours and theirs."""


class Placer:
    """Decides for pods against the live cluster model.

    Args:
        cluster: the model; followed by `on_change`, never changed.
        compiler: evaluates selectors.
        features: Kubernetes' switches as this cluster has them.
        options: see `PlacementOptions`.

    Attributes:
        effort: what the last `plan` cost.
    """

    def __init__(
        self,
        cluster: Cluster,
        compiler: CelCompiler,
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
        self._room = Room(cluster, self._options.node_score)
        self._nodes: Sequence[str] = ()
        self._soft_taints = False
        self._dra_resources: frozenset[str] = frozenset()
        self.effort = Effort()
        cluster.on_change(self._note)

    @property
    def work(self) -> int:
        """Units of work on selectors since the start."""
        return self._compiler.meter.spent

    def errands(self) -> list[Callable[[], int]]:
        """Work on selectors that takes too long for the caller, who runs it in a thread before he asks again; each returns its units."""
        return self._compiler.meter.errands()

    def decide(self, pod: Pod) -> Decision:
        """What to do with a pod: `classify`, and `plan` if it is to be allocated."""
        answer = self.classify(pod)
        return self.plan(pod, answer) if isinstance(answer, Allocate) else answer

    def classify(self, pod: Pod, *, thorough: bool = True) -> Classification:
        """Whether the pod and its claims are ours, and ready to be placed. Looks at no node.

        Args:
            pod: the pod.
            thorough: whether selectors may be evaluated for it; else what is known has to do.

        Raises:
            WorkLimitReached: its selectors take more work than one decision may do; ask again later.
        """
        self._begin(thorough=thorough, in_portions=True)
        try:
            return self._intake.classify(pod)
        except WorkLimitReached as error:
            raise self._costly(pod, error) from error

    def plan(self, pod: Pod, work: Allocate) -> Outcome:
        """A node and devices for what `classify` found to do.

        Wait is answered when only pools that may not be allocated from yet stand between the pod and a node.

        Raises:
            WorkLimitReached: as `classify`.
        """
        self._begin(in_portions=True)
        try:
            found = self._search(pod, work)
            return self._settling(work) or found if isinstance(found, Unplaced) else found
        except WorkLimitReached as error:
            raise self._costly(pod, error) from error
        except InvalidPod as error:
            return Refuse("InvalidPod", invalid_pod(error))
        except InvalidInput as error:
            return Refuse("InvalidClaim", invalid_claim(error), getattr(error, "claim", ""))
        except CelError as error:
            return Refuse("SelectorFailed", selector_failed(error), _blamed(error))
        except FeatureUnsupported as error:
            return Refuse("FeatureUnsupported", unsupported(error), error.claim)

    def owns(self, pool_id: PoolId) -> bool:
        """Whether a pool is ours, settled or not."""
        return self._rules.owns(pool_id)

    def wanted_of_ours(self, claim: ResourceClaim, *, thorough: bool = True) -> PoolId | None:
        """A pool of ours with devices that an unallocated claim asks for, as an example; None if the claim is not ours to allocate.

        Args:
            claim: the claim.
            thorough: as `classify`.

        Raises:
            WorkLimitReached: as `classify`.
        """
        self._begin(thorough=thorough, in_portions=True)
        ruling = self._rules.claim(claim)
        return ruling.pool if ruling.side is Side.OURS else None

    def for_kube_scheduler(self, pod: Pod, node_name: str) -> tuple[ClaimDecision, ...]:
        """What kube-scheduler could allocate on a node for the claims of a pod that are its own, as `Plan.theirs`; nothing if that cannot be told.

        Raises:
            WorkLimitReached: as `classify`.
        """
        self._begin(in_portions=True)
        node = self._cluster.nodes.get(node_name)
        found = (entry.claim for entry in self._cluster.claims_of_pod(pod))
        pending = {claim.key: claim for claim in found if claim is not None and not claim.is_allocated}
        options = self._limits()
        try:
            theirs = tuple(
                claim for claim in pending.values() if self._rules.claim(claim).side is Side.THEIRS
            )
            if node is None or not theirs:
                return ()
            return self._market(theirs, self._is_theirs, options).allocate(node)
        except WorkLimitReached:
            raise
        except (NodeError, CelError, InvalidInput, FeatureUnsupported):
            return ()  # kube-scheduler will find the same, and say so

    def extended_of_ours(self, pod: Pod, *, thorough: bool = True) -> tuple[str, str, PoolId] | None:
        """An extended resource that the pod asks for and only devices of ours can be behind: its name, the class, a pool.

        None if there is none, or if a device plugin offers the resource on some node.

        Raises:
            WorkLimitReached: as `classify`.
        """
        self._begin(thorough=thorough, in_portions=True)
        wanted = demand_of(pod).resources
        for name, class_name in classes_by_resource(self._cluster.classes.values()).items():
            if name not in wanted or any(
                name in node.status.allocatable for node in self._cluster.nodes.values()
            ):
                continue
            ruling = self._rules.wish(Wish(class_name, (), ()))
            if ruling.side is Side.OURS and ruling.pool is not None:
                return name, class_name, ruling.pool
        return None

    # --- following the model

    def _note(self, change: Change) -> None:
        if change.kind == "AllocationPolicy" and not rules_changed(change):
            return  # its status: written often, read by nobody here
        subject = change.new or change.old
        if isinstance(subject, Node):
            self._room.node_changed(subject.name)
        self._stale.add("ResourceSlice" if change.kind == "DeviceTaintRule" else change.kind)

    def _begin(self, *, thorough: bool = True, in_portions: bool = False) -> None:
        """A decision begins: with what the model is now, and with an allowance of work of its own."""
        self._refresh()
        options, meter = self._options, self._compiler.meter
        portion = options.selector_portion if in_portions else None
        meter.patience = options.selector_patience if in_portions else None
        meter.allow((portion or options.selector_work) if thorough else 0)

    def _costly(self, pod: Pod, error: WorkLimitReached) -> WorkLimitReached:
        """The same for the user: with the claim and the place of a selector that the work ended at."""
        claims = [entry.claim for entry in self._cluster.claims_of_pod(pod) if entry.claim is not None]
        message, claim = costly(error, [claim for claim in claims if not claim.is_allocated])
        return WorkLimitReached(error.units, error.spot, message, claim)

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
            self._soft_taints = any(map(has_soft_taint, self._cluster.nodes.values()))

    # --- the search over nodes

    def _search(self, pod: Pod, work: Allocate) -> Plan | Unplaced:
        markets = self._markets(work)
        try:
            return self._search_in(pod, work, markets)
        finally:
            self.effort = Effort(
                sum(market.steps for market in markets),
                sum(market.limits for market in markets),
                sum(market.looks for market in markets),
            )

    def _search_in(self, pod: Pod, work: Allocate, markets: _Markets) -> Plan | Unplaced:
        names, tellers = self._candidates(work, markets)
        tried: list[tuple[Node, Teller]] = []
        is_bound = bool(work.bound_node)
        # Only kube-scheduler makes claims for extended resources: of a pod that it never looks at, no class serves one.
        extended = frozenset[str]() if pod.names_us else self._dra_resources
        if not is_bound and burden.by_pod(pod) * len(self._cluster.pods) > burden.PAIRS:
            finding = NodeFinding("", Cause.LIMIT, _TOO_SOCIABLE, count=len(self._nodes))
            return Unplaced(len(self._nodes), (finding,))
        checks = NodeChecks(pod, self._cluster, extended, work.allocated, is_bound=is_bound)
        meeting = Meeting(pod, work.ours, self._cluster)
        order = nominated_first(meeting.first(self._room.order(names)), pod)
        nodes = filter(None, map(self._cluster.nodes.get, order))
        for group in self._groups(pod, nodes, checks, markets, tried):
            for node in meeting.nodes_first(group):
                try:
                    ours, theirs = (market.allocate(node) for market in markets)
                    _raise_for(node, checks.devices_reason(node, (*ours, *theirs)))
                    return Plan(node.name, ours, work.reserve, theirs)
                except NodeError as error:
                    tried.append((node, error.tell))
                except CelCompileError:
                    raise
                except CelError as error:
                    tried.append((node, partial(_fail, error)))
        tried.sort(key=_by_name)
        known = [finding for tell in tellers if (finding := tell()).count]
        diagnosis = Diagnosis(markets, checks.lasting_reason)
        findings = (*known, *(diagnosis.finding(node, tell) for node, tell in tried))
        if diagnosis.failures and all(finding.lasting for finding in findings):
            raise diagnosis.failures[0]
        for market in markets if self._nodes else ():
            market.validate(self._cluster.nodes[self._nodes[0]])
        return Unplaced(1 if work.bound_node else len(self._nodes), findings)

    def _groups(
        self,
        pod: Pod,
        nodes: Iterator[Node],
        checks: NodeChecks,
        markets: _Markets,
        tried: list[tuple[Node, Teller]],
    ) -> Iterator[Sequence[Node]]:
        """Nodes that pass the cheap checks, best first, in groups that are compared with each other; those that do not go to `tried`.

        A pod that prefers nothing takes them one by one as they come.
        """
        passing = self._passing(self._within_reach(pod, nodes, tried), checks, markets, tried)
        first = next(passing, None)
        if first is None:
            return
        if first.name == pod.status.nominated_node_name:
            yield (first,)
        else:
            passing = chain((first,), passing)
        is_choosy = not checks.is_bound and burden.by_preference(pod) <= burden.PREFERENCES
        prefers = preferences(pod, self._cluster, soft_taints=self._soft_taints) if is_choosy else None
        size = 1 if prefers is None else compared(len(self._nodes))
        while group := tuple(islice(passing, size)):
            yield group if prefers is None else prefers.rank(group, self._room)

    def _within_reach(
        self, pod: Pod, nodes: Iterator[Node], tried: list[tuple[Node, Teller]]
    ) -> Iterator[Node]:
        """As many nodes as the pod may be compared with; the others go to `tried`."""
        items, left = burden.by_node(pod), burden.NODES
        for node in nodes:
            if left > 0:
                left -= items
                yield node
            else:
                tried.append((node, partial(NodeFinding, node.name, Cause.LIMIT, _OUT_OF_REACH)))

    def _passing(
        self, nodes: Iterator[Node], checks: NodeChecks, markets: _Markets, tried: list[tuple[Node, Teller]]
    ) -> Iterator[Node]:
        for node in nodes:
            try:
                _check(checks, markets, node)
            except NodeError as error:
                tried.append((node, error.tell))
            except CelCompileError:
                raise
            except CelError as error:
                tried.append((node, partial(_fail, error)))
            else:
                yield node

    def _candidates(self, work: Allocate, markets: _Markets) -> tuple[Sequence[str], list[Teller]]:
        """Names of the nodes to try, in order, and findings for those that are left out at once."""
        if work.bound_node:
            return self._bound_candidate(work.bound_node)
        local = [(found, market) for market in markets if (found := market.local_nodes()) is not None]
        if not local:
            return self._nodes, []
        (names, need), market = min(local, key=lambda item: len(item[0][0]))
        return names, [partial(self._left_out, market, need, names)]

    def _left_out(self, market: Market, need: Need, tried: Sequence[str]) -> NodeFinding:
        """The finding for the nodes that no matching slice names; it counts none when there are none."""
        count = len(self._nodes) - sum(name in self._cluster.nodes for name in tried)
        return market.absence(need, count, nowhere=count == len(self._nodes))

    def _bound_candidate(self, name: str) -> tuple[Sequence[str], list[Teller]]:
        if name in self._cluster.nodes:
            return (name,), []
        return (), [partial(NodeFinding, name, Cause.STATE, f"node(s) not known: {name}", (), lasting=True)]

    # --- pools that settle

    def _settling(self, work: Allocate) -> Wait | None:
        """Pools that would count, but may not be allocated from yet or any more (architecture, section 2)."""
        for need in needs_of(work.ours):
            for form in need.forms:
                for pool_id in self._census.fits(form.wish).pools:
                    if self._rules.owns(pool_id) and not self._options.allocatable(pool_id):
                        return self._not_yet(need, pool_id)
        return None

    def _not_yet(self, need: Need, pool_id: PoolId) -> Wait:
        hindrance = self._options.hindrance(pool_id)
        if not hindrance:
            return Wait("Settling", _settling_text(need, pool_id))
        text = f"ResourceClaim {need.claim}: request {need.request} needs pool {pool_id}, which is not allocated from: {hindrance}"
        return Wait("PolicyNotEnforced", text)

    # --- markets

    def _markets(self, work: Allocate) -> _Markets:
        owned = frozenset({OWNED_TAINT})
        theirs = self._limits()
        ours = replace(theirs, ignored_taints=owned)
        return (
            self._market(work.ours, self._may_allocate, ours, work.avoid),
            self._market(work.theirs, self._is_theirs, theirs),
        )

    def _limits(self) -> Options:
        return Options(max_steps=self._options.max_steps, max_looks=self._options.max_looks)

    def _market(
        self,
        claims: Sequence[ResourceClaim],
        includes: Callable[[PoolId], bool],
        options: Options,
        avoid: AbstractSet[DeviceId] = frozenset(),
    ) -> Market:
        view = self._cluster.slices.view(includes)
        allocated = self._cluster.allocated_state()
        inputs = Inputs(self._features, self._cluster.classes, view, allocated, self._compiler, avoid)
        return Market(
            self._census,
            view,
            inputs,
            options,
            claims,
            Limits(self._options.total_steps, self._options.total_looks),
        )

    def _may_allocate(self, pool_id: PoolId) -> bool:
        return self._rules.owns(pool_id) and self._options.allocatable(pool_id)

    def _is_theirs(self, pool_id: PoolId) -> bool:
        return not self._rules.owns(pool_id)


_OUT_OF_REACH: Final = (
    "node(s) were not looked at, as the pod has too many tolerations and node affinity terms"
)
_TOO_SOCIABLE: Final = "node(s) were not looked at, as the pod has too many affinity terms and spread constraints about the other pods"


def _check(checks: NodeChecks, markets: _Markets, node: Node) -> None:
    """Everything but the search for devices; the cheap questions first.

    Raises:
        NodeError: it cannot be.
        CelError: a selector fails.
    """
    _raise_for(node, checks.claims_reason(node))
    for market in markets:
        market.check(node)
    _raise_for(node, checks.reason(node))


def _by_name(item: tuple[Node, Teller]) -> str:
    return item[0].name


def _raise_for(node: Node, found: NodeReason | None) -> None:
    if found is not None:
        finding = partial(NodeFinding, node.name, found.cause, found.text, (), found.lasting)
        raise NodeError(partial(finding, absent=found.absent))


def _fail(error: CelError) -> NodeFinding:
    """The teller for a node where a selector failed: the diagnosis makes the finding."""
    raise error


def _blamed(error: CelError) -> str:
    """The claim that holds the selector; empty if a class does."""
    kind, _, name = (error.spot.ref if error.spot else "").partition(" ")
    return name if kind == "ResourceClaim" else ""


def _settling_text(need: Need, pool_id: PoolId) -> str:
    return (
        f"ResourceClaim {need.claim}: request {need.request} waits for pool {pool_id}: an AllocationPolicy has it only now, or is about "
        "to lose it, and nothing is allocated from it until kube-scheduler surely knows. The pod goes on by itself"
    )
