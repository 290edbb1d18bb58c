"""The DeviceTaintRules that keep other allocators off the pools of a policy, as pure functions.

One rule a pool selector; the name follows from policy and selector, so that a repeated pass finds what an earlier one made.
Used by `ownership` and `settling`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.model import OWNED_TAINT

from .names import POLICY_LABEL, rule_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import AllocationPolicy, DeviceTaintRule, PoolSelector

RULE = "DeviceTaintRule"
EFFECT = "NoSchedule"
API_VERSION = "dra-operator.io/v1alpha1"
POLICY = "AllocationPolicy"


def rule_spec(selector: PoolSelector) -> dict[str, Any]:
    """The spec of the rule for one selector: all devices of the driver, or of one pool of it."""
    devices = (
        {"driver": selector.driver, "pool": selector.pool} if selector.pool else {"driver": selector.driver}
    )
    return {"deviceSelector": devices, "taint": {"key": OWNED_TAINT, "effect": EFFECT}}


def rule_body(policy: AllocationPolicy, selector: PoolSelector) -> dict[str, Any]:
    """The rule to create. The owner reference lets it go with the policy, should our finalizer ever be taken off by hand."""
    meta = policy.metadata
    return {
        "metadata": {
            "name": rule_name(meta.name, selector),
            "labels": {"app.kubernetes.io/managed-by": "dra-operator", POLICY_LABEL: meta.name},
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": POLICY,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                }
            ],
        },
        "spec": rule_spec(selector),
    }


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
