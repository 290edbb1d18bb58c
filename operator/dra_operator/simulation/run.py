"""The simulation: pods one after the other in the operator's order, then claims that no pod uses; each sees what those before it took.

`placement` decides, as it does for the operator; what the operator would write is supposed written (`controllers.commit`, cp I-42…I-54), and what
kube-scheduler would, as well. No clock: allocations have no time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import default_compiler
from dra_operator.cluster import allocation_status, bind_to, group_key, reserved_for, taken_by_devices
from dra_operator.explain import explain, user_of
from dra_operator.model import (
    FINALIZER,
    GATE,
    NewPod,
    Pod,
    ResourceClaim,
    from_object,
    to_object,
)
from dra_operator.model.marks import GENERATED, MARK, digest
from dra_operator.placement import (
    Admission,
    Allocate,
    Effort,
    Ignore,
    NodeScore,
    PlacementOptions,
    Placer,
    Plan,
    Refuse,
    Release,
    Unplaced,
    Wait,
    Way,
    admit,
    rank,
    signature,
)
from dra_operator.quantity import BINARY_SI, Quantity

from .making import Maker
from .outcomes import CLAIM, POD, Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import AllocationResult, ResourceClaimConsumerReference
    from dra_operator.placement import Outcome as Planned

    from .given import Given

NOT_CREATED: Final = "ClaimNotCreated"
"""Placement's reason for pods whose claims are not made from their template yet."""


def simulate(given: Given, node_score: NodeScore = NodeScore.SPREAD) -> Report:
    """Decide for all pods and claims that wait.

    All pools are the operator's unless there are AllocationPolicies; then those that they select, and the others are kube-scheduler's.

    Args:
        given: the objects; it has the new states of claims and pods afterwards.
        node_score: as the operator's setting.
    """
    return _Simulation(given, node_score).run()


