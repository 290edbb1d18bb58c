"""Names that the operator writes, and the pure functions that make them.

Called by the controllers; no I/O. Sources: architecture section 10, cp C-22, C-26, C-27, I-42.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from dra_operator.model import FINALIZER, to_object

if TYPE_CHECKING:
    from dra_operator.model import AllocationResult, OwnerReference, PoolSelector, ResourceClaim

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

MAX_GENERATE_NAME = 57
"""Longest generateName that keeps room for the server's five random characters (cp C-27)."""

MAX_NAME = 253


def generate_name(pod_name: str, entry_name: str) -> str:
    """The generateName of a pod's claim (cp C-27): shortened in proportion, without the last hyphen then."""
    base = f"{pod_name}-{entry_name}-"
    if len(base) <= MAX_GENERATE_NAME:
        return base
    pod_part = pod_name[: len(pod_name) * MAX_GENERATE_NAME // len(base)]
    entry_part = entry_name[: len(entry_name) * MAX_GENERATE_NAME // len(base)]
    return f"{pod_part}-{entry_part}"


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
