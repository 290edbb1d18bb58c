"""What is made out of a ResourceClaimTemplate: the claim of one entry of a pod or PodGroup, and the entry's record (cp C-21…C-41, C-72).

Pure functions over values and raw objects. The controllers create what they say, `simulation` supposes it. Must not decide when a claim is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import FeatureUnsupported
from dra_operator.model import FINALIZER, POD_CLAIM_NAME
from dra_operator.model.marks import GENERATED, MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.features import Features
    from dra_operator.model import Pod, PodGroup, ResourceClaim, ResourceClaimTemplate

    Owner = Pod | PodGroup

MAX_GENERATE_NAME: Final = 57
"""Longest generateName that keeps room for the server's five random characters (cp C-27)."""


def generate_name(pod_name: str, entry_name: str) -> str:
    """The generateName of a pod's claim (cp C-27): shortened in proportion, without the last hyphen then."""
    base = f"{pod_name}-{entry_name}-"
    if len(base) <= MAX_GENERATE_NAME:
        return base
    pod_part = pod_name[: len(pod_name) * MAX_GENERATE_NAME // len(base)]
    entry_part = entry_name[: len(entry_name) * MAX_GENERATE_NAME // len(base)]
    return f"{pod_part}-{entry_part}"


def owner_reference(owner: Owner, api_version: str) -> dict[str, Any]:
    """The pod or group as the controller of its claims (cp C-26, C-72)."""
    kind = type(owner).__name__
    metadata = owner.metadata
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
    }


def claim_body(
    owner: Owner, entry_name: str, template: Mapping[str, Any], api_version: str = "v1"
) -> dict[str, Any]:
    """The claim to create for one entry of a pod or group (cp C-26, C-72).

    Args:
        owner: its owner.
        entry_name: name of the entry in the owner's spec.
        template: raw, so that fields unknown to our model reach the claim.
        api_version: of the owner's kind, as the server has it.
    """
    spec = template.get("spec", {})
    metadata = spec.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), POD_CLAIM_NAME: entry_name, MARK: GENERATED}
    return {
        "metadata": {
            "generateName": generate_name(owner.metadata.name, entry_name),
            "namespace": owner.metadata.namespace,
            "labels": dict(metadata.get("labels", {})),
            "annotations": annotations,
            # Upstream adds the finalizer with the allocation; here from the start, which saves that write (architecture, section 6).
            "finalizers": [FINALIZER],
            "ownerReferences": [owner_reference(owner, api_version)],
        },
        "spec": spec.get("spec", {}),
    }


def status_entries(owner: Owner, found: Mapping[str, str]) -> list[dict[str, str]]:
    """All entries of `status.resourceClaimStatuses`: those recorded already, with the new ones put in (cp C-41)."""
    names: dict[str, str | None] = {
        entry.name: entry.resource_claim_name for entry in owner.status.resource_claim_statuses
    }
    names.update(found)
    return [
        {"name": name} if claim is None else {"name": name, "resourceClaimName": claim}
        for name, claim in names.items()
    ]


def owned_claim(claims: Iterable[ResourceClaim], owner: Owner, entry_name: str) -> ResourceClaim | None:
    """The claim that exists already for that entry (cp C-22); claims of the owner without the annotation are ignored."""
    for claim in claims:
        reference = claim.metadata.controller
        is_owned = reference is not None and (reference.uid, reference.kind) == (
            owner.uid,
            type(owner).__name__,
        )
        if is_owned and claim.metadata.annotations.get(POD_CLAIM_NAME) == entry_name:
            return claim
    return None


def check_template(template: ResourceClaimTemplate, features: Features) -> None:
    """Refuse templates whose claims could never be allocated here (cp C-25).

    Raises:
        FeatureUnsupported: with upstream's words.
    """
    for request in template.spec.spec.devices.requests:
        if request.exactly and request.exactly.admin_access and not features.admin_access:
            raise FeatureUnsupported(
                "DRAAdminAccess", "admin access is requested, but the feature is disabled"
            )
        if request.first_available and not features.prioritized_list:
            text = "template includes a prioritized list of subrequests, but the feature is disabled"
            raise FeatureUnsupported("DRAPrioritizedList", text)