class _Simulation:
    def __init__(self, given: Given, node_score: NodeScore) -> None:
        self._given = given
        self._cluster: Cluster = given.cluster()
        self._maker = Maker(given, self._cluster)
        options = PlacementOptions(
            replace=not self._cluster.policies, node_score=node_score, selector_work=None
        )
        self._placer = Placer(self._cluster, default_compiler(), given.features, options)
        self._notes: list[str] = []
        self._minding: dict[str, None] = {}
        self._failed: dict[bytes, Unplaced] = {}
        self._effort = Effort()

    def run(self) -> Report:
        self._maker.make()
        pods = sorted(map(self._admitted, self._waiting()), key=rank)
        outcomes = {pod.key: outcome for pod in pods if (outcome := self._pod(pod)) is not None}
        self._with_neighbours(outcomes)
        bare = self._bare_claims()
        return Report((*outcomes.values(), *bare), (*self._given.notes, *self._notes))

    # --- pods

    def _with_neighbours(self, outcomes: dict[str, Outcome]) -> None:
        """Pods that others kept off by their absence, again, until it helps nobody any more."""
        while True:
            before = dict(outcomes)
            for key in list(self._minding):
                outcome = self._pod(self._cluster.pods[key])
                if outcome is not None:
                    outcomes[key] = outcome
            if outcomes == before or not any(
                outcomes[key].is_placed > before[key].is_placed for key in before
            ):
                return

    def _waiting(self) -> Iterator[Pod]:
        """Pods that may want something, in the order in which they were given."""
        plain = 0
        for pod in self._cluster.pods.values():
            if pod.is_done or pod.metadata.deletion_timestamp is not None:
                continue
            if pod.spec.resource_claims:
                yield pod
            elif not pod.spec.node_name:
                plain += 1
        if plain:
            self._notes.append(
                f"{plain} pod(s) without claims wait for a node: they are left alone, and take no room"
            )

    def _admitted(self, pod: Pod) -> Pod:
        """As it comes to the operator: with the gate that the policy or webhook of its namespace puts on it."""
        raw = self._given.raw(POD)[pod.key]
        if admit(from_object(NewPod, raw), Way.GATE) is not Admission.GATED:
            return pod
        gates = [*raw["spec"].get("schedulingGates", ()), {"name": GATE}]
        return self._suppose_pod({**raw, "spec": {**raw["spec"], "schedulingGates": gates}})

    def _suppose_pod(self, raw: dict[str, Any]) -> Pod:
        pod = self._given.put(POD, raw)
        assert isinstance(pod, Pod)
        self._cluster.assume(pod)
        return pod

    def _pod(self, pod: Pod) -> Outcome | None:
        """None if nothing is to be done for the pod."""
        before = self._placer.work
        answer, work = self._decide(pod)
        if isinstance(answer, Ignore):
            return None
        failure = self._maker.failures.get(pod.key)
        if failure and isinstance(answer, Wait):
            answer = Wait("FeatureUnsupported", failure)
        takes = self._take(pod, answer, work) if isinstance(answer, Plan) else {}
        outcome = replace(self._outcome(POD, pod, answer, before), takes=takes)
        is_theirs = work is not None and bool(work.theirs) and not work.ours
        return replace(outcome, claims=tuple(self._claims_of(pod)), by_kube_scheduler=is_theirs)

    def _decide(self, pod: Pod) -> tuple[Ignore | Refuse | Planned, Allocate | None]:
        """What the operator says, and kube-scheduler's side for pods that are none of the operator's."""
        self._effort = Effort()
        answer = self._placer.classify(pod)
        if isinstance(answer, Release) and answer.to_us:
            return self._decide(self._without_gate(pod))
        if isinstance(answer, Release):
            claims = tuple(self._claims_of(pod))
            waiting = tuple(claim for claim in claims if not claim.is_allocated)
            work = Allocate(theirs=waiting, allocated=tuple(claim for claim in claims if claim.is_allocated))
            return self._plan(pod, work), work
        if isinstance(answer, Allocate):
            return self._plan(pod, answer), answer
        return answer, None

    def _plan(self, pod: Pod, work: Allocate) -> Planned:
        """A plan; for a pod like one that failed, its failure: nothing comes free here."""
        like = signature(pod, work, by_labels=bool(self._cluster.repelling()))
        known = self._failed.get(like)
        if known is not None:
            return known
        self._minding.pop(pod.key, None)
        planned = self._placer.plan(pod, work)
        self._effort = self._placer.effort
        if isinstance(planned, Unplaced):
            if planned.minds_neighbours:
                self._minding[pod.key] = None
            elif like:
                self._failed[like] = planned
        return planned

    def _without_gate(self, pod: Pod) -> Pod:
        raw = self._given.raw(POD)[pod.key]
        return self._suppose_pod({**raw, "spec": _ungated(raw["spec"])})

    def _claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        claims = {entry.claim.key: entry.claim for entry in self._cluster.claims_of_pod(pod) if entry.claim}
        return iter(claims.values())

    def _take(self, pod: Pod, plan: Plan, work: Allocate | None) -> dict[str, Quantity]:
        """Suppose what is written for a plan, by the operator and by kube-scheduler after it; gives what the devices take of the node."""
        for decisions, is_ours in ((plan.ours, True), (plan.theirs, False)):
            for decision in decisions:
                self._allocate(decision.claim, decision.allocation, pod, is_ours=is_ours)
        for claim in work.allocated if work else ():
            if not self._cluster.is_reserved_for(pod, claim):
                self._write(claim, {"reservedFor": reserved_for(claim, self._consumer(pod, claim))})
        taken = self._cluster.taken_by_devices(pod)
        raw = self._given.raw(POD)[pod.key]
        placed = {**raw, "spec": {**_ungated(raw["spec"]), "nodeName": plan.node}}
        if taken:
            told = {"nodeAllocatableResourceClaimStatuses": [to_object(entry) for entry in taken]}
            placed["status"] = {**raw.get("status", {}), **told}
        self._suppose_pod(placed)
        return {name: Quantity(nano, BINARY_SI) for name, nano in sorted(taken_by_devices(taken).items())}

    def _consumer(self, pod: Pod, claim: ResourceClaim) -> ResourceClaimConsumerReference:
        group = self._cluster.pod_groups.get(group_key(pod) or "")
        entry = next(
            found.entry for found in self._cluster.claims_of_pod(pod) if found.claim_key == claim.key
        )
        return bind_to(pod, entry, group)

    def _allocate(
        self, claim: ResourceClaim, allocation: AllocationResult, pod: Pod, *, is_ours: bool
    ) -> None:
        status = allocation_status(claim, allocation, self._consumer(pod, claim))
        self._write(claim, status, digest(allocation) if is_ours else "")

    def _write(self, claim: ResourceClaim, status: dict[str, Any], mark: str = "") -> ResourceClaim:
        """The claim with new members of its status, and with the marks of an allocation."""
        raw = self._given.raw(CLAIM)[claim.key]
        metadata = dict(raw["metadata"])
        if "allocation" in status:
            metadata["finalizers"] = list(dict.fromkeys([*metadata.get("finalizers", ()), FINALIZER]))
            annotations = metadata.get("annotations", {})
            if mark and annotations.get(MARK) != GENERATED:
                metadata["annotations"] = {**annotations, MARK: mark}
        written = self._given.put(
            CLAIM, {**raw, "metadata": metadata, "status": {**raw.get("status", {}), **status}}
        )
        assert isinstance(written, ResourceClaim)
        self._cluster.assume(written)
        return written

    # --- claims that no pod uses

    def _bare_claims(self) -> list[Outcome]:
        found = [
            claim
            for claim in self._cluster.claims.values()
            if not claim.is_allocated
            and claim.metadata.deletion_timestamp is None
            and not self._cluster.pods_of_claim(claim.key)
        ]
        by_age = sorted(found, key=lambda claim: claim.metadata.creation_timestamp or "~")
        outcomes = [self._claim(claim) for claim in by_age]
        if outcomes:
            self._notes.append(
                f"{len(outcomes)} claim(s) that no pod uses were tried on the first node that fits: the operator allocates a claim only once a pod waits for it"
            )
        return outcomes

    def _claim(self, claim: ResourceClaim) -> Outcome:
        before = self._placer.work
        answer, _ = self._decide(user_of(claim))
        if isinstance(answer, Plan):
            for decision in (*answer.ours, *answer.theirs):
                claim = self._write(
                    claim, {"allocation": to_object(decision.allocation)}, digest(decision.allocation)
                )
        return replace(self._outcome(CLAIM, claim, answer, before), claims=(claim,))

    # --- answers

    def _outcome(self, kind: str, about: Pod | ResourceClaim, answer: Any, before: int) -> Outcome:
        metadata = about.metadata
        work = self._placer.work - before
        outcome = Outcome(kind, metadata.namespace, metadata.name, effort=self._effort, work=work)
        if isinstance(answer, Plan):
            return replace(outcome, node=answer.node)
        if isinstance(answer, Unplaced):
            found = explain(answer, "pod" if kind == POD else "claim")
            return replace(
                outcome, reason="AllocationFailed", verdict=found.verdict.value, message=found.message
            )
        return replace(outcome, reason=answer.reason, message=answer.message)


def _ungated(spec: dict[str, Any]) -> dict[str, Any]:
    gates: Iterable[dict[str, Any]] = spec.get("schedulingGates", ())
    kept = [gate for gate in gates if gate.get("name") != GATE]
    rest = {name: value for name, value in spec.items() if name != "schedulingGates"}
    return {**rest, "schedulingGates": kept} if kept else rest
