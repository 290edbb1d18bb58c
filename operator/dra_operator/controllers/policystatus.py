"""The status of an AllocationPolicy, as a pure function of what is known.

Conditions: `Enforced` (rules keep other allocators off), `Settling` (some pool is not allocated from yet), `PoolsFound` (what it selects is
published), `PoolsUsable` (and published well), `Overlapping` (another policy selects the same), `Ready` (the sum). Called by `ownership` with the facts of `policyfacts`; compares nothing and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dra_operator.allocator import Why
from dra_operator.model import to_object
from dra_operator.words import listed

from .policyselectors import overlap_text, unknown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dra_operator.allocator import Rejection
    from dra_operator.model import AllocationPolicy, AllocationPolicyStatus, Condition, OwnedPool, PoolId

    from .policyselectors import Overlap, Unknown

NAMED = 3
"""Pools that a message names; the others are counted."""

LISTED = 32
"""Pools that the status lists; the others are counted. Arbitrary: what a person reads, and a small object whatever the cluster's size."""

PROBLEMS = {
    "Enforced": ("TaintRulesNotServed", "RulesRefused"),
    "PoolsFound": ("NoPools", "PoolsUnknown"),
    "PoolsUsable": ("PoolIncomplete", "PoolInvalid", "CountsDiffer"),
    "Overlapping": ("PoolsShared",),
}
"""Reasons of conditions that are worth a Warning event on the policy: somebody has to do something."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the status is made of.

    Attributes:
        pools: published pools that the policy rules.
        devices: devices in them.
        allocated: devices of these that a claim holds, whoever allocated it.
        enforced: whether DeviceTaintRules are served.
        standing: rules that exist as wanted.
        wanted: rules that should exist.
        settling: pool selectors that still settle.
        settle_seconds: the settle time, for the message.
        refusal: why the API server does not let us write the rules, in its words; empty if it does.
        elsewhere: pools that the policy selects and an older one rules, by the name of that policy.
        broken: pools that nothing can be had from, and why.
        disputed: pools that are used although their slices differ in how many they are, and the counts.
        listed: the first of the pools.
        unknown: selectors that match no published pool.
        overlaps: selectors that match what another policy selects.
    """

    pools: int
    devices: int
    allocated: int
    enforced: bool
    standing: int
    wanted: int
    settling: int
    settle_seconds: float
    refusal: str = ""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    broken: Mapping[PoolId, Rejection] = field(default_factory=dict)
    disputed: Mapping[PoolId, Sequence[int]] = field(default_factory=dict)
    listed: Sequence[OwnedPool] = ()
    unknown: Sequence[Unknown] = ()
    overlaps: Sequence[Overlap] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition without its times."""

    type: str
    status: str
    reason: str
    message: str


def _enforced(facts: Facts) -> Verdict:
    if not facts.enforced:
        text = (
            "DeviceTaintRules (resource.k8s.io/v1) are not served, so nothing keeps kube-scheduler off these pools: "
            "let only gated pods use them, or enable the API (Kubernetes 1.37 serves it)"
        )
        return Verdict("Enforced", "False", "TaintRulesNotServed", text)
    exist = f"{facts.standing} of {facts.wanted} DeviceTaintRules exist"
    if facts.refusal:
        text = f"{exist}: the API server refuses to write them: {facts.refusal}"
        return Verdict("Enforced", "False", "RulesRefused", text)
    if facts.standing < facts.wanted:
        return Verdict("Enforced", "False", "RulesMissing", exist)
    text = "DeviceTaintRules keep other allocators off these pools"
    if not facts.pools:
        text = "DeviceTaintRules are in place; there is no pool of this policy that they could keep other allocators off"
    return Verdict("Enforced", "True", "RulesInPlace", text)


def _settling(facts: Facts) -> Verdict:
    missing = facts.wanted - facts.standing if facts.enforced else 0
    waiting = facts.settling if facts.refusal else facts.settling + missing
    if waiting:
        text = f"{waiting} of {facts.wanted} pool selectors are not used until their DeviceTaintRule is {facts.settle_seconds:g} s old"
        return Verdict("Settling", "True", "RulesAreYoung", text)
    if facts.refusal:
        return Verdict("Settling", "False", "RulesRefused", "nothing to wait for: see Enforced")
    return Verdict("Settling", "False", "Settled", "all pools are allocated from")


def _ready(facts: Facts, enforced: Verdict, settling: Verdict) -> Verdict:
    if facts.refusal:
        return Verdict("Ready", "False", "RulesRefused", enforced.message)
    if not facts.pools and facts.elsewhere:  # before the wait: no wait mends it
        text = f"{_elsewhere(facts)}, which is older: one policy rules a pool. Delete one of the two"
        return Verdict("Ready", "False", "OwnedByOtherPolicy", text)
    if not facts.pools:
        return Verdict("Ready", "False", "NoPools", unknown_text(facts.unknown))
    if settling.status == "True":
        return Verdict("Ready", "False", "Settling", settling.message)
    usable = facts.pools - len(facts.broken)
    if not usable:
        broken = _usable(facts)
        return Verdict("Ready", "False", broken.reason, broken.message)
    if not facts.enforced:
        return Verdict("Ready", "True", "NotEnforced", enforced.message)
    more = f"; {_elsewhere(facts)}" if facts.elsewhere else ""
    pools = f"{usable} of {_count(facts.pools, 'pool')}" if facts.broken else _count(facts.pools, "pool")
    text = f"allocating from {pools} with {_count(facts.devices, 'device')}{more}"
    return Verdict("Ready", "True", "Allocating", text)


def _usable(facts: Facts) -> Verdict:
    if not facts.broken and facts.disputed:
        return _disputed(facts.disputed)
    if not facts.broken:
        return Verdict("PoolsUsable", "True", "Complete", "all pools are published completely")
    bad = sorted(facts.broken.items(), key=lambda found: (found[1].why is Why.POOL_INCOMPLETE, found[0]))
    reason = "PoolInvalid" if bad[0][1].why is Why.POOL_INVALID else "PoolIncomplete"
    named = listed([f"pool {pool_id} ({problem.detail})" for pool_id, problem in bad], NAMED)
    text = (
        f"nothing is allocated from {named}: the driver has to publish its ResourceSlices anew, or is still at it; "
        "pods go on by themselves then"
    )
    return Verdict("PoolsUsable", "False", reason, text)


def _disputed(found: Mapping[PoolId, Sequence[int]]) -> Verdict:
    """As kube-scheduler, we take the count of one slice and do not compare (alloc P-8)."""
    counts = {pool_id: " and ".join(map(str, numbers)) for pool_id, numbers in sorted(found.items())}
    named = listed([f"pool {pool_id} ({words})" for pool_id, words in counts.items()], NAMED)
    text = (
        f"slices of one generation differ in spec.pool.resourceSliceCount: {named}. The pool is used as long as the slice that is looked at "
        "first is right: the driver has to publish one count in all slices of a generation"
    )
    return Verdict("PoolsUsable", "True", "CountsDiffer", text)


def _elsewhere(facts: Facts) -> str:
    owners = sorted(facts.elsewhere.items())
    return "owned already: " + ", ".join(
        f"{_count(pools, 'pool')} that match{'' if pools > 1 else 'es'} by policy {name}"
        for name, pools in owners
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def removal() -> Verdict:
    """`Ready` of a policy that is being deleted."""
    return Verdict(
        "Ready", "False", "Removing", "waiting for writes that are under way, then the DeviceTaintRules go"
    )


def verdicts(facts: Facts) -> tuple[Verdict, ...]:
    """The conditions."""
    enforced, settling = _enforced(facts), _settling(facts)
    usable = (_usable(facts),) if facts.pools else ()
    return (
        _ready(facts, enforced, settling),
        enforced,
        settling,
        _found(facts),
        *usable,
        _overlapping(facts),
    )


def problems(known: AllocationPolicy, found: Iterable[Verdict]) -> list[Verdict]:
    """What somebody has to do something about and the status does not say yet."""
    said = {(condition.type, condition.reason, condition.message) for condition in known.status.conditions}
    return [
        verdict
        for verdict in found
        if verdict.reason in PROBLEMS.get(verdict.type, ())
        and (verdict.type, verdict.reason, verdict.message) not in said
    ]


def _found(facts: Facts) -> Verdict:
    if not facts.unknown:
        return Verdict("PoolsFound", "True", "AllFound", "every entry of spec.pools matches a published pool")
    nothing = len(facts.unknown) >= facts.wanted
    return Verdict(
        "PoolsFound", "False", "NoPools" if nothing else "PoolsUnknown", unknown_text(facts.unknown)
    )


def _overlapping(facts: Facts) -> Verdict:
    if not facts.overlaps:
        return Verdict(
            "Overlapping", "False", "NoneShared", "no other policy selects a published pool of this one"
        )
    return Verdict("Overlapping", "True", "PoolsShared", overlap_text(facts.overlaps))


def conditions(policy: AllocationPolicy, wanted: Iterable[Verdict], now: str) -> list[dict[str, Any]]:
    """Conditions for the status; the transition time moves only with the status."""
    known = {condition.type: condition for condition in policy.status.conditions}
    return [
        {
            "type": verdict.type,
            "status": verdict.status,
            "reason": verdict.reason,
            "message": verdict.message,
            "observedGeneration": policy.metadata.generation,
            "lastTransitionTime": _since(known.get(verdict.type), verdict, now),
        }
        for verdict in wanted
    ]


def _since(known: Condition | None, verdict: Verdict, now: str) -> str:
    same = known is not None and known.status == verdict.status and known.last_transition_time
    return known.last_transition_time or now if known is not None and same else now


def only_counts(known: AllocationPolicyStatus, wanted: AllocationPolicyStatus) -> bool:
    """Whether two statuses differ in nothing but how many devices are in use."""
    pools = tuple(replace(pool, allocated_devices=0) for pool in known.owned_pools)
    as_wanted = tuple(replace(pool, allocated_devices=0) for pool in wanted.owned_pools)
    quiet = replace(known, allocated_devices=wanted.allocated_devices, owned_pools=wanted.owned_pools)
    return pools == as_wanted and quiet == wanted


def status(policy: AllocationPolicy, facts: Facts, found: Iterable[Verdict], now: str) -> dict[str, Any]:
    """The whole status."""
    return {
        "observedGeneration": policy.metadata.generation,
        "pools": facts.pools,
        "devices": facts.devices,
        "allocatedDevices": facts.allocated,
        "ownedPools": [to_object(pool) for pool in facts.listed],
        "unlistedPools": facts.pools - len(facts.listed),
        "conditions": conditions(policy, found, now),
    }
