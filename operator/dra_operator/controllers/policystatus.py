"""The status of an AllocationPolicy, as a pure function of what is known.

Conditions: `Enforced` (rules keep other allocators off), `Settling` (some pool is not allocated from yet), `Ready` (the sum).
Called by `ownership`; compares nothing and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import AllocationPolicy, Condition


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
    """

    pools: int
    devices: int
    allocated: int
    enforced: bool
    standing: int
    wanted: int
    settling: int
    settle_seconds: float


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
    if facts.standing < facts.wanted:
        return Verdict(
            "Enforced", "False", "RulesMissing", f"{facts.standing} of {facts.wanted} DeviceTaintRules exist"
        )
    return Verdict(
        "Enforced", "True", "RulesInPlace", "DeviceTaintRules keep other allocators off these pools"
    )


def _settling(facts: Facts) -> Verdict:
    waiting = facts.settling + facts.wanted - facts.standing if facts.enforced else 0
    if waiting:
        text = f"{waiting} of {facts.wanted} pool selectors are not used until their DeviceTaintRule is {facts.settle_seconds:g} s old"
        return Verdict("Settling", "True", "RulesAreYoung", text)
    return Verdict("Settling", "False", "Settled", "all pools are allocated from")


def _ready(facts: Facts, enforced: Verdict, settling: Verdict) -> Verdict:
    if settling.status == "True":
        return Verdict("Ready", "False", "Settling", settling.message)
    if not facts.pools:
        text = "no published pool matches: check driver and pool against kubectl get resourceslices"
        return Verdict("Ready", "False", "NoPools", text)
    if not facts.enforced:
        return Verdict("Ready", "True", "NotEnforced", enforced.message)
    return Verdict(
        "Ready", "True", "Allocating", f"allocating from {facts.pools} pools with {facts.devices} devices"
    )


def removal() -> Verdict:
    """`Ready` of a policy that is being deleted."""
    return Verdict(
        "Ready", "False", "Removing", "waiting for writes that are under way, then the DeviceTaintRules go"
    )


def verdicts(facts: Facts) -> tuple[Verdict, ...]:
    """The three conditions."""
    enforced, settling = _enforced(facts), _settling(facts)
    return (_ready(facts, enforced, settling), enforced, settling)


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


def status(policy: AllocationPolicy, facts: Facts, now: str) -> dict[str, Any]:
    """The whole status."""
    return {
        "observedGeneration": policy.metadata.generation,
        "pools": facts.pools,
        "devices": facts.devices,
        "allocatedDevices": facts.allocated,
        "conditions": conditions(policy, verdicts(facts), now),
    }
