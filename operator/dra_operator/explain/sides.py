"""The claims of a pod with the pools that they can be served from, and the allocator over them, also on input that is changed.

`placement` decides whether a pod can be served; here the same allocator is asked about single nodes, for explanations. It must not change the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.errors import DraError
from dra_operator.model import OWNED_TAINT
from dra_operator.placement import NodeChecks
from dra_operator.placement.resources import dra_resource_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dra_operator.allocator import Reporter
    from dra_operator.cel.interface import CelCompiler
    from dra_operator.cluster import Cluster, RestrictedSlices
    from dra_operator.features import Features
    from dra_operator.model import Node, Pod, ResourceClaim, ResourceSlice
    from dra_operator.placement import Allocate, Placer

STEPS: Final = 20_000
"""Search steps of one trial; one that needs more is not proposed. As many as placement spends on explaining a decision."""

LOOKS: Final = 30_000
"""The same for looks at devices."""


@dataclass(frozen=True, slots=True)
class Side:
    """Claims that are served from the same pools: the operator's, or kube-scheduler's.

    Attributes:
        claims: to be allocated.
        view: the slices of the pools.
        ignored: taints that do not count.
    """

    claims: tuple[ResourceClaim, ...]
    view: RestrictedSlices
    ignored: frozenset[str]


@dataclass(frozen=True, slots=True)
class Supposed:
    """A change of the input.

    Attributes:
        claims: key → the claim as it would be.
        freed: keys of claims that would hold nothing.
        slices: name → the slice as it would be.
    """

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    freed: frozenset[str] = frozenset()
    slices: Mapping[str, ResourceSlice] = field(default_factory=dict)


class Sides:
    """Both sides of one pod.

    Args:
        cluster: the model.
        compiler: evaluates selectors.
        features: Kubernetes' switches.
        placer: tells whose a pool is.
        pod: the pod.
        work: what is to be allocated for it.

    Attributes:
        sides: those that have claims.
        trials: searches so far.
        own: keys of the pod's claims.
    """

    def __init__(
        self,
        cluster: Cluster,
        compiler: CelCompiler,
        features: Features,
        placer: Placer,
        pod: Pod,
        work: Allocate,
    ) -> None:
        self.cluster, self.compiler, self.features = cluster, compiler, features
        self.trials = 0
        self.own = frozenset(claim.key for claim in (*work.ours, *work.theirs, *work.allocated))
        # As placement has it: kube-scheduler makes claims for extended resources of the pods that it looks at.
        extended = () if pod.names_us else dra_resource_names(cluster.classes.values())
        self._checks = NodeChecks(pod, cluster, extended, work.allocated, is_bound=bool(work.bound_node))
        self._work = work
        both = (
            Side(work.ours, cluster.slices.view(placer.owns), frozenset({OWNED_TAINT})),
            Side(work.theirs, cluster.slices.view(lambda pool: not placer.owns(pool)), frozenset()),
        )
        self.sides = tuple(side for side in both if side.claims)

    def nodes(self) -> Sequence[Node]:
        """Those that the pod may have, by name."""
        names = [self._work.bound_node] if self._work.bound_node else sorted(self.cluster.nodes)
        return [self.cluster.nodes[name] for name in names if name in self.cluster.nodes]

    def problem(self, node: Node) -> tuple[str, str]:
        """Why the node cannot take the pod, devices aside: the cause and a text; both empty if it can."""
        found = self._checks.claims_reason(node) or self._checks.reason(node)
        return (found.cause.value, found.text) if found else ("", "")

    def serves(self, node: Node, supposed: Supposed, reporter: Reporter | None = None) -> bool:
        """Whether the claims could be had on that node with the change."""
        if self.problem(node)[1]:
            return False
        self.trials += 1
        try:
            for side in self.sides:
                claims = [supposed.claims.get(claim.key, claim) for claim in side.claims]
                options = Options(ignored_taints=side.ignored, max_steps=STEPS, max_looks=LOOKS)
                inputs = self.inputs(side, supposed, node)
                Allocator(inputs, options, *([reporter] if reporter else [])).allocate(node, claims)
        except DraError:
            return False  # also gave up, or now wrong: what was not found to work is not proposed
        return True

    def inputs(self, side: Side, supposed: Supposed, node: Node | None) -> Inputs:
        """For the allocator; changed slices only if a node is named."""
        allocated = without(self.cluster, supposed.freed)
        slices = (
            _changed(side.view, supposed.slices, node) if supposed.slices and node is not None else side.view
        )
        return Inputs(self.features, self.cluster.classes, slices, allocated, self.compiler)


def without(cluster: Cluster, freed: Iterable[str]) -> AllocatedState:
    """What is taken if some claims hold nothing."""
    found = cluster.allocated_state()
    claims = [cluster.claims[key] for key in freed if key in cluster.claims]
    if not claims:
        return found
    devices, shared = set(found.devices), set(found.shared)
    capacity = {device: dict(amounts) for device, amounts in found.capacity.items()}
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation else ():
            if result.admin_access:
                continue
            device = result.device_id
            others = [key for key in cluster.holders(device) if key not in freed]
            for name, amount in result.consumed_capacity.items():
                if device in capacity and name in capacity[device]:
                    capacity[device][name] = capacity[device][name] - amount
            if not others:
                devices.discard(device)
                shared.discard(device)
                capacity.pop(device, None)
    return replace(found, devices=devices, shared=shared, capacity=capacity)


def _changed(view: RestrictedSlices, changed: Mapping[str, ResourceSlice], node: Node) -> SliceList:
    """The slices that the node can see, some of them changed, with the rest of their pools."""
    near = (*view.on_node(node.name), *view.shared())
    found = {slice_.metadata.name: slice_ for slice_ in near}
    for pool_id in {slice_.pool_id for slice_ in near}:
        found |= {slice_.metadata.name: slice_ for slice_ in view.of_pool(pool_id)}
    return SliceList([changed.get(name, slice_) for name, slice_ in found.items()])
