"""How the DeviceTaintRules that keep other allocators off the pools of a policy are made; what they say is read in `model.marks`.

One rule a pool selector; the name follows from policy and selector, so that a repeated pass finds what an earlier one made.
Pure. Used by `ownership` and `settling`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.model import OWNED_TAINT
from dra_operator.model.marks import (
    EFFECT,
    POLICY_LABEL,
    belongs_to,
    is_as_wanted,
    rule_name,
    rules_of,
    wanted_rules,
)

if TYPE_CHECKING:
    from dra_operator.model import AllocationPolicy, PoolSelector

__all__ = [
    "API_VERSION",
    "EFFECT",
    "POLICY",
    "RULE",
    "belongs_to",
    "is_as_wanted",
    "rule_body",
    "rule_spec",
    "rules_of",
    "wanted_rules",
]

RULE = "DeviceTaintRule"
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
