"""Serves pods: asks placement what to do with each, has it committed, tells the user when it cannot be done.

One key a pod. Decisions are taken one at a time on the event loop, against a model that holds what earlier ones have reserved;
their writes run at the same time (bounded by the number of workers). Pods that wait are looked at again when something
changes that could help, by priority and then by age; there is no timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from dra_operator.cluster import (
    claim_keys,
    freed_devices,
    pinned_node,
)
from dra_operator.errors import (
    ApiConflict,
    ApiError,
    ApiNotFound,
    WorkLimitReached,
)
from dra_operator.explain import explain
from dra_operator.logfields import fields, note
from dra_operator.metrics import (
    ALLOCATIONS,
    PLACEMENT_DURATION,
    PLACEMENT_LIMITS,
    PLACEMENT_STEPS,
)
from dra_operator.model import Pod, ResourceClaim
from dra_operator.placement import (
    DEFAULT_SELECTOR_WORK,
    RUNNING,
    Allocate,
    Ignore,
    Plan,
    Refuse,
    Release,
    Unplaced,
    Wait,
    rank,
    signature,
)

from .commit import CLAIM, POD
from .debts import FREE, Debts
from .failures import Failures
from .names import holds_our_allocation
from .patience import Patience
from .podscheduled import SCHEDULER_ERROR, UNSCHEDULABLE
from .readiness import PENDING_REASON, READY, State, bound_text, lost_text, stuck_text
from .rules import POLICY
from .telling import UNGATED, Telling
from .turns import ENOUGH, LOOK, STEP, Turns, one_by_one
from .undo import claims_of, to_take_back
from .waiting import Waiting
from .waking import Waking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change
    from dra_operator.placement import Classification, Outcome, Placer

    from .commit import Committer
    from .lineup import Rank
    from .parts import Parts
    from .readiness import Readiness, Verdict
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

IN_FLIGHT = "ClaimInFlight"
"""Placement's reason for pods whose claim another pod's attempt is about to allocate; the end of that attempt wakes them."""

COSTLY = "SelectorsCostly"
"""Reason for pods whose selectors take more work than one decision may do."""

MAX_PORTIONS = 200
"""Portions of one pass; what they take together is limited by work, this is for what takes none."""

SETTLING = "Settling"
"""Placement's reason for pods whose pools are not allocated from yet."""

REMIND = 1200.0
"""Seconds after which waiting pods are looked at again although nothing has changed: the API server forgets events after an hour, and a
pod that waits must not be without a word. A safety net as well, as kube-scheduler has one. Arbitrary, well below that hour."""


