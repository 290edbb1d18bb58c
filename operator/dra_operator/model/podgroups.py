"""PodGroups, as far as claims are made for them and shared by their pods (`scheduling.k8s.io`, cp C-70…C-75).

The fields that are read are the same in v1beta1, v1alpha3 and v1alpha2. Scheduling of groups as a whole is nobody's business here.
"""

from __future__ import annotations

from .meta import ObjectMeta, Value
from .pods import PodResourceClaim, PodResourceClaimStatus

POD_GROUP_API = "scheduling.k8s.io"
"""The API group of PodGroups; a reference to one may name any version of it (cp C-11)."""


class PodGroupSpec(Value, frozen=True):
    """What its pods may share; entries are like those of a pod (cp C-75)."""

    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupStatus(Value, frozen=True):
    """Which claim each entry got."""

    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(Value, frozen=True):
    """A group of pods that name it in `spec.schedulingGroup.podGroupName`."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key

    @property
    def uid(self) -> str:
        """Its uid, which tells it from a later group of the same name."""
        return self.metadata.uid
