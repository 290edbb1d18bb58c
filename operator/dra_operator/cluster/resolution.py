"""Which claim an entry of `pod.spec.resourceClaims` means (cp C-10, C-11, alloc W-1…W-4).

Pure functions over values; `model` adds the look-up of the claim. Used by placement and by the controllers. Where the cluster has
PodGroups, a claim that the pod's group owns is the pod's as well (C-11); where not, it is foreign. Whom a claim is reserved for is
`reservation`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from dra_operator.model import POD_GROUP_API, PodGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dra_operator.model import Pod, PodResourceClaim, ResourceClaim


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
    Resolution.NOT_CREATED: "{owner}: ResourceClaim not created yet",
    Resolution.MISSING: 'resourceclaim.resource.k8s.io "{name}" not found',
    Resolution.UNKNOWN: "{owner}, spec.resourceClaim {entry}: none of the supported fields are set",
}
"""Upstream's words, which users find in search engines (cp C-10, S-1). Those of FOREIGN come from `ownership_problem`."""


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
        ownership: why it is foreign, in upstream's words.
    """

    pod: str
    entry: PodResourceClaim
    resolution: Resolution
    name: str | None = None
    must_check_owner: bool = False
    claim: ResourceClaim | None = None
    ownership: str = ""

    @property
    def claim_key(self) -> str | None:
        """`namespace/name` of the claim; None when no name is known."""
        return None if self.name is None else f"{self.pod.partition('/')[0]}/{self.name}"

    @property
    def message(self) -> str:
        """Why the pod cannot go on, in upstream's words; empty when it can (cp S-1)."""
        if self.resolution is Resolution.FOUND and self.claim and self.claim.metadata.deletion_timestamp:
            return f'resourceclaim "{self.name}" is being deleted'
        if self.resolution is Resolution.FOREIGN:
            return self.ownership
        return _TEXTS[self.resolution].format(
            owner=f'pod "{self.pod}"', entry=f'"{self.entry.name}"', name=self.name
        )


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


def name_problem(owner: Pod | PodGroup, entry: PodResourceClaim) -> str:
    """Why no name of a claim can be told for an entry of a pod or PodGroup, in upstream's words; empty when it can, or none is needed (alloc W-1, W-2)."""
    text = _TEXTS[claim_name(owner, entry)[0]]
    if isinstance(owner, PodGroup):
        return text.format(owner=f"PodGroup {owner.key}", entry=entry.name)
    return text.format(owner=f'pod "{owner.key}"', entry=f'"{entry.name}"')


def is_generated(entry: PodResourceClaim) -> bool:
    """Whether the claim of an entry is made for its pod or PodGroup, which then must own it (alloc W-1)."""
    return entry.resource_claim_name is None


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


def is_for_group(group: PodGroup, claim: ResourceClaim) -> bool:
    """Whether a generated claim was made for this very PodGroup (alloc W-4)."""
    owner = claim.metadata.controller
    return (
        owner is not None and owner.uid == group.uid and claim.metadata.namespace == group.metadata.namespace
    )


def ownership_problem(owner: Pod | PodGroup, claim: ResourceClaim, *, groups: bool = False) -> str:
    """Why a claim is not the one that was made for a pod or PodGroup, in upstream's words; empty when it is (alloc W-3, W-4).

    Args:
        owner: the pod or PodGroup.
        claim: the claim.
        groups: as of `is_for_pod`.
    """
    kind = type(owner).__name__
    if claim.metadata.namespace != owner.metadata.namespace:
        return f"ResourceClaim {claim.key} is not in the same namespace as {kind} {owner.key}"
    text = f"ResourceClaim {claim.key} was not created for {kind} {owner.key}"
    if isinstance(owner, PodGroup):
        return "" if is_for_group(owner, claim) else f"{text} (PodGroup is not owner)"
    if is_for_pod(owner, claim, groups=groups):
        return ""
    name = (group_key(owner) or "").partition("/")[2] if groups else ""
    return f"{text} (neither Pod nor PodGroup {name} is the owner)" if name else f"{text} (Pod is not owner)"


def resolve(
    pod: Pod, entry: PodResourceClaim, claims: Mapping[str, ResourceClaim], *, groups: bool = False
) -> PodClaim:
    """What one entry of a pod means among these claims; `groups` as of `is_for_pod`."""
    resolution, name = claim_name(pod, entry)
    if name is None:
        return PodClaim(pod.key, entry, resolution)
    must_check_owner = is_generated(entry)
    claim = claims.get(f"{pod.metadata.namespace}/{name}")
    ownership = ""
    if claim is None:
        resolution = Resolution.MISSING
    elif must_check_owner and not is_for_pod(pod, claim, groups=groups):
        resolution, ownership = Resolution.FOREIGN, ownership_problem(pod, claim, groups=groups)
    return PodClaim(pod.key, entry, resolution, name, must_check_owner, claim, ownership)


def pod_claim_names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Names of all claims that a pod names or got, in the order of its entries, its special extended-resource claim last (cp C-4c).

    Each comes with whether the pod, or its PodGroup, has to own the claim. Entries without a claim, so far or for good, are left out.
    """
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)[1]
        if name is not None:
            yield name, is_generated(entry)
    special = pod.status.extended_resource_claim_status
    if special is not None and special.resource_claim_name:
        yield special.resource_claim_name, True


def claim_keys(pod: Pod) -> frozenset[str]:
    """Keys of all claims that a pod names, its special extended-resource claim included (cp C-4c)."""
    return frozenset(f"{pod.metadata.namespace}/{name}" for name, _ in pod_claim_names(pod) if name)


def template_keys(pod: Pod) -> frozenset[str]:
    """Keys of all templates that a pod names (cp C-7)."""
    names = {entry.resource_claim_template_name for entry in pod.spec.resource_claims}
    return frozenset(f"{pod.metadata.namespace}/{name}" for name in names if name)