class AllocationController:
    """Serves gated pods, pods that name us as their scheduler, and bound ones whose claims nobody has allocated (cp I-28).

    Attributes:
        waiting: the pods that cannot be served now.
    """

    def __init__(
        self, parts: Parts, queue: WorkQueue, placer: Placer, committer: Committer, readiness: Readiness
    ) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self.queue = queue
        queue.rank_by(self._rank)
        self._placer = placer
        self._committer = committer
        self.waiting = Waiting(parts.clock)
        self._failures = Failures(parts.clock)
        self._patience = Patience(parts.clock)
        self._debts = Debts(parts.clock)
        self._turns = Turns(parts.clock)
        self._bills: dict[str, int] = {}
        self._to_borrow: dict[str, None] = {}
        self._borrowing = asyncio.Lock()
        self._readiness = readiness
        self._waking = Waking(parts.clock, parts.cluster, self.waiting, self._failures, self._look_at)
        self._attempts: Counter[str] = Counter()
        self._telling = Telling(parts)

    def start(self) -> None:
        """The model is synced: look at every pod that may need us; half-done attempts are finished on the way."""
        by_age = sorted(
            self._cluster.pods.values(), key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key)
        )
        self._to_borrow = dict.fromkeys(pod.key for pod in by_age if self._may_be_sent(pod))
        for pod in self._cluster.pods.values():
            self._notice(pod)
        self._parts.clock.call_later(REMIND, self._remind)

    def changed(self, change: Change) -> None:
        """Mark the pods that a change concerns."""
        subject = change.new or change.old
        if isinstance(subject, Pod):
            self._pod_changed(change, subject)
        elif isinstance(subject, ResourceClaim):
            self._claim_changed(change, subject.key)
        self._waking.changed(change)

    def wake(self) -> None:
        """Something changed that may help: look at all waiting pods again, soon, together."""
        self._waking.everybody()

    def _may_be_sent(self, pod: Pod) -> bool:
        """Whether an operator before us sent the pod to a node."""
        is_on_its_way = not pod.spec.node_name and not pod.is_done and bool(pinned_node(pod))
        return is_on_its_way and any(holds_our_allocation(claim) for claim in claims_of(self._cluster, pod))

    async def _borrow(self) -> None:
        """Before anything is decided, keep what pods that were sent need of kube-scheduler, or a second one is sent after the same devices."""
        async with self._borrowing:
            while self._to_borrow:
                pod_key = next(iter(self._to_borrow))
                await self._turns.mine()
                pod = self._cluster.pods.get(pod_key)
                if pod is None or not self._may_be_sent(pod) or self._borrow_for(pod):
                    self._to_borrow.pop(pod_key)
                    self._bills.pop(pod_key, None)
                else:
                    await self._elsewhere(pod_key)

    def _borrow_for(self, pod: Pod) -> bool:
        """Returns: whether that is all; not where its selectors take more work than a turn of the loop may."""
        before, began = self._placer.work, self._parts.clock.monotonic()
        try:
            self._committer.borrow(pod, self._placer.for_kube_scheduler(pod, pinned_node(pod)))
        except WorkLimitReached:
            return self._bills.get(pod.key, 0) >= DEFAULT_SELECTOR_WORK
        finally:
            self._count(pod, self._placer.work - before, began)
        return True

    def works_on(self, pod_key: str) -> bool:
        """Whether an attempt for the pod goes on, is about to, or waits for something that it knows; not one that keeps failing."""
        goes_on = self.queue.knows(pod_key) and not self.queue.is_resting(pod_key)
        return goes_on or pod_key in self.waiting or pod_key in self._committer.in_flight

    async def reconcile(self, pod_key: str) -> None:
        """One pass over a pod.

        Raises:
            ApiError: a write failed; look again.
            WorkLimitReached: the pod's selectors take more than a pass may; look again, after others.
        """
        if self._to_borrow:
            await self._borrow()
        try:
            await self._look_in_portions(pod_key)
        except WorkLimitReached as error:
            await self._tell_costly(pod_key, error)
            raise
        finally:
            self._bills.pop(pod_key, None)

    async def _look_in_portions(self, pod_key: str) -> None:
        """A pass whose decision may take several turns of the loop: what was found out is kept, and the next portion goes on from there."""
        number = self._turns.number()
        for portion in count():
            try:
                await self._look(pod_key, number, is_first=not portion)
            except WorkLimitReached:
                if portion >= MAX_PORTIONS or self._bills.get(pod_key, 0) >= DEFAULT_SELECTOR_WORK:
                    raise
                await self._elsewhere(pod_key, number)
            else:
                return

    async def _elsewhere(self, pod_key: str, number: int = -1) -> None:
        """Let others have the loop; what takes long is done in a thread meanwhile."""
        errands = self._placer.errands()
        began = self._parts.clock.monotonic()
        # As much as is owed by nobody is decided in the order of ranks (`debts.FREE`), be it in a thread.
        is_usual = self._bills.get(pod_key, 0) <= FREE
        with self._turns.held(self._rank(pod_key), number) if is_usual else nullcontext():
            if not errands:
                await asyncio.sleep(0)
                return
            units = await one_by_one(errands)
        self._bill(pod_key, units, self._parts.clock.monotonic() - began)

    def _bill(self, pod_key: str, units: int, seconds: float) -> None:
        before = self._bills.get(pod_key, 0)
        self._bills[pod_key] = before + units
        self._debts.charge(pod_key.partition("/")[0], units, seconds, before)

    async def _look(self, pod_key: str, number: int, *, is_first: bool) -> None:
        note(pod=pod_key)
        if await self._committer.settle(pod_key):
            self.wake()
        await self._turns.mine(self._rank(pod_key), number)
        pod = self._cluster.pods.get(pod_key)
        if pod is None:
            self.waiting.drop(pod_key)
            return
        if self._waking.is_outranked(pod):
            self.queue.add(pod_key)
            self._waking.everybody_now()
            return
        if is_first and (rest := self._debts.rest(pod.metadata.namespace)):
            self.queue.undecided(pod_key)
            self.queue.add_after(pod_key, rest)
            return
        if self._committer.is_bound(pod) and not await self._concerns_us(pod):
            return
        self._committer.reconsider(pod)
        if is_first:
            note(decision=self._attempt(pod))
        # No await between the decision and the first line of `allocate`: what it takes must be reserved before the next decision.
        before = self._placer.work
        answer, again = self._patience.judge(pod.uid, self._classify(pod))
        if again:
            self._parts.clock.call_later(again, lambda: self.queue.add(pod_key))
        logger.debug("the answer for the pod is %s", type(answer).__name__.lower())
        if isinstance(answer, Allocate) and self._placer.work - before > ENOUGH:
            with self._turns.held(self._rank(pod_key), number):
                await asyncio.sleep(0)  # where the devices are is for another turn of the loop
            await self._look(pod_key, number, is_first=False)
        else:
            await self._act(pod, answer)

    async def _act(self, pod: Pod, answer: Classification) -> None:
        if isinstance(answer, Allocate):
            await self._allocate(pod, answer)
        elif isinstance(answer, Release):
            await self._release(pod, answer)
        else:
            await self._leave(pod, answer)

    def _classify(self, pod: Pod) -> Classification:
        before, began = self._placer.work, self._parts.clock.monotonic()
        try:
            return self._placer.classify(pod)
        finally:
            self._count(pod, self._placer.work - before, began)

    def _count(self, pod: Pod, units: int, began: float) -> None:
        """A decision for a pod took so much work."""
        self._bill(pod.key, units, self._parts.clock.monotonic() - began)
        self._turns.took(units)

    async def _tell_costly(self, pod_key: str, error: WorkLimitReached) -> None:
        """What the pod holds stays its own: it is neither refused nor failed, only not decided yet."""
        pod = self._cluster.pods.get(pod_key)
        if pod is not None:
            self._wait(pod, "waiting", COSTLY, str(error))
            self._telling.claim(Wait(COSTLY, str(error), claim=error.claim))
            await self._show(pod, UNSCHEDULABLE, str(error))

    def _rank(self, pod_key: str) -> Rank:
        """Who is next: those whose namespace owes no work; then by `placement.rank`."""
        pod = self._cluster.pods.get(pod_key)
        if pod is None:
            return 0, 0, 0, ""
        return self._debts.places(pod.metadata.namespace), *rank(pod)

    def _attempt(self, pod: Pod) -> str:
        """A short name for this attempt to serve the pod: the beginning of its uid, and its number since the start."""
        self._attempts[pod.uid] += 1
        return f"{pod.uid[:8]}-{self._attempts[pod.uid]}"

    async def _concerns_us(self, pod: Pod) -> bool:
        """Whether a bound pod needs anything of us (cp I-28) with its claims as the server has them now; not before the feed has the
        binding.

        kube-scheduler allocates, then binds: where the pod's event overtakes the claim's, a pod that it has served looks like one
        that nobody serves.
        """
        if not pod.spec.node_name:
            self.waiting.drop(pod.key)
            return False
        answer = self._classify(pod)
        if isinstance(answer, Ignore):
            self._look_at_devices(pod)
            return False
        if isinstance(answer, Wait):
            return True
        for claim in claims_of(self._cluster, pod):
            if not claim.is_allocated:
                await self._parts.access.fresh(CLAIM, claim)
        if self._cluster.pods.get(pod.key) is not pod:
            self.queue.add(pod.key)
            return False
        return True

    def _look_at_devices(self, pod: Pod) -> None:
        """A pod on its node is not held back by devices that are not ready, as nobody could place it anew: what they lack is told."""
        verdict = (
            READY if pod.status.phase == RUNNING else self._readiness.judge(claims_of(self._cluster, pod))
        )
        if verdict.claim is None:
            self.waiting.drop(pod.key)
            return
        reason = verdict.reason if verdict.is_lost else PENDING_REASON
        self._wait(pod, "waiting", reason, bound_text(verdict, pod.spec.node_name))
        self._readiness.remind(pod.uid, verdict, lambda: self.queue.add(pod.key))

    async def _allocate(self, pod: Pod, work: Allocate) -> None:
        verdict = READY if work.bound_node else self._readiness.judge(work.allocated)
        if verdict.is_lost:
            await self._start_over(pod, work, verdict)
            return
        work = replace(work, avoid=self._readiness.avoided(work.ours))
        outcome = self._plan(pod, work)
        if isinstance(outcome, Plan):
            await self._commit(pod, outcome)
        elif isinstance(outcome, Unplaced):
            await self._unplaced(pod, work, outcome)
        else:
            await self._leave(pod, outcome)

    def _plan(self, pod: Pod, work: Allocate) -> Outcome:
        """A plan; for a pod like one that failed since the last helpful change, its failure without another search."""
        like = signature(pod, work, by_labels=bool(self._cluster.repelling()))
        known = self._failures.find(like)
        if known is not None:
            logger.debug("not searched: a pod like this one has just failed, and nothing has changed")
            failure, again = known
            if again:
                self.queue.add_after(pod.key, again)
            return failure
        began = self._parts.clock.monotonic()
        before = self._placer.work
        try:
            outcome = self._placer.plan(pod, work)
        finally:
            searched = STEP * self._placer.effort.steps + LOOK * self._placer.effort.looks
            self._count(pod, self._placer.work - before + searched, began)
        took = self._parts.clock.monotonic() - began
        self._measure(outcome, took)
        if isinstance(outcome, Unplaced):
            self._failures.put(like, outcome, took)
        return outcome

    def _measure(self, outcome: Outcome, took: float) -> None:
        effort, metrics = self._placer.effort, self._parts.metrics
        facts = fields(
            node=outcome.node if isinstance(outcome, Plan) else None,
            nodes=outcome.total if isinstance(outcome, Unplaced) else None,
            steps=effort.steps,
            seconds=took,
        )
        logger.debug("looked for devices: %s", type(outcome).__name__.lower(), extra=facts)
        metrics.observe(PLACEMENT_DURATION, took, type(outcome).__name__.lower())
        metrics.observe(PLACEMENT_STEPS, effort.steps)
        metrics.count(PLACEMENT_LIMITS, by=effort.limits)

    async def _commit(self, pod: Pod, plan: Plan) -> None:
        try:
            await self._committer.allocate(pod, plan)
            if not pod.spec.node_name:
                if self._awaits_devices(pod, plan.node):
                    return
                await self._committer.place(pod, plan.node)
        except BaseException as error:
            self._failed(pod, error)
            raise
        self.waiting.drop(pod.key)
        self._telling.served(pod, plan)

    def _awaits_devices(self, pod: Pod, node: str) -> bool:
        """Whether devices of the pod have to be made ready before it goes to its node (cp S-63, I-7); it waits with its claims reserved.

        No worker waits with it: its claims tell when their devices are ready, and a timer when that takes too long.
        """
        claims = claims_of(self._cluster, pod)
        verdict = self._readiness.judge(claims)
        if verdict.state is State.READY:
            self._readiness.count(claims, State.READY)
            return False
        if verdict.is_lost:
            self.queue.add(pod.key)  # the next pass gives them back
        else:
            self._wait(pod, "waiting", PENDING_REASON, self._readiness.pending_text(verdict, node))
            self._readiness.remind(pod.uid, verdict, lambda: self.queue.add(pod.key))
        return True

    async def _start_over(self, pod: Pod, work: Allocate, verdict: Verdict) -> None:
        """Devices of the pod failed, or took too long: all is given back and chosen anew, without them for a while (cp S-65)."""
        claim = verdict.claim
        assert claim is not None
        held = self._to_take_back(pod, work.allocated)
        self._readiness.count([claim], verdict.state)
        self._readiness.avoid(verdict, lambda: self._notice_all(claim.key))
        if claim in held:
            self._parts.recorder.record(POD, pod.metadata, verdict.reason, lost_text(verdict))
            await self._took_back(pod, work.allocated)
            self.queue.add(pod.key)
            return
        is_going = all(self._will_give_back(entry.uid, claim) for entry in claim.status.reserved_for)
        text = stuck_text(verdict, is_ours=holds_our_allocation(claim))
        self._wait(pod, "waiting", verdict.reason, "" if claim.status.reserved_for and is_going else text)

    def _will_give_back(self, pod_uid: str, claim: ResourceClaim) -> bool:
        """Whether another pod of the claim, which waits for the same devices, is about to find out that they are lost."""
        other = self._cluster.pod(pod_uid)
        return other is not None and bool(to_take_back(self._cluster, other, [claim]))

    def _failed(self, pod: Pod, error: BaseException) -> None:
        """An attempt came to nothing: what was reserved for it may serve others."""
        overtaken = isinstance(error, ApiConflict | ApiNotFound)
        self._parts.metrics.count(ALLOCATIONS, "conflict" if overtaken else "error")
        self.wake()
        self._telling.refused(pod, error)

    async def _release(self, pod: Pod, answer: Release) -> None:
        if pod.spec.resource_claims and not answer.to_us and not await self._is_surely_theirs(pod):
            self.queue.add(pod.key)
            return
        try:
            await self._committer.release(pod)
        except ApiError as error:
            self._telling.refused(pod, error)
            raise
        if answer.to_us:
            logger.debug("our gate is off: the pod names us as its scheduler and goes on waiting for us")
            return
        self.waiting.drop(pod.key)
        self._telling.released(pod)

    async def _is_surely_theirs(self, pod: Pod) -> bool:
        """Whether the pod still is none of ours with the policies as the server has them now.

        A release cannot be taken back, and the pod's event may have overtaken that of a policy applied just before it.
        """
        for policy in await self._parts.access.list(POLICY, ""):
            self._cluster.assume(policy)
        current = self._cluster.pods.get(pod.key)
        return current is not None and isinstance(self._classify(current), Release)

    async def _unplaced(self, pod: Pod, work: Allocate, outcome: Unplaced) -> None:
        """No node serves the pod. What a half-done attempt allocated for it is taken back, and all is chosen anew."""
        if await self._took_back(pod, work.allocated):
            self.queue.add(pod.key)
        else:
            found = explain(outcome)
            self._wait(pod, "unsatisfied", "AllocationFailed", found.message, found.verdict.value)
            if outcome.minds_neighbours:
                self.waiting.mind_neighbours(pod.key)
            await self._show(pod, UNSCHEDULABLE, found.message)

    async def _took_back(self, pod: Pod, claims: Iterable[ResourceClaim]) -> bool:
        """Take a half-done attempt back, if there is one: whether there was."""
        held = self._to_take_back(pod, claims)
        if not held:
            return False
        await self._committer.fence(pod)
        for claim in held:
            await self._committer.roll_back(claim, pod.uid)
        self._parts.metrics.count(ALLOCATIONS, "rolled_back")
        names = ", ".join(claim.key for claim in held)
        logger.info("took back what a half-done attempt had allocated", extra=fields(claims=names))
        return True

    def _to_take_back(self, pod: Pod, claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
        """What the pod may give back, but for what another pod is being sent on its way with at this moment."""
        held = to_take_back(self._cluster, pod, claims)
        return [claim for claim in held if not self._committer.is_relied_on(claim, pod.uid)]

    async def _leave(self, pod: Pod, answer: Ignore | Wait | Refuse | Release | Outcome) -> None:
        """Nothing to allocate: note that the pod waits, and why. What a half-done attempt holds serves others meanwhile."""
        if _lasts(answer):
            await self._took_back(pod, claims_of(self._cluster, pod))
        if isinstance(answer, Wait):
            if answer.reason == UNGATED:
                self._telling.ungated(pod)
            if answer.reason == IN_FLIGHT:
                self.queue.undecided(pod.key)
            self._wait(pod, "waiting", answer.reason, "" if answer.quiet else answer.message)
            self._telling.claim(answer)
            await self._show(pod, UNSCHEDULABLE, "" if answer.quiet else answer.message)
        elif isinstance(answer, Refuse):
            self._wait(pod, "refused", answer.reason, answer.message)
            self._telling.claim(answer)
            await self._show(pod, SCHEDULER_ERROR, answer.message)
        else:
            self.waiting.drop(pod.key)

    def _wait(self, pod: Pod, result: str, reason: str, message: str, verdict: str = "") -> None:
        """Keep the pod for the next change that may help; count and log only what is news.

        That is another reason, another verdict (whether there is anything to wait for), or that it is told at all. Other words are
        none: each device that comes free changes figures and clauses for every pod that waits. Events have them, and a limit.
        """
        state = f"{verdict or 'waits'}{', told' if message else ''}"
        pending = (claim.key for claim in claims_of(self._cluster, pod) if not claim.is_allocated)
        news = self.waiting.put(pod.key, reason, state, pending)
        self._waking.joined(pod)
        self._telling.waits(pod, reason, message, news=result if news else "")

    async def _show(self, pod: Pod, reason: str, message: str) -> None:
        """Say it in the pod's status, too, and again later if that is too early now."""
        again = await self._telling.show(pod, reason, message)
        if again:
            self.queue.add_after(pod.key, again)

    def _pod_changed(self, change: Change, pod: Pod) -> None:
        if change.new is not None and not pod.is_done:
            if not _says_nothing_new(change):
                self._notice(pod)
            return
        self.waiting.drop(pod.key)
        self._telling.forget(pod.uid)
        self._patience.forget(pod.uid)
        self._readiness.forget_pod(pod.uid)
        self._attempts.pop(pod.uid, None)
        self._committer.forget(pod.uid)
        if pod.spec.resource_claims:
            self.queue.add(pod.key)  # answers may be missing for it
        for key in claim_keys(pod):
            self._notice_all(key)
        self.wake()  # its cpu, memory, ports are free

    def _claim_changed(self, change: Change, key: str) -> None:
        self._notice_all(key)
        subject = change.new or change.old
        assert isinstance(subject, ResourceClaim)
        if change.new is None:
            self._readiness.forget(subject.metadata.uid)
            self._committer.forget_claim(subject.metadata.uid)
        if freed_devices(change) or self._committer.has_borrowed(subject.metadata.uid):
            self.wake()

    def _notice_all(self, claim_key: str) -> None:
        for pod in self._cluster.pods_of_claim(claim_key):
            self._notice(pod)

    def _notice(self, pod: Pod) -> None:
        """Look at a pod if it may need us: held, or bound with claims, or known to wait (somebody may have taken our gate off)."""
        needs_us = pod.is_held or (pod.spec.node_name and pod.spec.resource_claims)
        if pod.is_done or not (needs_us or pod.key in self.waiting):
            return
        if pod.is_held:
            self._telling.seen(pod)
        self.queue.add(pod.key)

    def _remind(self) -> None:
        self.wake()
        self._parts.clock.call_later(REMIND, self._remind)

    def _look_at(self, keys: Iterable[str]) -> None:
        """Have waiting pods looked at again."""
        for pod in filter(None, map(self._cluster.pods.get, keys)):
            # A pod whose write failed had a plan: no change of the cluster helps it, and its own failure is what wakes the others.
            if not self.queue.is_resting(pod.key):
                self.queue.add(pod.key)


def _lasts(answer: object) -> bool:
    """Whether a pod waits for somebody to do something, rather than for a feed, another attempt or the settle time."""
    if isinstance(answer, Wait):
        return not answer.quiet and answer.reason != SETTLING
    return isinstance(answer, Refuse)


def _says_nothing_new(change: Change) -> bool:
    """Whether only the conditions of a pod that waits are others than before: mostly what we have just written there ourselves."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or not new.names_us:
        return False
    if old.status.conditions == new.status.conditions or old.spec != new.spec:
        return False
    same_meta = (
        msgspec.structs.replace(new.metadata, resource_version=old.metadata.resource_version) == old.metadata
    )
    return same_meta and msgspec.structs.replace(new.status, conditions=old.status.conditions) == old.status
