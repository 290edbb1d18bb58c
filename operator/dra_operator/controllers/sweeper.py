"""Repairs drift where that is safe (cp I-43, I-45, I-51, I-52): what `driftwatch` found and has looked at for long enough.

A repair reads the object again, looks whether it still is so, and writes with the uid and resourceVersion that it read, so that it
cannot undo what somebody does at the same time. It frees nothing that a running pod may use, and changes nothing that is not marked
as ours; what is other controllers' work of ours is theirs to do, when they are told to look again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dra_operator.errors import ApiNotFound
from dra_operator.explain.drift import Subject, has_left_mark, is_unused, look, unpublished
from dra_operator.explain.driftkinds import CLAIM, POLICY, RULE
from dra_operator.logfields import fields, note
from dra_operator.metrics import DRIFT_REPAIRS
from dra_operator.model import FINALIZER, GATE, OWNED_TAINT

from .names import EPOCH, MARK, POLICY_LABEL, has_finalizer
from .undo import attempt_on, waiters_of, yields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from dra_operator.explain.drift import Finding
    from dra_operator.model import DeviceTaintRule, Pod, ResourceClaim

    from .commit import Committer
    from .driftwatch import DriftWatch
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Nudges:
    """Have another controller look at a key again.

    Attributes:
        pod: the allocation controller, at a pod.
        policy: the policy controller, at a policy.
        claim: whoever releases claims, at a claim; nobody does in the operator where that is kube-controller-manager's work.
    """

    pod: Callable[[str], None]
    policy: Callable[[str], None]
    claim: Callable[[str], None]


class Sweeper:
    """Does the repairs, one object at a time. Keys are subjects, as `Kind namespace/name`.

    Args:
        parts: the common arguments.
        queue: of subjects.
        committer: does the writes to claims.
        nudges: the other controllers.
    """

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer, nudges: Nudges) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self._access = parts.access
        self.queue = queue
        self._committer = committer
        self._nudges = nudges
        self._watch: DriftWatch | None = None
        self._repairs: dict[str, Callable[[Finding], Awaitable[bool]]] = {
            "AllocationUnused": self._free,
            "ConsumerGone": self._release,
            "MarkLeft": self._unmark,
            "AttemptLeft": self._resume,
            "DevicesUnpublished": self._take_back_unpublished,
            "DeviceHeldTwice": self._take_back_double,
            "GateUseless": self._look_at_pod,
            "RuleStray": self._delete_rule,
            "RulesWrong": self._look_at_policy,
            "PolicyUnguarded": self._look_at_policy,
        }

    def follow(self, watch: DriftWatch) -> None:
        """Ask this watch what has stood for long enough."""
        self._watch = watch

    def ripe(self, subject: Subject) -> None:
        """Something is to be done about an object."""
        self.queue.add(f"{subject.kind} {subject.key}")

    async def reconcile(self, key: str) -> None:
        """Repair what is wrong with an object, if it still is.

        Raises:
            ApiError: try again.
        """
        assert self._watch is not None
        subject = Subject(*key.split(" ", 1))
        note(object=key)
        for finding in look(self._cluster, self._watch.facts, subject):
            repair = self._repairs.get(finding.finding)
            if repair is not None and self._watch.is_ripe(subject, finding) and await repair(finding):
                self._parts.metrics.count(DRIFT_REPAIRS, finding.finding)

    # --- what we do ourselves; each returns whether it changed anything

    async def _free(self, finding: Finding) -> bool:
        claim = await self._fresh_claim(finding)
        if claim is None or not is_unused(self._cluster, claim):
            return False
        await self._committer.deallocate(claim)
        logger.warning("no pod has used this allocation of ours for long: its devices are free again")
        return True

    async def _unmark(self, finding: Finding) -> bool:
        claim = await self._fresh_claim(finding)
        if claim is None or not has_left_mark(self._cluster, claim):
            return False
        metadata: dict[str, Any] = {"annotations": {MARK: None, EPOCH: None}}
        if has_finalizer(claim):
            metadata["finalizers"] = [name for name in claim.metadata.finalizers if name != FINALIZER]
        await self._access.patch(CLAIM, claim, {"metadata": metadata})
        logger.info("claim is not allocated any more: it lost our mark")
        return True

    async def _take_back_unpublished(self, finding: Finding) -> bool:
        claim = await self._fresh_claim(finding)
        if claim is None or not unpublished(self._cluster, claim):
            return False
        return await self._take_back(claim, "its devices are published no more")

    async def _take_back_double(self, finding: Finding) -> bool:
        claim = await self._fresh_claim(finding)
        if claim is None or not yields(self._cluster, claim):
            return False
        return await self._take_back(claim, "another claim holds a device of it as well")

    async def _take_back(self, claim: ResourceClaim, why: str) -> bool:
        """Undo an allocation of ours as long as every pod that counts on it waits; the pods are served anew."""
        pods = waiters_of(self._cluster, claim)
        if pods is None or any(self._committer.is_bound(pod) for pod in pods):
            return False
        # A fence has its pod looked at again, which must not send it on its way.
        with self._committer.taking_back(claim):
            for pod in pods:
                await self._committer.fence(pod)  # or it is pinned, or bound, at this very moment
            for uid in [pod.uid for pod in pods] or [""]:
                await self._committer.roll_back(claim, uid)
        logger.warning("an allocation of ours was taken back before its pod was placed: %s", why)
        self._nudge(pods)
        return True

    async def _delete_rule(self, finding: Finding) -> bool:
        rule = self._cluster.taint_rules.get(finding.key)
        if rule is None or rule.spec.taint.key != OWNED_TAINT or self._is_busy(rule):
            return False
        for policy in await self._access.list(POLICY, ""):
            self._cluster.assume(policy)
        if await self._has_policy(rule):
            return False
        current = await self._access.fresh(RULE, rule)
        assert self._watch is not None
        if current is None or not look(self._cluster, self._watch.facts, Subject(RULE, finding.key)):
            return False
        await self._access.delete(RULE, current)
        await self._access.fresh(RULE, current)
        logger.warning("a taint rule of ours belonged to no policy any more, and was deleted")
        return True

    async def _has_policy(self, rule: DeviceTaintRule) -> bool:
        """Whether a policy of the name that the rule bears is there, be it one that cannot be read: its pools must stay closed to others."""
        owner = rule.metadata.controller
        names = {rule.metadata.labels.get(POLICY_LABEL, ""), owner.name if owner else ""} - {""}
        for name in sorted(names):
            try:
                await self._access.raw(POLICY, "", name)
            except ApiNotFound:
                continue
            return True
        return False

    def _is_busy(self, rule: DeviceTaintRule) -> bool:
        """Whether a write about devices of its pools is not answered yet."""
        chosen = rule.spec.device_selector
        devices = (device for held in self._committer.in_flight.values() for device in held)
        return chosen is not None and any(
            device.driver == chosen.driver and chosen.pool in {None, "", device.pool} for device in devices
        )

    # --- what is another controller's to do

    async def _resume(self, finding: Finding) -> bool:
        """Have the attempt go on. One for a pod that lost our gate by hand, and waits at another, never will: it is taken back."""
        pod = self._cluster.pods.get(finding.key)
        if pod is None:
            return False
        if GATE in pod.gate_names or pod.names_us:
            return await self._look_at_pod(finding)
        claims = attempt_on(self._cluster, pod)
        if not claims:
            return False
        fenced = await self._committer.fence(pod)
        for claim in claims:
            await self._committer.roll_back(claim, fenced.uid)
        names = ", ".join(claim.key for claim in claims)
        logger.warning(
            "took back what was allocated for a pod that waits without our gate",
            extra=fields(pod=pod.key, claims=names),
        )
        return True

    async def _look_at_pod(self, finding: Finding) -> bool:
        self._nudges.pod(finding.key)
        return True

    async def _look_at_policy(self, finding: Finding) -> bool:
        self._nudges.policy(finding.key)
        return True

    async def _release(self, finding: Finding) -> bool:
        self._nudges.claim(finding.key)
        return False

    def _nudge(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._nudges.pod(pod.key)

    async def _fresh_claim(self, finding: Finding) -> ResourceClaim | None:
        """The claim as the server has it now, if it is the one that the finding is about."""
        known = self._cluster.claims.get(finding.key)
        if known is None or known.metadata.uid != finding.uid:
            return None
        note(claim=known.key)
        return await self._access.fresh(CLAIM, known)
