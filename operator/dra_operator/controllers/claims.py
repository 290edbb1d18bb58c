"""Claims from templates, and their entry in the pod's status (cp C-10…C-44, C-50, C-60); only with --generate-claims=always.

One key a pod. Level-triggered: every pass compares the pod's entries with the claims that exist and creates what is missing,
so a crash between any two writes costs one more look (C-80, C-81). Must not allocate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dra_operator.cluster import Resolution, is_reserved
from dra_operator.errors import (
    ApiError,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnavailable,
    DraError,
    FeatureUnsupported,
    InvalidClaim,
)
from dra_operator.logfields import fields, note
from dra_operator.metrics import CLAIMS_GENERATED
from dra_operator.model import FINALIZER, POD_CLAIM_NAME, Pod, ResourceClaim, ResourceClaimTemplate

from .commit import CLAIM, POD
from .names import GENERATED, MARK, generate_name, pod_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.cluster import Change, PodClaim
    from dra_operator.features import Features

    from .commit import Committer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

TEMPLATE = "ResourceClaimTemplate"


def owner_reference(pod: Pod) -> dict[str, Any]:
    """The pod as the controller of its claims (cp C-26)."""
    return {"apiVersion": "v1", "kind": POD, "name": pod.metadata.name, "uid": pod.uid, "controller": True}


def claim_body(pod: Pod, entry_name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """The claim to create for one entry of a pod (cp C-26).

    Args:
        pod: its owner.
        entry_name: name of the entry in the pod's spec.
        template: raw, so that fields unknown to our model reach the claim.
    """
    spec = template.get("spec", {})
    metadata = spec.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), POD_CLAIM_NAME: entry_name, MARK: GENERATED}
    return {
        "metadata": {
            "generateName": generate_name(pod.metadata.name, entry_name),
            "namespace": pod.metadata.namespace,
            "labels": dict(metadata.get("labels", {})),
            "annotations": annotations,
            # Upstream adds the finalizer with the allocation; here from the start, which saves that write (architecture, section 6).
            "finalizers": [FINALIZER],
            "ownerReferences": [owner_reference(pod)],
        },
        "spec": spec.get("spec", {}),
    }


def status_entries(pod: Pod, found: Mapping[str, str]) -> list[dict[str, str]]:
    """All entries of `pod.status.resourceClaimStatuses`: those recorded already, with the new ones put in (cp C-41)."""
    names: dict[str, str | None] = {
        entry.name: entry.resource_claim_name for entry in pod.status.resource_claim_statuses
    }
    names.update(found)
    return [
        {"name": name} if claim is None else {"name": name, "resourceClaimName": claim}
        for name, claim in names.items()
    ]


def owned_claim(claims: Iterable[ResourceClaim], pod: Pod, entry_name: str) -> ResourceClaim | None:
    """The claim that exists already for that entry (cp C-22); claims of the pod without the annotation are ignored."""
    for claim in claims:
        owner = pod_owner(claim)
        is_owned = owner is not None and owner.uid == pod.uid
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


def wants_claims(pod: Pod) -> bool:
    """Whether the pod still may need claims (cp C-4b, C-5)."""
    return bool(pod.spec.resource_claims) and not pod.is_done and pod.metadata.deletion_timestamp is None


def _remedy(error: DraError, template: str) -> str:
    """What to do, where the error does not say it."""
    if isinstance(error, InvalidClaim | ApiNotFound):
        return f". Create ResourceClaimTemplate {template} in the pod's namespace: the pod goes on by itself"
    if isinstance(error, FeatureUnsupported):
        return ". Leave that out of the template, then recreate the pod"
    if isinstance(error, ApiForbidden | ApiInvalid):
        return ". Raise the quota, grant the right or correct the template that these words name: it is tried again"
    return ". It is tried again"


class ClaimGenerator:
    """Creates the claims of pods and records them."""

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._parts = parts
        self.queue = queue
        self._committer = committer
        self._templates: dict[str, tuple[str, dict[str, Any]]] = {}
        self._unsure: set[str] = set()
        """Uids of pods for which a create got no answer: the claim may exist although no feed has told (cp C-23)."""

    def start(self) -> None:
        """The model is synced: look at every pod (cp C-80)."""
        self._add_all(self._cluster.pods.values())

    def changed(self, change: Change) -> None:
        """Mark the pods that a change concerns (cp C-4, C-6, C-7)."""
        subject = change.new or change.old
        if isinstance(subject, Pod):
            if change.new is not None and wants_claims(subject):
                self.queue.add(subject.key)
        elif isinstance(subject, ResourceClaim):
            self._add_all(self._cluster.pods_of_claim(subject.key))
        elif isinstance(subject, ResourceClaimTemplate) and change.new is not None:
            self._add_all(self._cluster.pods_of_template(subject.metadata.key))

    async def reconcile(self, pod_key: str) -> None:
        """One pass over a pod (cp C-20).

        Raises:
            DraError: a claim could not be created, or the status not be written; after the event, try again.
        """
        note(pod=pod_key)
        pod = self._cluster.pods.get(pod_key)
        if pod is None or not wants_claims(pod):
            return
        found: dict[str, str] = {}
        for pod_claim in self._cluster.claims_of_pod(pod):
            name = await self._ensure(pod, pod_claim)
            if name is not None:
                found[pod_claim.entry.name] = name
        await self._record(pod, found)
        if pod.spec.node_name:
            await self._reserve(pod)

    async def _ensure(self, pod: Pod, pod_claim: PodClaim) -> str | None:
        """The name to record for one entry, None if nothing is to be recorded (cp C-21)."""
        entry = pod_claim.entry
        settled = pod_claim.resolution in {Resolution.FOUND, Resolution.NOT_NEEDED, Resolution.UNKNOWN}
        if settled or entry.resource_claim_template_name is None:
            return None
        try:
            claim = await self._existing(pod, entry.name)
            if claim is None:
                claim = await self._create(pod, entry.name, entry.resource_claim_template_name)
                if pod_claim.resolution is Resolution.FOREIGN:
                    logger.warning("%s; it got a claim of its own", pod_claim.message)
        except DraError as error:
            message = (
                f"PodResourceClaim {entry.name}: {error}{_remedy(error, entry.resource_claim_template_name)}"
            )
            self._parts.recorder.record(POD, pod.metadata, "FailedResourceClaimCreation", message)
            raise
        return claim.metadata.name

    async def _existing(self, pod: Pod, entry_name: str) -> ResourceClaim | None:
        claims: Iterable[Any] = self._cluster.claims_owned_by(pod.uid)
        if pod.uid in self._unsure:
            claims = await self._access.list(CLAIM, pod.metadata.namespace)
            self._unsure.discard(pod.uid)
        return owned_claim(claims, pod, entry_name)

    async def _create(self, pod: Pod, entry_name: str, template_name: str) -> ResourceClaim:
        template = await self._template(pod, template_name)
        try:
            created = await self._access.create(
                CLAIM, pod.metadata.namespace, claim_body(pod, entry_name, template)
            )
        except ApiError as error:
            self._parts.metrics.count(CLAIMS_GENERATED, "failure")
            if isinstance(error, ApiUnavailable):
                self._unsure.add(pod.uid)
            raise
        assert isinstance(created, ResourceClaim)
        self._parts.metrics.count(CLAIMS_GENERATED, "success")
        logger.info("claim created from its template", extra=fields(claim=created.key))
        return created

    async def _template(self, pod: Pod, name: str) -> dict[str, Any]:
        """The raw template: read once per version, as the model leaves out what it does not know (cp C-24)."""
        key = f"{pod.metadata.namespace}/{name}"
        known = self._cluster.templates.get(key)
        if known is None:
            self._templates.pop(key, None)
            raise InvalidClaim(
                "",
                f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found',
            )
        check_template(known, self._parts.features)
        cached = self._templates.get(key)
        if cached is not None and cached[0] == known.metadata.resource_version:
            return cached[1]
        try:
            raw = await self._access.raw(TEMPLATE, pod.metadata.namespace, name)
        except ApiNotFound as error:
            raise InvalidClaim("", f'resource claim template "{name}": {error}') from error
        self._templates[key] = (raw["metadata"]["resourceVersion"], raw)
        return raw

    async def _record(self, pod: Pod, found: Mapping[str, str]) -> None:
        """Write pod.status.resourceClaimStatuses, always the whole list (cp C-40, C-41)."""
        if not found:
            return
        body = {"status": {"resourceClaimStatuses": status_entries(pod, found)}}
        try:
            await self._access.apply(POD, pod, body, subresource="status")
        except ApiNotFound:
            logger.debug("pod went while its claims were being recorded")

    async def _reserve(self, pod: Pod) -> None:
        """Reserve the allocated claims of a pod that is bound already (cp C-50…C-53)."""
        for pod_claim in self._cluster.claims_of_pod(pod):
            claim = pod_claim.claim
            if (
                pod_claim.resolution is Resolution.FOUND
                and claim
                and claim.is_allocated
                and not is_reserved(pod, claim)
            ):
                await self._committer.reserve(pod, claim)

    def _add_all(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if wants_claims(pod):
                self.queue.add(pod.key)
