"""The claims that pods and PodGroups would get from templates, as `controllers.claims` and `controllers.groupclaims` make them (cp C-20…C-29, C-72)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.cluster import (
    Resolution,
    check_template,
    claim_body,
    claim_name,
    group_key,
    is_for_group,
    owned_claim,
    shared_with_group,
    status_entries,
)
from dra_operator.errors import FeatureUnsupported
from dra_operator.model import Pod, PodGroup, ResourceClaim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.cluster import Cluster, PodClaim
    from dra_operator.model import PodResourceClaim

    from .given import Given

SUFFIX = 5
"""Characters that the server appends to a generateName. Here they are a number: which ones it would take cannot be known."""


class Maker:
    """Supposes what is not there yet."""

    def __init__(self, given: Given, cluster: Cluster) -> None:
        self._given = given
        self._cluster = cluster
        self.failures: dict[str, str] = {}
        """Key of the pod → why a claim of it cannot be made."""

    def make(self) -> None:
        """Have all claims of groups and of pods that are wanted and not there."""
        for group in list(self._cluster.pod_groups.values()):
            if group.metadata.deletion_timestamp is None:
                self._for_group(group)
        for pod in list(self._cluster.pods.values()):
            if pod.spec.resource_claims and not pod.is_done and pod.metadata.deletion_timestamp is None:
                self._for_pod(pod)

    def _for_group(self, group: PodGroup) -> None:
        found = {}
        for entry in group.spec.resource_claims:
            if entry.resource_claim_template_name is not None and not self._is_settled(group, entry):
                claim = self._ensure(group, entry)
                if claim is not None:
                    found[entry.name] = claim.metadata.name
        self._record(group, found)

    def _is_settled(self, group: PodGroup, entry: PodResourceClaim) -> bool:
        resolution, name = claim_name(group, entry)
        claim = self._cluster.claims.get(f"{group.metadata.namespace}/{name}")
        return resolution is Resolution.NOT_NEEDED or (claim is not None and is_for_group(group, claim))

    def _for_pod(self, pod: Pod) -> None:
        key = group_key(pod)
        if key is not None and not self._cluster.has_pod_groups:
            self.failures[pod.key] = (
                f"spec.schedulingGroup.podGroupName: Pod {pod.key} is of PodGroup {key}, and no PodGroup is given: its claims may be the "
                "group's. Add the PodGroup, or leave the field out"
            )
            return
        group = self._cluster.pod_groups.get(key or "")
        found = {}
        for pod_claim in self._cluster.claims_of_pod(pod):
            claim = self._claim(pod, group, pod_claim)
            if claim is not None:
                found[pod_claim.entry.name] = claim.metadata.name
        self._record(pod, found)

    def _claim(self, pod: Pod, group: PodGroup | None, pod_claim: PodClaim) -> ResourceClaim | None:
        """The claim to record for one entry; None if nothing is to be recorded (cp C-21, C-72)."""
        entry = pod_claim.entry
        settled = pod_claim.resolution in {Resolution.FOUND, Resolution.NOT_NEEDED, Resolution.UNKNOWN}
        if settled or entry.resource_claim_template_name is None:
            return None
        if group is not None and shared_with_group(entry, group):
            return owned_claim(self._cluster.claims_owned_by(group), group, entry.name)
        return self._ensure(pod, entry)

    def _ensure(self, owner: Pod | PodGroup, entry: PodResourceClaim) -> ResourceClaim | None:
        known = owned_claim(self._cluster.claims_owned_by(owner), owner, entry.name)
        if known is not None:
            return known
        key = f"{owner.metadata.namespace}/{entry.resource_claim_template_name}"
        template = self._cluster.templates.get(key)
        if template is None:
            return None  # placement says so
        try:
            check_template(template, self._given.features)
        except FeatureUnsupported as error:
            self.failures[owner.metadata.key] = f"ResourceClaimTemplate {key}: {error}"
            return None
        version = str(self._given.raw(type(owner).__name__)[owner.metadata.key]["apiVersion"])
        return self._create(
            claim_body(owner, entry.name, self._given.raw("ResourceClaimTemplate")[key], version)
        )

    def _create(self, body: dict[str, Any]) -> ResourceClaim:
        metadata = body["metadata"]
        numbers = (f"{metadata['generateName']}{number:0{SUFFIX}}" for number in range(10**SUFFIX))
        known = self._cluster.claims
        metadata["name"] = next(name for name in numbers if f"{metadata['namespace']}/{name}" not in known)
        self._given.take({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **body})
        raw = self._given.raw("ResourceClaim")[f"{metadata['namespace']}/{metadata['name']}"]
        claim = self._given.put("ResourceClaim", raw)
        assert isinstance(claim, ResourceClaim)
        self._cluster.assume(claim)
        return claim

    def _record(self, owner: Pod | PodGroup, found: Mapping[str, str]) -> None:
        if not found:
            return
        kind = type(owner).__name__
        raw = self._given.raw(kind)[owner.metadata.key]
        status = {**raw.get("status", {}), "resourceClaimStatuses": status_entries(owner, found)}
        self._cluster.assume(self._given.put(kind, {**raw, "status": status}))
