"""Which pools are ours, by the AllocationPolicies that exist (architecture, section 2).

Fed by `model`; placement and the ownership controller ask. It must not decide whether a pool may be allocated from yet (settling,
removal): that needs a clock, and belongs to the ownership controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.model import AllocationPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import PoolId

    from .store import Change


def rules_changed(change: Change) -> bool:
    """Whether a policy came, went, is about to go, or selects otherwise: its status is our own report, and matters to nobody."""
    return _rules(change.old) != _rules(change.new)


def _rules(policy: object) -> object:
    if not isinstance(policy, AllocationPolicy):
        return None
    return policy.spec, policy.metadata.deletion_timestamp


class Ownership:
    """Policies by pool. A policy that is being deleted still owns its pools, until it is gone."""

    def __init__(self) -> None:
        self._policies: dict[str, AllocationPolicy] = {}
        self._ranked: tuple[AllocationPolicy, ...] | None = None
        self._answers: dict[PoolId, tuple[AllocationPolicy, ...]] = {}

    def policy_changed(self, old: AllocationPolicy | None, new: AllocationPolicy | None) -> None:
        """Take over one policy."""
        if old is not None:
            del self._policies[old.metadata.name]
        if new is not None:
            self._policies[new.metadata.name] = new
        self._ranked = None
        self._answers.clear()

    def matching(self, pool_id: PoolId) -> Sequence[AllocationPolicy]:
        """All policies that select the pool, the one that rules it first: not being deleted, then oldest, then by name."""
        found = self._answers.get(pool_id)
        if found is None:
            found = tuple(policy for policy in self._ranking() if _selects(policy, pool_id))
            self._answers[pool_id] = found
        return found

    def owner(self, pool_id: PoolId) -> AllocationPolicy | None:
        """The policy that rules the pool; None when the pool is not ours."""
        return next(iter(self.matching(pool_id)), None)

    def _ranking(self) -> tuple[AllocationPolicy, ...]:
        if self._ranked is None:
            self._ranked = tuple(sorted(self._policies.values(), key=_rank))
        return self._ranked


def _rank(policy: AllocationPolicy) -> tuple[bool, str, str]:
    meta = policy.metadata
    return meta.deletion_timestamp is not None, meta.creation_timestamp or "", meta.name


def _selects(policy: AllocationPolicy, pool_id: PoolId) -> bool:
    return any(selector.matches(pool_id) for selector in policy.spec.pools)
