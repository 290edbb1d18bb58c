"""The marks that the operator leaves on claims, pods, taint rules and policies, and what they say of an object. Pure.

Here, and not with the controllers that write them, because the findings of `explain.drift` and the user's commands read them as
well. Sources: architecture sections 2, 6 and 10, cp C-22, I-42.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from .claims import FINALIZER
from .decode import to_object
from .policy import OWNED_TAINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .claims import AllocationResult, ResourceClaim
    from .devices import DeviceTaintRule
    from .meta import OwnerReference
    from .policy import AllocationPolicy, PoolSelector

MARK = "dra-operator.io/allocated"
"""Annotation: the allocation of this claim is ours, and which one it is (a digest of the results)."""

GENERATED = "generated"
"""Value of the mark on claims that we generate: they are born marked, which saves a write (architecture, section 6)."""

EPOCH = "dra-operator.io/epoch"
"""Annotation: changes nothing but the version of an object, so that writes that were computed from an earlier one fail."""

POLICY_LABEL = "dra-operator.io/policy"
"""Label of the DeviceTaintRules that we keep: the policy's name (the CRD keeps names short enough for a label value)."""

POLICY_FINALIZER = "dra-operator.io/policy"
"""Finalizer on our own kind only: a policy goes after its rules."""

RULE_PREFIX = "dra-operator-"
"""How the names of our DeviceTaintRules begin (`rule_name`), in every release so far."""

EFFECT = "NoSchedule"
"""Effect of the taint on the devices of our pools."""

MAX_NAME = 253


def digest(allocation: AllocationResult) -> str:
    """What the mark says of an allocation: its devices per request and its nodes, whatever the time of writing."""
    timeless = msgspec.structs.replace(allocation, allocation_timestamp=None)
    return hashlib.sha256(msgspec.json.encode(to_object(timeless), order="sorted")).hexdigest()[:16]


def is_marked(claim: ResourceClaim) -> bool:
    """Whether the claim bears our mark."""
    return MARK in claim.metadata.annotations


def holds_our_allocation(claim: ResourceClaim) -> bool:
    """Whether the claim is allocated and the mark says by us: an allocation that somebody else put there since has another digest."""
    allocation = claim.status.allocation
    if allocation is None or not is_marked(claim):
        return False
    return claim.metadata.annotations[MARK] in {GENERATED, digest(allocation)}


def pod_owner(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that the claim was generated for, by its controller reference (cp C-22, C-65); None for any other owner, or none."""
    owner = claim.metadata.controller
    return owner if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def has_finalizer(claim: ResourceClaim) -> bool:
    """Whether Kubernetes' finalizer of allocated claims is there."""
    return FINALIZER in claim.metadata.finalizers


def rule_name(policy_name: str, selector: PoolSelector) -> str:
    """The name of the DeviceTaintRule for one pool selector of a policy: the same each time, another for another selector."""
    text = f"{policy_name}\n{selector.driver}\n{selector.pool or ''}"
    tail = "-" + hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"dra-operator-{policy_name}"[: MAX_NAME - len(tail)].rstrip("-.") + tail


def is_ours(rule: DeviceTaintRule) -> bool:
    """Whether the operator made a rule: it bears our label, or, should somebody have taken that off, our name and our taint."""
    if POLICY_LABEL in rule.metadata.labels:
        return True
    return rule.metadata.name.startswith(RULE_PREFIX) and rule.spec.taint.key == OWNED_TAINT


def belongs_to(rule: DeviceTaintRule, policy: AllocationPolicy) -> bool:
    """Whether we made the rule for that very policy."""
    owner = rule.metadata.controller
    return owner is not None and owner.uid == policy.metadata.uid


def is_as_wanted(rule: DeviceTaintRule, policy: AllocationPolicy, selector: PoolSelector) -> bool:
    """Whether a rule keeps others off the selector's pools, and is not about to go."""
    if rule.metadata.deletion_timestamp is not None or not belongs_to(rule, policy):
        return False
    chosen, taint = rule.spec.device_selector, rule.spec.taint
    if chosen is None or chosen.device or (taint.key, taint.effect) != (OWNED_TAINT, EFFECT):
        return False
    return (chosen.driver, chosen.pool or "") == (selector.driver, selector.pool or "")


def rules_of(rules: Mapping[str, DeviceTaintRule], policy: AllocationPolicy) -> dict[str, DeviceTaintRule]:
    """The rules that exist for a policy, by name."""
    return {name: rule for name, rule in rules.items() if belongs_to(rule, policy)}


def wanted_rules(policy: AllocationPolicy) -> dict[str, PoolSelector]:
    """The rules that should exist for a policy, by name."""
    return {rule_name(policy.metadata.name, selector): selector for selector in policy.spec.pools}
