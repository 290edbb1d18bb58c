"""Keeps an AllocationPolicy's DeviceTaintRules, its finalizer and its status (architecture, section 2).

One key a policy. Order matters at both ends: a pool is allocated from only after its rule has settled (`settling`), and a rule
goes only after the last write about its pools is answered. The finalizer is on our own kind only.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dra_operator.cluster import rules_changed
from dra_operator.errors import ApiAlreadyExists, ApiError, ApiForbidden, ApiInvalid, ApiNotFound
from dra_operator.logfields import News, fields, note
from dra_operator.model import AllocationPolicy, DeviceTaintRule, ResourceClaim, ResourceSlice, from_object

from .cadence import Cadence
from .clock import to_rfc3339
from .commit import CLAIM
from .names import POLICY_FINALIZER
from .policyfacts import gather
from .policystatus import PROBLEMS, conditions, only_counts, problems, removal, status, verdicts
from .rules import POLICY, RULE, is_as_wanted, rule_body, rule_spec, rules_of, wanted_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.cluster import Change
    from dra_operator.model import AllocationPolicyStatus, DeviceId, DeviceTaintSelector, PoolId, PoolSelector

    from .parts import Parts
    from .policystatus import Facts, Verdict
    from .settling import Settling
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

STATUS_INTERVAL = 1.0
"""Seconds between two status writes of a policy. Arbitrary: for people to read; `cadence` has counts told more seldom."""

LOOK_REST = 9.0
"""A policy that slices or claims concern rests for so many times as long as the look at it took, at least for `STATUS_INTERVAL`: that of
ten thousand pools takes a second, of which the others need nine tenths."""

REFUSALS = (ApiForbidden, ApiInvalid)
"""Failures that repeating does not mend."""

LONG = 30.0
"""Seconds after which a pool that cannot be used is worth a line in the log. Arbitrary: drivers that publish anew take moments."""

DRAIN_INTERVAL = 0.2
"""Seconds between two looks at the writes that a removal waits for."""


class PolicyController:
    """Serves policies.

    Args:
        parts: the common arguments.
        queue: of policy names.
        settling: is told of rules, says what still settles.
        in_flight: devices of writes that are not answered yet.
        wake: called when a pool may be allocated from that could not before.
    """

    def __init__(
        self,
        parts: Parts,
        queue: WorkQueue,
        settling: Settling,
        in_flight: Callable[[], Iterable[DeviceId]],
        wake: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self._access = parts.access
        self.queue = queue
        self._settling = settling
        self._in_flight = in_flight
        self._wake = wake
        self._enforced = settling.enforced
        self._written: dict[str, AllocationPolicyStatus] = {}
        self._cadences: dict[str, Cadence] = {}
        self._rests_until: dict[str, float] = {}
        self._broken_since: dict[str, float] = {}
        self._news = News()

    def start(self) -> None:
        """The model is synced: look at every policy."""
        self._settling.start()
        for name in self._cluster.policies:
            self.queue.add(name)

    def changed(self, change: Change) -> None:
        """Mark policies that a change concerns."""
        subject = change.new or change.old
        if isinstance(subject, AllocationPolicy):
            self._policy_changed(change, subject)
        elif isinstance(subject, DeviceTaintRule):
            self._settling.observe()
            owner = subject.metadata.controller
            if owner is not None and owner.kind == POLICY:
                self.queue.add(owner.name)
        elif isinstance(subject, ResourceSlice):
            self._mark({subject.pool_id})
            if change.old is None or change.new is None:
                self._mark_searching()
        elif isinstance(subject, ResourceClaim):
            self._mark(_pools(change.old) ^ _pools(change.new), only_counts=True)

    async def reconcile(self, name: str) -> None:
        """One pass over a policy.

        Raises:
            ApiError: try again.
        """
        note(policy=name)
        policy = self._cluster.policies.get(name)
        if policy is None:
            self._written.pop(name, None)
            self._cadences.pop(name, None)
            self._rests_until.pop(name, None)
            self._broken_since.pop(name, None)
            self._news.forget(name)
            self._settling.refusals.pop(name, None)
            return
        if policy.metadata.deletion_timestamp is not None:
            await self._remove(policy)
            return
        policy = await self._with_finalizer(policy)
        # First: a rule that cannot be written must not keep those that stand from being used.
        await self._open_pools()
        self._look_again(policy)
        refusal = await self._try_rules(policy)
        await self._report(policy)
        if refusal is not None:
            raise refusal

    async def _with_finalizer(self, policy: AllocationPolicy) -> AllocationPolicy:
        finalizers = policy.metadata.finalizers
        if POLICY_FINALIZER in finalizers:
            return policy
        body = {"metadata": {"finalizers": [*finalizers, POLICY_FINALIZER]}}
        return await self._access.patch(POLICY, policy, body)

    async def _try_rules(self, policy: AllocationPolicy) -> ApiError | None:
        """Keep the rules; the refusal if the server refuses, which the status and the pods that wait have to name."""
        refusal: ApiError | None = None
        try:
            if self._enforced:
                await self._keep_rules(policy)
        except REFUSALS as error:
            refusal = error
        self._note_refusal(policy.metadata.name, str(refusal or ""))
        return refusal

    def _note_refusal(self, name: str, words: str) -> None:
        known = self._settling.refusals
        if known.get(name, "") != words:
            known[name] = words
            self._wake()  # pods that wait for a pool of this policy are told why

    async def _keep_rules(self, policy: AllocationPolicy) -> None:
        """Create what is missing, mend what was edited, drop what is no longer wanted."""
        wanted = wanted_rules(policy)
        for name, selector in wanted.items():
            await self._ensure(policy, name, selector)
        stale = [
            rule for name, rule in rules_of(self._cluster.taint_rules, policy).items() if name not in wanted
        ]
        await self._drop(policy, stale)

    async def _ensure(self, policy: AllocationPolicy, name: str, selector: PoolSelector) -> None:
        rule = self._cluster.taint_rules.get(name)
        if rule is None:
            await self._create(policy, selector)
        elif not is_as_wanted(rule, policy, selector):
            await self._mend(rule, policy, selector)

    async def _create(self, policy: AllocationPolicy, selector: PoolSelector) -> None:
        body = rule_body(policy, selector)
        try:
            await self._access.create(RULE, "", body)
        except ApiAlreadyExists:
            # Somebody else's, or ours and not seen yet: the next pass has it in the model and decides.
            found = from_object(DeviceTaintRule, await self._access.raw(RULE, "", body["metadata"]["name"]))
            self._cluster.assume(found)
            self.queue.add_after(policy.metadata.name, DRAIN_INTERVAL)
        else:
            logger.info("keeping other allocators off %s", _words(selector))

    async def _mend(self, rule: DeviceTaintRule, policy: AllocationPolicy, selector: PoolSelector) -> None:
        """Bring an edited rule back. One that is going, or another policy's namesake, has to be gone first."""
        if rule.metadata.deletion_timestamp is not None:
            return
        body = rule_body(policy, selector)
        metadata = {key: body["metadata"][key] for key in ("labels", "ownerReferences")}
        spec = rule_spec(selector)
        spec["deviceSelector"] = {"driver": None, "pool": None, "device": None, **spec["deviceSelector"]}
        spec["taint"] = {"value": None, **spec["taint"]}
        await self._access.patch(RULE, rule, {"metadata": metadata, "spec": spec})
        words = "somebody had changed a taint rule of this policy; it is as it was again"
        logger.warning(words, extra=fields(object=f"{RULE} {rule.metadata.name}"))

    async def _drop(self, policy: AllocationPolicy, rules: list[DeviceTaintRule]) -> bool:
        """Delete rules, unless a write about their pools is still under way: then look again soon. Whether all are gone."""
        for rule in rules:
            if self._is_busy(rule):
                self.queue.add_after(policy.metadata.name, DRAIN_INTERVAL)
            elif rule.metadata.deletion_timestamp is None:
                # In that version: a successor touches the rules, or this deletion might come after the policy has been changed back.
                await self._access.delete(RULE, rule)
                # Not by the feed alone: Kopf does not tell of what goes before its watch has begun.
                await self._access.fresh(RULE, rule)
        return not rules

    def _is_busy(self, rule: DeviceTaintRule) -> bool:
        chosen = rule.spec.device_selector
        if chosen is None:
            return False
        return any(
            device.driver == chosen.driver and chosen.pool in {None, "", device.pool}
            for device in self._in_flight()
        )

    async def _remove(self, policy: AllocationPolicy) -> None:
        """The policy is being deleted: nothing is allocated for it any more; drain, drop rules, then let it go."""
        if POLICY_FINALIZER not in policy.metadata.finalizers:
            return
        if any(self._is_ruled(device.pool_id, policy) for device in self._in_flight()):
            await self._say_removing(policy)
            self.queue.add_after(policy.metadata.name, DRAIN_INTERVAL)
            return
        if not await self._drop(policy, list(rules_of(self._cluster.taint_rules, policy).values())):
            return  # their deletion brings us back
        finalizers = [name for name in policy.metadata.finalizers if name != POLICY_FINALIZER]
        try:
            await self._access.patch(POLICY, policy, {"metadata": {"finalizers": finalizers}})
        except ApiNotFound:
            return
        logger.info("policy is gone: its pools are no longer ours")

    def _is_ruled(self, pool_id: PoolId, policy: AllocationPolicy) -> bool:
        return any(selector.matches(pool_id) for selector in policy.spec.pools)

    async def _say_removing(self, policy: AllocationPolicy) -> None:
        told = any(
            condition.type == "Ready" and condition.reason == "Removing"
            for condition in policy.status.conditions
        )
        if not told:
            listed = conditions(policy, [removal()], to_rfc3339(self._parts.clock.now()))
            await self._access.patch(POLICY, policy, {"status": {"conditions": listed}}, subresource="status")

    async def _open_pools(self) -> None:
        """Rules have settled: know all that others allocated before they took effect, then have the pools used.

        Not by the feed alone: it may lag just now, and what kube-scheduler took in the meantime would be given out again.
        """
        uids = self._settling.unconfirmed()
        if not uids:
            return
        for claim in await self._access.list(CLAIM, ""):
            self._cluster.assume(claim)
        self._settling.confirm(uids)
        self._wake()
        rules = [rule for rule in self._cluster.taint_rules.values() if rule.metadata.uid in uids]
        for rule in sorted(rules, key=lambda rule: rule.metadata.name):
            owner = rule.metadata.controller
            logger.info(
                "devices are given out from %s from now on",
                _words(rule.spec.device_selector) if rule.spec.device_selector else "all pools",
                extra=fields(policy=owner.name if owner else None),
            )

    def _look_again(self, policy: AllocationPolicy) -> None:
        """Come back when the next rule has settled; nothing else may happen that would wake us."""
        left = self._settling.next_look(policy)
        if left is not None and self._enforced:
            self.queue.add_after(policy.metadata.name, left + 0.01)

    async def _report(self, policy: AllocationPolicy) -> None:
        """Write the status if it changed, and not too often."""
        facts = self._look(policy)
        found = verdicts(facts)
        self._log_broken(policy.metadata.name, found)
        wanted = status(policy, facts, found, to_rfc3339(self._parts.clock.now()))
        decoded = from_object(AllocationPolicy, {"metadata": {}, "status": wanted}).status
        if decoded == policy.status:
            return
        name, now = policy.metadata.name, self._parts.clock.monotonic()
        cadence = self._cadences.setdefault(name, Cadence(STATUS_INTERVAL))
        if now < cadence.next_write and policy.status.conditions:
            self.queue.add_after(name, cadence.next_write - now)
            self.queue.undecided(name)  # what failed before is not tried now
            return
        cadence.wrote(now, only_counts=only_counts(policy.status, decoded))
        self._written[name] = decoded
        await self._access.patch(POLICY, policy, {"status": wanted}, subresource="status")
        self._tell(policy, found)

    def _log_broken(self, name: str, found: Iterable[Verdict]) -> None:
        """One line when pools of the policy have been of no use for long, and one when all are again."""
        broken = next(
            (verdict for verdict in found if verdict.type == "PoolsUsable" and verdict.status == "False"),
            None,
        )
        if broken is None:
            self._broken_since.pop(name, None)
            if self._news.forget(name):
                logger.info("all pools of the policy can be used again")
            return
        now = self._parts.clock.monotonic()
        if name not in self._broken_since:
            self._broken_since[name] = now
            self._parts.clock.call_later(LONG, lambda: self.queue.add(name))
        elif now - self._broken_since[name] >= LONG and self._news.is_new(name, broken.message):
            logger.warning("pools cannot be used for %.0f s: %s", LONG, broken.message)

    def _tell(self, policy: AllocationPolicy, found: Iterable[Verdict]) -> None:
        """An event for what is wrong and new; one that all is well for a policy that was warned."""
        listed = list(found)
        for verdict in problems(policy, listed):
            self._parts.recorder.record(POLICY, policy.metadata, verdict.reason, verdict.message)
        if not any(verdict.reason in PROBLEMS.get(verdict.type, ()) for verdict in listed):
            self._parts.recorder.relieve(POLICY, policy.metadata, "Mended", listed[0].message)

    def _look(self, policy: AllocationPolicy) -> Facts:
        """The facts for the status; notes when slices and claims may have them looked at again."""
        began = self._parts.clock.monotonic()
        facts = gather(policy, self._cluster, self._settling, self._parts.features)
        now = self._parts.clock.monotonic()
        self._rests_until[policy.metadata.name] = now + max(STATUS_INTERVAL, LOOK_REST * (now - began))
        return facts

    def _policy_changed(self, change: Change, policy: AllocationPolicy) -> None:
        if rules_changed(change):
            self._settling.observe()
            for side in (change.old, change.new):
                if isinstance(side, AllocationPolicy):
                    self._mark_rivals(side)
        if not self._is_own_report(change):
            self.queue.add(policy.metadata.name)

    def _is_own_report(self, change: Change) -> bool:
        """Whether nothing but the status changed, to what we have written."""
        old, new = change.old, change.new
        if not isinstance(old, AllocationPolicy) or not isinstance(new, AllocationPolicy):
            return False
        written = self._written.get(new.metadata.name)
        known = replace(new.metadata, resource_version=old.metadata.resource_version)
        return written is not None and (known, new.spec, new.status) == (old.metadata, old.spec, written)

    def _mark_searching(self) -> None:
        """Look at the policies that select what is not published: names that are nearly the same may have come or gone."""
        for name, policy in self._cluster.policies.items():
            if any(
                found.type == "PoolsFound" and found.status == "False" for found in policy.status.conditions
            ):
                self._look_soon(name)

    def _mark_rivals(self, policy: AllocationPolicy) -> None:
        """Look at the policies that may select the same pools: which of them rules may have changed."""
        drivers = {selector.driver for selector in policy.spec.pools}
        for name, other in self._cluster.policies.items():
            if any(selector.driver in drivers for selector in other.spec.pools):
                self.queue.add(name)

    def _mark(self, pools: Iterable[PoolId], *, only_counts: bool = False) -> None:
        """These pools came, went or changed, or devices of them came into use or free: only the status has to do with it."""
        for pool_id in pools:
            for policy in self._cluster.policies_matching(pool_id):
                self._look_soon(policy.metadata.name, only_counts=only_counts)

    def _look_soon(self, name: str, *, only_counts: bool = False) -> None:
        """Have a policy looked at when it next may be. A burst is one look a pause."""
        rests_until = self._rests_until.get(name, 0.0)
        if only_counts and name in self._cadences:
            rests_until = max(rests_until, self._cadences[name].next_count)
        self.queue.add_after(name, rests_until - self._parts.clock.monotonic())


def _pools(claim: object) -> frozenset[PoolId]:
    if not isinstance(claim, ResourceClaim) or claim.status.allocation is None:
        return frozenset()
    return frozenset(result.device_id.pool_id for result in claim.status.allocation.devices.results)


def _words(selector: PoolSelector | DeviceTaintSelector) -> str:
    return f"pool {selector.driver}/{selector.pool}" if selector.pool else f"all pools of {selector.driver}"
