"""Which claim an entry of `pod.spec.resourceClaims` means (cp C-10…C-12, alloc W-1…W-5).

Pure functions over values; `model` adds the look-up of the claim. Used by placement and by the controllers. Where the cluster has
PodGroups, a claim that the pod's group owns is the pod's as well (C-11); where not, it is foreign.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from dra_operator.model import POD_GROUP_API

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import Pod, PodGroup, PodResourceClaim, ResourceClaim


class Resolution(Enum):
    """What became of an entry."""

    FOUND = "found"
    """The claim exists and may be used by the pod."""

    NOT_NEEDED = "not needed"
    """Somebody recorded that no claim is needed: ignore the entry everywhere (cp C-43)."""

    NOT_CREATED = "not created"
    """The entry names a template and no claim is recorded yet (cp C-10)."""

    MISSING = "missing"
    """The name is known, the claim does not exist."""

    FOREIGN = "foreign"
    """A claim of the recorded name exists and is not this pod's (cp C-11)."""

    UNKNOWN = "unknown"
    """The entry uses an API newer than ours; never guess (cp C-10)."""


_TEXTS: Final = {
    Resolution.FOUND: "",
    Resolution.NOT_NEEDED: "",
    Resolution.NOT_CREATED: 'pod "{pod}": ResourceClaim not created yet',
    Resolution.MISSING: 'resourceclaim.resource.k8s.io "{name}" not found',
    Resolution.FOREIGN: "ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)",
    Resolution.UNKNOWN: 'pod "{pod}", spec.resourceClaim "{entry}": none of the supported fields are set',
}
"""Upstream's words, which users find in search engines (cp C-10, C-11, S-1)."""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of a pod and what it resolves to.

    Args:
        pod: key of the pod.
        entry: the entry in the pod's spec.
        resolution: what became of it.
        name: the claim's name where one is known.
        must_check_owner: whether the claim has to be owned by the pod (generated claims).
        claim: the claim when it exists, the foreign one too.
    """

    pod: str
    entry: PodResourceClaim
    resolution: Resolution
    name: str | None = None
    must_check_owner: bool = False
    claim: ResourceClaim | None = None

    @property
    def claim_key(self) -> str | None:
        """`namespace/name` of the claim; None when no name is known."""
        return None if self.name is None else f"{self.pod.partition('/')[0]}/{self.name}"

    @property
    def message(self) -> str:
        """Why the pod cannot go on, in upstream's words; empty when it can (cp S-1)."""
        if self.resolution is Resolution.FOUND and self.claim and self.claim.metadata.deletion_timestamp:
            return f'resourceclaim "{self.name}" is being deleted'
        text = _TEXTS[self.resolution]
        return text.format(pod=self.pod, entry=self.entry.name, name=self.name, claim=self.claim_key)


def claim_name(owner: Pod | PodGroup, entry: PodResourceClaim) -> tuple[Resolution, str | None]:
    """The name that an entry of a pod or PodGroup stands for, without looking at claims; FOUND means that a name is known (cp C-10)."""
    if entry.resource_claim_name is not None:
        return Resolution.FOUND, entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        return Resolution.UNKNOWN, None
    for status in owner.status.resource_claim_statuses:
        if status.name == entry.name:
            known = status.resource_claim_name is not None
            return (Resolution.FOUND if known else Resolution.NOT_NEEDED), status.resource_claim_name
    return Resolution.NOT_CREATED, None


def group_key(pod: Pod | None) -> str | None:
    """`namespace/name` of the PodGroup that a pod names; None if it names none."""
    group = pod.spec.scheduling_group if pod is not None else None
    if pod is None or group is None or not group.pod_group_name:
        return None
    return f"{pod.metadata.namespace}/{group.pod_group_name}"


def shared_with_group(entry: PodResourceClaim, group: PodGroup) -> bool:
    """Whether an entry of a pod means the same claim as one of its group: all three fields are equal (cp C-70)."""
    return entry in group.spec.resource_claims


def is_for_pod(pod: Pod, claim: ResourceClaim, *, groups: bool = False) -> bool:
    """Whether a generated claim was made for this very pod, or for its group (cp C-11).

    Args:
        pod: the pod.
        claim: the claim.
        groups: whether the cluster has PodGroups. A group is known by its name: pods do not tell its uid.
    """
    owner = claim.metadata.controller
    if owner is None or claim.metadata.namespace != pod.metadata.namespace:
        return False
    if owner.uid == pod.uid:
        return True
    name = (group_key(pod) or "").partition("/")[2]
    api_group, _, version = owner.api_version.partition("/")
    is_group = (owner.kind, api_group, bool(version)) == ("PodGroup", POD_GROUP_API, True)
    return groups and is_group and bool(name) and owner.name == name


def is_reserved(pod: Pod, claim: ResourceClaim, group: PodGroup | None = None) -> bool:
    """Whether the claim names the pod, or its PodGroup, among its consumers (cp C-12).

    Args:
        pod: the pod.
        claim: the claim.
        group: its PodGroup if that is known; else one of its name will do. What is reserved for a former group of the name is about
            to be taken back.
    """
    name = (group_key(pod) or "").partition("/")[2]
    return any(
        entry.uid == pod.uid
        or (
            bool(name)
            and (entry.api_group, entry.resource, entry.name) == (POD_GROUP_API, "podgroups", name)
            and (group is None or entry.uid == group.uid)
        )
        for entry in claim.status.reserved_for
    )


def resolve(
    pod: Pod, entry: PodResourceClaim, claims: Mapping[str, ResourceClaim], *, groups: bool = False
) -> PodClaim:
    """What one entry of a pod means among these claims; `groups` as of `is_for_pod`."""
    resolution, name = claim_name(pod, entry)
    if name is None:
        return PodClaim(pod.key, entry, resolution)
    must_check_owner = entry.resource_claim_name is None
    claim = claims.get(f"{pod.metadata.namespace}/{name}")
    if claim is None:
        resolution = Resolution.MISSING
    elif must_check_owner and not is_for_pod(pod, claim, groups=groups):
        resolution = Resolution.FOREIGN
    return PodClaim(pod.key, entry, resolution, name, must_check_owner, claim)


def claim_keys(pod: Pod) -> frozenset[str]:
    """Keys of all claims that a pod names, its special extended-resource claim included (cp C-4c)."""
    names = {claim_name(pod, entry)[1] for entry in pod.spec.resource_claims}
    special = pod.status.extended_resource_claim_status
    names.add(special.resource_claim_name if special else None)
    return frozenset(f"{pod.metadata.namespace}/{name}" for name in names if name)


def template_keys(pod: Pod) -> frozenset[str]:
    """Keys of all templates that a pod names (cp C-7)."""
    names = {entry.resource_claim_template_name for entry in pod.spec.resource_claims}
    return frozenset(f"{pod.metadata.namespace}/{name}" for name in names if name)
