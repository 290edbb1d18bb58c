"""The write protocol: turns a plan into objects (architecture section 6, cp I-50…I-54).

`allocate` writes, per claim, (1) finalizer and mark, (2) allocation and reservation in one status write; `place` writes (3) the pod:
pinned and released, or bound. Each write carries uid and resourceVersion; every step can be repeated. Devices stay reserved in the model
from the decision until the answer is known, also when an answer never came. Called by the allocation controller; decides nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from dra_operator.cluster import allocation_status, pinned_node, reserved_for
from dra_operator.errors import (
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnauthorized,
    InvalidCapacity,
)
from dra_operator.model import FINALIZER, to_object
from dra_operator.placement import MAX_CONSUMERS

from .clock import to_rfc3339
from .consumers import consumer_of, own_uids
from .names import GENERATED, MARK, digest, has_finalizer, holds_our_allocation
from .placing import UNANSWERED, Placing
from .takingback import TakingBack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from contextlib import AbstractContextManager

    from dra_operator.cluster import Cluster
    from dra_operator.model import (
        AllocationResult,
        DeviceId,
        NodeAllocatableResourceClaimStatus,
        Pod,
        ResourceClaim,
        ResourceClaimConsumerReference,
    )
    from dra_operator.placement import ClaimDecision, Plan

    from .access import Access
    from .clock import Clock

ATTEMPTS = 5
"""Tries of one claim against writers that only touch it (labels, other consumers); as many as kube-scheduler's (cp S-51)."""

CLAIM = "ResourceClaim"
POD = "Pod"

DEFINITE = (ApiConflict, ApiNotFound, ApiInvalid, ApiForbidden, ApiUnauthorized)
"""Failures that say that the write did not happen and will not by repeating it."""


def is_full(claim: ResourceClaim) -> bool:
    """Whether the API server takes no further consumer (cp I-4, V-50)."""
    return len(claim.status.reserved_for) >= MAX_CONSUMERS


def without(claim: ResourceClaim, uids: Iterable[str]) -> list[dict[str, Any]]:
    """`reservedFor` without those consumers."""
    dropped = set(uids)
    return [to_object(entry) for entry in claim.status.reserved_for if entry.uid not in dropped]


