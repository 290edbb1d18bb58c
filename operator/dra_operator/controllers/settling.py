"""When a pool may be allocated from: its policy lives, its DeviceTaintRule is there as we want it, has settled, and is confirmed.

kube-scheduler learns of a rule late: without a wait, devices went to two claims while it was busy (architecture, section 2). And
we may learn late of what it allocated until then: so the wait ends with a live look at all claims, after which a rule is
confirmed. Pure but for the clock it is given. The ownership controller tells it what happens to rules; placement asks `allocatable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import from_rfc3339
from .names import rule_name
from .rules import is_as_wanted

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import AllocationPolicy, DeviceTaintRule, PoolId, PoolSelector

    from .clock import Clock


class Settling:
    """Ages of rules.

    Two clocks have a say. Monotonic time since we first saw the rule as wanted is always safe. A rule that was there, never
    edited since its creation, when this process first saw the cluster is taken at its creationTimestamp instead: otherwise
    every restart would stop allocation for the settle time. A rule that appears or is mended later never is, so a wrong wall
    clock can only matter within one settle time of a restart.

    Args:
        cluster: the model.
        clock: both clocks.
        seconds: the settle time.
        enforced: whether DeviceTaintRules are served at all; without them there is nothing to wait for.
        everything_is_ours: mode `replace`: no other allocator runs.

    Attributes:
        seconds, enforced: as given.
        refusals: policy name → why the API server does not let us write its rules. Kept by the ownership controller.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, seconds: float, *, enforced: bool, everything_is_ours: bool
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self.seconds = seconds
        self.enforced = enforced
        self.refusals: dict[str, str] = {}
        self._everything = everything_is_ours
        self._seen: dict[str, float] = {}
        self._inherited: dict[str, str] = {}
        self._confirmed: set[str] = set()
        self._settled: set[PoolId] = set()

    def start(self) -> None:
        """The model is synced: the rules that are there now were there before us.

        Those that have settled need no confirmation: the claims have just been listed.
        """
        for policy in self._cluster.policies.values():
            for selector in policy.spec.pools:
                rule = self.rule_for(policy, selector)
                if rule is not None and rule.metadata.generation <= 1:
                    self._inherited[rule.metadata.uid] = rule.metadata.creation_timestamp or ""
        self.observe()
        self._confirmed = self._ripe()

    def observe(self) -> None:
        """Rules or policies changed: start the clocks of rules that have become as wanted, drop those of all others."""
        self._settled.clear()
        now = self._clock.monotonic()
        wanted = {rule.metadata.uid for _, _, rule in self._standing_rules()}
        self._confirmed &= wanted
        self._seen = {uid: self._seen.get(uid, now) for uid in wanted}
        self._inherited = {uid: moment for uid, moment in self._inherited.items() if uid in wanted}

    def rule_for(self, policy: AllocationPolicy, selector: PoolSelector) -> DeviceTaintRule | None:
        """The rule of a selector, if it exists and says what we want."""
        rule = self._cluster.taint_rules.get(rule_name(policy.metadata.name, selector))
        return rule if rule is not None and is_as_wanted(rule, policy, selector) else None

    def remaining(self, policy: AllocationPolicy, selector: PoolSelector) -> float | None:
        """Seconds until the rule of a selector has settled, 0 if it has; None while there is no such rule."""
        if not self.enforced:
            return 0.0
        rule = self.rule_for(policy, selector)
        if rule is None:
            return None
        uid = rule.metadata.uid
        waited = self._clock.monotonic() - self._seen.get(uid, self._clock.monotonic())
        if self._inherited.get(uid):
            age = (self._clock.now() - from_rfc3339(self._inherited[uid])).total_seconds()
            waited = max(waited, age)
        return max(0.0, self.seconds - waited)

    def next_look(self, policy: AllocationPolicy) -> float | None:
        """Seconds until a rule of the policy can be confirmed; None when none waits for that.

        0 for one that has settled since `unconfirmed` was asked: a look at all claims takes a while.
        """
        left = [
            self.remaining(policy, selector)
            for selector in policy.spec.pools
            if (rule := self.rule_for(policy, selector)) and rule.metadata.uid not in self._confirmed
        ]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def unconfirmed(self) -> frozenset[str]:
        """Uids of the rules that have settled and wait for a live look at the claims; `confirm` them afterwards."""
        return frozenset(self._ripe() - self._confirmed) if self.enforced else frozenset()

    def confirm(self, uids: frozenset[str]) -> None:
        """All claims have been listed since these rules had settled; those that changed meanwhile have to settle again."""
        self._confirmed |= uids & self._ripe()

    def allocatable(self, pool_id: PoolId) -> bool:
        """Whether devices of a pool of ours may be given out now."""
        if self._everything or pool_id in self._settled:
            return True
        policies = self._cluster.policies_matching(pool_id)
        settled = any(
            self._is_usable(policy, selector)
            for policy in policies
            if policy.metadata.deletion_timestamp is None
            for selector in policy.spec.pools
            if selector.matches(pool_id)
        )
        if settled:
            self._settled.add(pool_id)  # until a policy or rule changes
        return settled

    def hindrance(self, pool_id: PoolId) -> str:
        """Why waiting does not help with a pool that may not be allocated from; empty while it settles."""
        owner = self._cluster.owned(pool_id)
        words = self.refusals.get(owner.metadata.name) if owner else ""
        if owner is None or not words:
            return ""
        selectors = [selector for selector in owner.spec.pools if selector.matches(pool_id)]
        if any(self.rule_for(owner, selector) for selector in selectors):
            return ""
        name = owner.metadata.name
        return (
            f"AllocationPolicy {name} cannot have its DeviceTaintRule: {words}. Grant the right, or mend the admission policy or webhook "
            f"that these words name (see kubectl describe allocationpolicy {name})"
        )

    def _is_usable(self, policy: AllocationPolicy, selector: PoolSelector) -> bool:
        rule = self.rule_for(policy, selector)
        return not self.enforced or (rule is not None and rule.metadata.uid in self._confirmed)

    def _ripe(self) -> set[str]:
        """Uids of the rules that have settled."""
        return {
            rule.metadata.uid
            for policy, selector, rule in self._standing_rules()
            if self.remaining(policy, selector) == 0.0
        }

    def _standing_rules(self) -> list[tuple[AllocationPolicy, PoolSelector, DeviceTaintRule]]:
        return [
            (policy, selector, rule)
            for policy in self._cluster.policies.values()
            if policy.metadata.deletion_timestamp is None
            for selector in policy.spec.pools
            if (rule := self.rule_for(policy, selector)) is not None
        ]
