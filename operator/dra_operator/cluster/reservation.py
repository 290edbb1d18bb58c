"""Whom a claim is reserved for: pods, and PodGroups for all their pods (cp C-12, C-70…C-72, alloc W-5…W-7).

Pure functions over values; the look-up of a pod's group is the controllers' business. Used by `model` and by the controllers. Must not
decide when a claim is reserved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidPod
from dra_operator.model import POD_GROUP_API, ResourceClaimConsumerReference, to_object

from .resolution import group_key

if TYPE_CHECKING:
    from dra_operator.model import AllocationResult, Pod, PodGroup, PodResourceClaim, ResourceClaim

PODS: Final = "pods"
POD_GROUPS: Final = "podgroups"

_UNKNOWN: Final = "none of the supported fields are set"


def pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """The pod as an entry of `reservedFor`."""
    return ResourceClaimConsumerReference(resource=PODS, name=pod.metadata.name, uid=pod.uid)


def group_consumer(group: PodGroup) -> ResourceClaimConsumerReference:
    """The group as an entry of `reservedFor`."""
    return ResourceClaimConsumerReference(
        api_group=POD_GROUP_API, resource=POD_GROUPS, name=group.metadata.name, uid=group.uid
    )


def is_group(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a consumer is a PodGroup."""
    return (consumer.api_group, consumer.resource) == (POD_GROUP_API, POD_GROUPS)


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a consumer is a pod."""
    return (consumer.api_group, consumer.resource) == ("", PODS)


def is_reserved(
    pod: Pod, claim: ResourceClaim, group: PodGroup | None = None, *, groups: bool = True
) -> bool:
    """Whether the claim names the pod, or its PodGroup, among its consumers (cp C-12).

    Args:
        pod: the pod.
        claim: the claim.
        group: its PodGroup if that is known; else one of its name will do. What is reserved for a former group of the name is about
            to be taken back.
        groups: whether PodGroups count at all (alloc W-5).
    """
    name = (group_key(pod) or "").partition("/")[2] if groups else ""
    return any(
        entry.uid == pod.uid
        or (
            bool(name)
            and is_group(entry)
            and entry.name == name
            and (group is None or entry.uid == group.uid)
        )
        for entry in claim.status.reserved_for
    )


def bind_to(
    pod: Pod, entry: PodResourceClaim, group: PodGroup | None = None
) -> ResourceClaimConsumerReference:
    """Whom to reserve the claim of an entry of a pod for: the pod's group if one of its entries is the same, else the pod (alloc W-7).

    Args:
        pod: the pod.
        entry: one of its `spec.resourceClaims`.
        group: its PodGroup; None if it has none, or where PodGroups do not count.

    Raises:
        InvalidPod: the group is not the pod's; or an entry of the pod, or one of the group before any that is the same, uses an API newer
            than ours. With upstream's words.
    """
    if not _is_known(entry):
        raise InvalidPod("spec.resourceClaims", f"Pod {pod.key} claim {entry.name}: {_UNKNOWN}")
    if group is None:
        return pod_consumer(pod)
    _check_member(pod, group)
    for shared in group.spec.resource_claims:
        if not _is_known(shared):
            raise InvalidPod("spec.schedulingGroup", f"PodGroup {group.key} claim {shared.name}: {_UNKNOWN}")
        if shared == entry:
            return group_consumer(group)
    return pod_consumer(pod)


def reserved_for(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> list[dict[str, Any]]:
    """`reservedFor` with the consumer in it, once."""
    there = [to_object(entry) for entry in claim.status.reserved_for]
    return there if claim.is_reserved_for(consumer.uid) else [*there, to_object(consumer)]


def allocation_status(
    claim: ResourceClaim, allocation: AllocationResult, consumer: ResourceClaimConsumerReference
) -> dict[str, Any]:
    """Status of step 2: allocation and reservation together, or the API server and the sweeper could see half of it (cp I-43)."""
    return {"allocation": to_object(allocation), "reservedFor": reserved_for(claim, consumer)}


def _is_known(entry: PodResourceClaim) -> bool:
    return entry.resource_claim_name is not None or entry.resource_claim_template_name is not None


def _check_member(pod: Pod, group: PodGroup) -> None:
    named = group_key(pod)
    if named is None:
        raise InvalidPod("spec.schedulingGroup", f"Pod {pod.key} does not belong to a PodGroup")
    if named != group.key:
        text = f"Pod {pod.key} belongs to PodGroup {named}, not PodGroup {group.key}"
        raise InvalidPod("spec.schedulingGroup", text)