class Committer:
    """Writes plans, and takes them back.

    Attributes:
        in_flight: pod key → devices whose fate is not known yet; ownership waits for them before it gives a pool away.
    """

    def __init__(self, access: Access, cluster: Cluster, clock: Clock) -> None:
        self._access = access
        self._cluster = cluster
        self._clock = clock
        self._unanswered: dict[str, dict[str, tuple[ResourceClaim, AllocationResult]]] = {}
        self._borrowed: dict[str, list[str]] = {}
        self._unplaced: set[str] = set()
        self._placing = Placing(access)
        self._taking_back = TakingBack(access)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.in_flight: dict[str, frozenset[DeviceId]] = {}

    async def allocate(self, pod: Pod, plan: Plan) -> None:
        """Write the claims of a plan: allocate and reserve.

        Must be awaited right after the plan was made: it reserves the devices before it first waits for anything. Afterwards the pod
        counts on the node, and what kube-scheduler may allocate for it stays reserved, until `place` fails or another decision for the
        pod is about to be made (`reconsider`); so it may wait between the two steps.

        Raises:
            ApiConflict: something changed; what this attempt allocated was taken back where that is needed; plan again.
            ApiUnavailable: an answer is missing; call `settle` before planning for the pod again.
        """
        self._hold(pod, plan)
        written = False
        try:
            await self._claims(pod, plan)
            written = True
        finally:
            self._answered(pod, plan)
            if not written:
                self._let_go(pod.uid)

    async def place(self, pod: Pod, node: str) -> None:
        """Send a pod whose claims are written to its node: pin and release it if it is gated, else bind it.

        Args:
            pod: in the version that the plan was made from.
            node: the node of the plan.

        Raises:
            ApiConflict: something changed, or the pod is bound; plan again with the claims as they are.
            ApiUnavailable: an answer is missing; call `settle` before planning for the pod again.
        """
        try:
            taken = self._check(pod, node)
            await self._placing.send(pod, node, taken)
        except UNANSWERED:
            raise  # it may be on that node: it counts there until it is reconsidered
        except BaseException:
            self._let_go(pod.uid)
            raise
        self._unplaced.discard(pod.uid)

    async def release(self, pod: Pod) -> Pod:
        """Take our gate off a pod and change nothing else."""
        return await self._placing.release(pod)

    def forget(self, pod_uid: str) -> None:
        """The pod is gone or done: what was kept for it for kube-scheduler's sake is free."""
        self._placing.forget(pod_uid)
        self._unplaced.discard(pod_uid)
        self._return(self._borrowed.pop(pod_uid, ()))

    def borrow(self, pod: Pod, theirs: Iterable[ClaimDecision]) -> None:
        """Keep devices for the claims of a pod that kube-scheduler is about to allocate: one that was sent to its node before we started."""
        decisions = list(theirs)
        for decision in decisions:
            self._cluster.reserve(decision.claim.metadata.uid, decision.allocation)
        if decisions:
            self._borrowed[pod.uid] = [decision.claim.metadata.uid for decision in decisions]

    def has_borrowed(self, claim_uid: str) -> bool:
        """Whether devices were kept for a claim of kube-scheduler's; once it allocates, which others they are may matter."""
        return any(claim_uid in claims for claims in self._borrowed.values())

    def is_bound(self, pod: Pod) -> bool:
        """Whether a pod is known to be bound, also where the feed has not said so yet."""
        return self._placing.is_bound(pod)

    def is_relied_on(self, claim: ResourceClaim, pod_uid: str) -> bool:
        """Whether another pod is being sent on its way, or is about to be, with a claim that is not reserved for this one by name."""
        if claim.is_reserved_for(pod_uid):
            return False  # only its own entry goes, if others use the claim
        others = (other for other in self._cluster.pods_of_claim(claim.key) if other.uid != pod_uid)
        return any(map(self._is_on_its_way, others))

    def _is_on_its_way(self, pod: Pod) -> bool:
        """Whether the pod is being sent to its node, or is about to be."""
        return pod.key in self.in_flight or self._placing.is_sending(pod)

    def taking_back(self, claim: ResourceClaim) -> AbstractContextManager[None]:
        """Around a roll-back that begins with something else: no pod is sent on its way with the claim from here on."""
        return self._taking_back.under_way(claim)

    def forget_claim(self, claim_uid: str) -> None:
        """The claim is gone."""
        self._taking_back.forget(claim_uid)

    def reconsider(self, pod: Pod) -> None:
        """A decision for the pod is about to be made: it must not count itself where an attempt may have put it and did not surely.

        One that turns out to be pinned is on its way: what was kept for it stays.
        """
        if pod.uid not in self._unplaced:
            return
        if pinned_node(pod):
            self._unplaced.discard(pod.uid)
        else:
            self._let_go(pod.uid)

    async def reserve(self, pod: Pod, claim: ResourceClaim) -> None:
        """Add the pod, or the PodGroup through which it shares it, to the consumers of a claim that is allocated already.

        Raises:
            ApiConflict: its allocation is another one, or gone; or it takes no further consumer; or the pod's group is not known.
        """
        consumer = consumer_of(pod, claim, self._cluster)
        uid = claim.metadata.uid
        self._cluster.join(uid, consumer.uid)
        # One at a time: of many pods that join at once all but one would be refused, and try again, and so on.
        turn = self._turns.setdefault(uid, asyncio.Lock())
        try:
            async with turn:
                await self._add_consumer(self._newest(claim), consumer)
        finally:
            self._cluster.leave(uid, consumer.uid)

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as others have left it, if the decision still can be written to it; else as it was, which the server refuses."""
        current = self._cluster.claims.get(claim.key)
        if current is None or current.metadata.uid != claim.metadata.uid:
            return claim
        is_usable = current.metadata.deletion_timestamp is None
        return current if is_usable and current.status.allocation == claim.status.allocation else claim

    async def _add_consumer(self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> None:
        for _ in range(ATTEMPTS):
            if claim.is_reserved_for(consumer.uid):
                return
            if is_full(claim):
                raise ApiConflict(f"ResourceClaim {claim.key} takes no further consumer", status=409)
            body = {"status": {"reservedFor": reserved_for(claim, consumer)}}
            try:
                await self._access.patch(CLAIM, claim, body, subresource="status")
            except ApiConflict:
                current = await self._access.fresh(CLAIM, claim)
                if current is None or current.status.allocation != claim.status.allocation:
                    raise
                if current.metadata.deletion_timestamp is not None:
                    raise  # kube-scheduler turns pods of such claims away (cp I-5)
                claim = current
            else:
                return
        raise ApiConflict(f"ResourceClaim {claim.key} keeps changing while it is being reserved", status=409)

    async def settle(self, pod_key: str) -> bool:
        """Find out what became of a pod, and of its claims, whose write got no answer; a write to a claim cannot come late then.

        A write that is still under way carries the claim's resourceVersion; another write to the claim makes it fail.

        Returns: whether there was any such claim; its devices may be free again.

        Raises:
            ApiError: still unknown; the devices stay reserved.
        """
        await self._placing.settle(pod_key)
        pod = self._cluster.pods.get(pod_key)
        for entry in self._cluster.claims_of_pod(pod) if pod is not None else ():
            if entry.claim is not None:
                await self._taking_back.settle(entry.claim)
        if pod_key not in self._unanswered:
            return False
        for uid, (claim, allocation) in list(self._unanswered[pod_key].items()):
            await self._fence(claim)
            self._unanswered[pod_key].pop(uid)
            self._keep_no_longer(claim, allocation)
        del self._unanswered[pod_key]
        self.in_flight.pop(pod_key, None)
        return True

    async def fence(self, pod: Pod) -> Pod:
        """Make sure that a pod still waits, and goes on waiting: a pin or a binding that is under way yet fails from now on.

        An attempt may be taken back only after that. The model may not know that such a write got through without an answer.

        Raises:
            ApiConflict: the pod changed; the model knows it now.
        """
        return await self._placing.fence(pod)

    async def roll_back(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Take our allocation for that pod back: status first, then finalizer, and only if nobody else uses it (cp I-52).

        Raises:
            ApiUnavailable: an answer is missing; no pod is sent on its way with the claim before `settle`.
        """
        with self._taking_back.under_way(claim):
            await self._roll_back(claim, pod_uid)

    async def _roll_back(self, claim: ResourceClaim, pod_uid: str) -> None:
        current: ResourceClaim | None = claim
        for _ in range(ATTEMPTS):
            try:
                if current is not None:
                    await self._take_back(current, pod_uid)
            except ApiConflict:
                current = await self._access.fresh(CLAIM, claim)
            except ApiNotFound:
                return
            except UNANSWERED:
                if current is not None:
                    self._taking_back.unanswered(current)
                raise
            else:
                return
        raise ApiConflict(
            f"ResourceClaim {claim.key} keeps changing while its allocation is being taken back", status=409
        )

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Clear allocation and consumers, then drop finalizer and mark; the claim must be the current one.

        Raises:
            ApiConflict: it is not.
        """
        return await self._unmark(await self._deallocate(claim))

    async def _deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        if not (claim.is_allocated or claim.status.reserved_for):
            return claim
        body = {"status": {"allocation": None, "reservedFor": None}}
        return await self._access.patch(CLAIM, claim, body, subresource="status")

    async def _unmark(self, claim: ResourceClaim) -> ResourceClaim:
        if not has_finalizer(claim):
            return claim
        finalizers = [name for name in claim.metadata.finalizers if name != FINALIZER]
        body: dict[str, Any] = {"metadata": {"finalizers": finalizers, "annotations": {MARK: None}}}
        return await self._access.patch(CLAIM, claim, body)

    async def _claims(self, pod: Pod, plan: Plan) -> None:
        done: list[ResourceClaim] = []
        try:
            for decision in plan.ours:
                done.append(await self._allocate(pod, decision))  # noqa: PERF401 - a failure half-way must find the others in the list
            for claim in plan.reserve:
                await self.reserve(pod, claim)
        except DEFINITE:
            for claim in done:
                await self.roll_back(claim, pod.uid)
            raise

    def _check(self, pod: Pod, node: str) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
        """A last look before the step that cannot be taken back: claims and node must be there to stay, and no device given twice.

        Returns: what the devices of the claims take of the node (KEP 5517).

        Raises:
            ApiConflict: plan again; the pod will be told to wait, and what it holds is taken back.
        """
        twice = {key for holders in self._cluster.doubles().values() for key in holders}
        for entry in self._cluster.claims_of_pod(pod):
            why = entry.message or (
                self._hindrance(pod, entry.claim, twice) if entry.claim is not None else ""
            )
            if why:
                raise ApiConflict(f"pod {pod.key}: {why}", status=409)
        if node not in self._cluster.nodes:
            raise ApiConflict(f"pod {pod.key}: node {node} is gone", status=409)
        try:
            return self._cluster.taken_by_devices(pod)
        except InvalidCapacity as error:  # it was judged when the plan was made: its slice has changed since
            raise ApiConflict(f"pod {pod.key}: {error.message}", status=409) from error

    def _hindrance(self, pod: Pod, claim: ResourceClaim, twice: Collection[str]) -> str:
        """Why the pod must not go with a claim, though it may have been planned with it; empty if it may."""
        if self._taking_back.concerns(claim):
            return f"claim {claim.key} is being taken back"
        if not claim.is_allocated and claim.metadata.uid not in self._borrowed.get(pod.uid, ()):
            return f"claim {claim.key} got deallocated in the meantime"
        # The sweeper takes one of them back; sent there, this pod would keep its device (cp I-13).
        return f"a device of claim {claim.key} is in another claim, too" if claim.key in twice else ""

    async def _allocate(self, pod: Pod, decision: ClaimDecision) -> ResourceClaim:
        claim = decision.claim
        for _ in range(ATTEMPTS):
            try:
                claim = await self._mark(claim, decision.allocation)
                return await self._write_allocation(pod, claim, decision.allocation)
            except ApiConflict:
                claim = await self._still_free(claim, decision.allocation)
        raise ApiConflict(f"ResourceClaim {claim.key} keeps changing while it is being allocated", status=409)

    async def _still_free(self, claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
        """The claim afresh, if the decision still can be written to it."""
        current = await self._access.fresh(CLAIM, claim)
        if current is None or current.metadata.deletion_timestamp is not None:
            raise ApiConflict(f"ResourceClaim {claim.key} got deleted in the meantime", status=409)
        if current.is_allocated:
            raise ApiConflict(
                f"ResourceClaim {claim.key} got allocated elsewhere in the meantime", status=409
            )
        if self._cluster.allocation(current) != allocation:
            # It was, and is not any more: what was decided for it has not been kept for it since, and may be another's.
            raise ApiConflict(
                f"ResourceClaim {claim.key} got allocated and deallocated in the meantime", status=409
            )
        return current

    async def _mark(self, claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
        """Step 1. Nothing to write if the claim is marked well enough already."""
        if has_finalizer(claim) and claim.metadata.annotations.get(MARK) in {GENERATED, digest(allocation)}:
            return claim
        finalizers = list(claim.metadata.finalizers)
        metadata: dict[str, Any] = {"annotations": {MARK: digest(allocation)}}
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        return await self._access.patch(CLAIM, claim, {"metadata": metadata})

    async def _write_allocation(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult
    ) -> ResourceClaim:
        """Step 2, the commit point."""
        stamped = msgspec.structs.replace(allocation, allocation_timestamp=to_rfc3339(self._clock.now()))
        consumer = consumer_of(pod, claim, self._cluster)
        body = {"status": allocation_status(claim, stamped, consumer)}
        try:
            return await self._access.patch(CLAIM, claim, body, subresource="status")
        except UNANSWERED:
            self._unanswered.setdefault(pod.key, {})[claim.metadata.uid] = claim, allocation
            raise

    async def _take_back(self, claim: ResourceClaim, pod_uid: str) -> None:
        if claim.is_allocated and not holds_our_allocation(claim):
            return
        others = without(claim, self._may_be_dropped(claim, pod_uid))
        if not others:
            cleared = await self._deallocate(claim)
            # Claims that we generated are born with finalizer and mark, and keep them for the next attempt.
            if cleared.metadata.annotations.get(MARK) != GENERATED:
                await self._unmark(cleared)
        elif claim.is_reserved_for(pod_uid):
            await self._access.patch(CLAIM, claim, {"status": {"reservedFor": others}}, subresource="status")

    def _may_be_dropped(self, claim: ResourceClaim, pod_uid: str) -> frozenset[str]:
        """The consumers of a claim that go with an attempt for a pod: the pod, and its PodGroup unless another of its pods counts on it."""
        alone = frozenset({pod_uid})
        pod = self._cluster.pod(pod_uid)
        if pod is None:
            return alone
        others = (other for other in self._cluster.pods_of_claim(claim.key) if other.uid != pod_uid)
        counted_on = any(
            self._is_on_its_way(other) or not (other.is_done or other.is_held) for other in others
        )
        return alone if counted_on else alone | own_uids(pod, claim)

    async def _fence(self, claim: ResourceClaim) -> None:
        current = await self._access.fresh(CLAIM, claim)
        if (
            current is None
            or current.is_allocated
            or current.metadata.resource_version != claim.metadata.resource_version
        ):
            return
        # Dropping the mark is the write that makes a late one fail; the next attempt marks anew.
        finalizers = [name for name in current.metadata.finalizers if name != FINALIZER]
        await self._access.patch(
            CLAIM, current, {"metadata": {"finalizers": finalizers, "annotations": {MARK: None}}}
        )

    def _hold(self, pod: Pod, plan: Plan) -> None:
        decisions = (*plan.ours, *plan.theirs)
        for decision in decisions:
            self._cluster.reserve(decision.claim.metadata.uid, decision.allocation)
        for claim in plan.reserve:
            self._cluster.join(claim.metadata.uid, self._consumer_uid(pod, claim))
        if plan.theirs:
            # What kube-scheduler is going to allocate stays reserved until it has (the model notices), or the pod is gone.
            self._borrowed[pod.uid] = [decision.claim.metadata.uid for decision in plan.theirs]
        # From now on the pod counts against the node, or the next decision would fill it twice and strand a pinned pod.
        if not pod.spec.node_name:
            self._cluster.place(pod.uid, plan.node)
            self._unplaced.add(pod.uid)
        self.in_flight[pod.key] = frozenset(_devices(decisions))

    def _answered(self, pod: Pod, plan: Plan) -> None:
        """The writes of the claims are over: what they say counts, but where an answer is missing."""
        unanswered = self._unanswered.get(pod.key, {})
        for decision in plan.ours:
            if decision.claim.metadata.uid not in unanswered:
                self._keep_no_longer(decision.claim, decision.allocation)
        for claim in plan.reserve:
            self._cluster.leave(claim.metadata.uid, self._consumer_uid(pod, claim))
        if not unanswered:
            self.in_flight.pop(pod.key, None)

    def _keep_no_longer(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Drop a decision in flight for a claim, as it was before, but not another one that has been made for it since."""
        if self._cluster.allocation(claim) == allocation:
            self._cluster.unreserve(claim.metadata.uid)

    def _consumer_uid(self, pod: Pod, claim: ResourceClaim) -> str:
        """The uid that `reserve` is going to add; the pod's where its group is not known, which fails there."""
        try:
            return consumer_of(pod, claim, self._cluster).uid
        except ApiConflict:
            return pod.uid

    def _let_go(self, pod_uid: str) -> None:
        """The pod goes nowhere by this attempt."""
        self._unplaced.discard(pod_uid)
        self._cluster.unplace(pod_uid)
        self._return(self._borrowed.pop(pod_uid, ()))

    def _return(self, claim_uids: Iterable[str]) -> None:
        for uid in claim_uids:
            self._cluster.unreserve(uid)


def _devices(decisions: Iterable[ClaimDecision]) -> list[DeviceId]:
    return [result.device_id for decision in decisions for result in decision.allocation.devices.results]
