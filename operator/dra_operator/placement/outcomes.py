"""What placement answers, as frozen values; nothing here decides anything.

`Placer` (plan.py) makes them, the allocation controller acts on them, `explain` turns them into sentences. They hold no live
objects of the cluster model, only values, so that keeping one is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from dra_operator.model import AllocationResult, DeviceId, ResourceClaim
    from dra_operator.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Ignore:
    """The pod is none of our business now: neither gated nor to be bound by us, done, or nothing is left to do for it."""


@dataclass(frozen=True, slots=True)
class Release:
    """Take our gate off and touch nothing else.

    Args:
        to_us: whether the pod names us as its scheduler, so that it waits for us without the gate; else no claim of it is ours.
    """

    to_us: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now; something else has to happen first, and a change of the model will tell.

    Args:
        reason: one word in CamelCase for events and metrics.
        message: a sentence for the user with the next step; stable for equal states, so that events fold.
        quiet: whether the user needs no event (it is the ordinary course of things).
        told_after: seconds after which that is no longer ordinary, and is told; 0 for never. Only read if quiet.
        claim: `namespace/name` of the claim that is to blame; empty if none is.
    """

    reason: str
    message: str
    quiet: bool = False
    told_after: float = 0.0
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never, as things are written; somebody has to change an object.

    Args:
        reason: one word in CamelCase for events and metrics.
        message: a sentence for the user that names what to change.
        claim: `namespace/name` of the claim that is to blame; empty if none is, or if a class is.
    """

    reason: str
    message: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Allocate:
    """The pod's claims are ready to be placed; `Placer.plan` takes this.

    Args:
        ours: unallocated claims whose devices come from our pools, in pod order.
        theirs: unallocated claims that kube-scheduler will allocate after the release, in pod order.
        allocated: claims that hold an allocation already, whoever wrote it, in pod order.
        reserve: those of `allocated` that are to name the pod in `reservedFor` and do not yet: ours, or, if we bind the pod, all.
        bound_node: the node of a pod that is bound already (cp I-28); empty for those that wait.
        avoid: devices that `ours` must not get now: binding them has just failed (cp S-65). Whoever asks for a plan sets it.
    """

    ours: tuple[ResourceClaim, ...] = ()
    theirs: tuple[ResourceClaim, ...] = ()
    allocated: tuple[ResourceClaim, ...] = ()
    reserve: tuple[ResourceClaim, ...] = ()
    bound_node: str = ""
    avoid: frozenset[DeviceId] = frozenset()


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """One claim and the allocation chosen for it (without timestamp: the writer knows the time)."""

    claim: ResourceClaim
    allocation: AllocationResult


@dataclass(frozen=True, slots=True)
class Plan:
    """A node and devices for all claims of a pod together.

    Args:
        node: where the pod can run.
        ours: claims to allocate, with reservation for the pod.
        reserve: allocated claims that only need the pod in `reservedFor`.
        theirs: what kube-scheduler could choose on that node for its own claims. Never written; whoever commits the plan may
            keep these devices reserved in the cluster model until kube-scheduler has allocated, so that two pods are not sent
            after one device.
    """

    node: str
    ours: tuple[ClaimDecision, ...] = ()
    reserve: tuple[ResourceClaim, ...] = ()
    theirs: tuple[ClaimDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class Effort:
    """What a decision cost.

    Args:
        steps: search steps over all nodes.
        limits: nodes whose search was given up at the limit.
        looks: looks at devices over all nodes.
    """

    steps: int = 0
    limits: int = 0
    looks: int = 0


class Verdict(Enum):
    """How hopeless it is."""

    NEVER = "never"
    """No node could serve the pod even if nothing were in use: devices, classes, nodes or the pod must change."""

    NOT_NOW = "not now"
    """Something that is in use has to come free first."""

    GAVE_UP = "gave up"
    """The search stopped at its limit; says nothing about whether a solution exists."""


@dataclass(frozen=True, slots=True)
class DeviceTally:
    """Why the devices that one request could see on a node do not serve it.

    Args:
        claim: `namespace/name`.
        request: name of the request, or `request/subrequest`.
        device_class: name of the class.
        wanted: how many devices it asks for; 0 for all.
        seen: devices looked at, of drivers that the class takes devices of, or of all if it takes none.
        rejected: reason → number of devices; reasons are the vocabulary of `findings.py`.
        shared: whether these are devices that several nodes can use, so that the tallies of these nodes are about the same devices.
    """

    claim: str
    request: str
    device_class: str
    wanted: int
    seen: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    shared: bool = False


class Cause(Enum):
    """What kind of thing stands between a pod and a node; tells the next step."""

    STATE = "state"
    """The node is cordoned or not ready."""

    POD = "pod"
    """Taints, node selector or affinity: the pod does not want the node, or the node the pod."""

    KUBELET = "kubelet"
    """A feature that the pod uses and the node does not declare."""

    NEIGHBOURS = "neighbours"
    """Affinity or spread: the pods that run there, or do not."""

    VOLUMES = "volumes"
    """Its volumes are, or can be had, elsewhere only."""

    ROOM = "room"
    """Resources, pod count or host ports."""

    BUDGET = "budget"
    """What the pod states for itself as a whole is too little with what its devices take."""

    UNREFERENCED = "unreferenced"
    """No container refers to a claim, and one has to."""

    CLAIM = "claim"
    """Another claim of the pod holds devices elsewhere."""

    ABSENT = "absent"
    """No device there matches a request."""

    DEVICES = "devices"
    """Devices match, but not enough of them are free."""

    FEATURE = "feature"
    """Devices match, but need a feature that is not built."""

    COMBINATION = "combination"
    """Enough devices are free, but not a set that meets all requests and constraints."""

    FAULT = "fault"
    """Something about the node's pools cannot be judged."""

    LIMIT = "limit"
    """The search stopped at its limit."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request could have if it asked for less of a device's capacities; a search has found it.

    Args:
        request: as the user finds it ("request gpu", "alternative small of request gpu").
        amounts: of the capacities of which it would have to ask for less, at most.
        device: the first device that it would get.
        node: where.
        part: of what is asked for, above 0 and below 1; the smallest, where it is several capacities.
        later: whether that holds for a cluster in which nothing is in use, not for now.
    """

    request: str
    amounts: Mapping[str, Quantity]
    device: DeviceId
    node: str
    part: Fraction
    later: bool = False


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """Why one node, or many equal ones, cannot serve the pod.

    Args:
        node: name; empty when the finding stands for `count` nodes that were never looked at one by one.
        cause: the kind of reason.
        text: the reason in kube-scheduler's manner, to be read after a number ("node(s) were unschedulable"); nodes with equal
            texts fold into one part.
        tallies: for device reasons, what became of the devices of the request.
        lasting: whether only a change of specs, not freed devices or resources, can help.
        count: nodes that the finding stands for.
        absent: resources that the pod asks for and the node does not offer at all, busy or not.
        offer: what could be had there of a capacity that is too small; None if nothing, or if nobody looked.
    """

    node: str
    cause: Cause
    text: str
    tallies: tuple[DeviceTally, ...] = ()
    lasting: bool = False
    count: int = 1
    absent: tuple[str, ...] = ()
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node can serve the pod; `explain.explain` makes the sentence.

    Args:
        total: nodes that were considered: all of the cluster, or the one that the pod is bound to.
        findings: one for each node looked at, in the order of nodes, after those that stand for many.
    """

    total: int
    findings: tuple[NodeFinding, ...]

    @property
    def verdict(self) -> Verdict:
        """Gave up if a search stopped early; never if every finding is lasting; else not now."""
        if any(finding.cause is Cause.LIMIT for finding in self.findings):
            return Verdict.GAVE_UP
        return Verdict.NEVER if all(finding.lasting for finding in self.findings) else Verdict.NOT_NOW

    @property
    def minds_neighbours(self) -> bool:
        """Whether pods that come to nodes, not only those that leave, may change it."""
        return any(finding.cause is Cause.NEIGHBOURS and not finding.lasting for finding in self.findings)


Classification: TypeAlias = Ignore | Release | Wait | Refuse | Allocate
"""What `Placer.classify` says of a pod."""

Outcome: TypeAlias = Plan | Unplaced | Refuse | Wait
"""What `Placer.plan` says of the claims of a pod."""

Decision: TypeAlias = Ignore | Release | Wait | Refuse | Plan | Unplaced
"""What `Placer.decide` says of a pod: classify, then plan."""
