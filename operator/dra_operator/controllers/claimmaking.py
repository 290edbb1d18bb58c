"""One claim for one entry of a pod or a PodGroup: found among those that exist, or created from its template (cp C-21…C-29).

Called by `claims` and `groupclaims`, which know when, and record the name. It looks before it creates, at what no feed may have told
yet, too, so that a crash between any two writes costs one more look (C-80, C-81). Must not allocate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dra_operator.cluster import check_template, claim_body, owned_claim
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
from dra_operator.logfields import fields
from dra_operator.metrics import CLAIMS_GENERATED, UPSTREAM_CREATES
from dra_operator.model import ResourceClaim

from .commit import CLAIM, POD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import Pod, PodGroup, PodResourceClaim

    from .parts import Parts

    Owner = Pod | PodGroup

logger = logging.getLogger(__name__)

TEMPLATE = "ResourceClaimTemplate"
FAILED = "FailedResourceClaimCreation"


def remedy(error: DraError, template: str, owner: str) -> str:
    """What to do, where the error does not say it."""
    if isinstance(error, InvalidClaim | ApiNotFound):
        return f". Create ResourceClaimTemplate {template} in the {owner}'s namespace: the {owner} goes on by itself"
    if isinstance(error, FeatureUnsupported):
        return f". Leave that out of the template, then recreate the {owner}"
    if isinstance(error, ApiForbidden | ApiInvalid):
        return ". Raise the quota, grant the right or correct the template that these words name: it is tried again"
    return ". It is tried again"


class ClaimMaker:
    """Finds or creates the claims of pods and groups."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._parts = parts
        self._templates: dict[str, tuple[str, dict[str, Any]]] = {}
        self._unsure: set[str] = set()
        """Uids of owners for which a create got no answer: the claim may exist although no feed has told (cp C-23)."""

    async def ensure(self, owner: Owner, entry: PodResourceClaim) -> ResourceClaim:
        """The claim for an entry that names a template.

        Raises:
            DraError: it could not be created; the owner has the event (cp C-60).
        """
        template = entry.resource_claim_template_name or ""
        try:
            claim = await self._existing(owner, entry.name)
            return claim if claim is not None else await self._create(owner, entry.name, template)
        except DraError as error:
            kind = type(owner).__name__
            message = f"{kind}ResourceClaim {entry.name}: {error}{remedy(error, template, 'pod' if kind == POD else 'group')}"
            self._parts.recorder.record(kind, owner.metadata, FAILED, message)
            raise

    def forget_owner(self, owner: Owner) -> None:
        """The pod or group is gone."""
        self._unsure.discard(owner.uid)

    def forget_template(self, key: str) -> None:
        """The template of that key is gone; they may be as many as there are pods, and as large as the server stores."""
        self._templates.pop(key, None)

    async def _existing(self, owner: Owner, entry_name: str) -> ResourceClaim | None:
        claims: Iterable[Any] = self._cluster.claims_owned_by(owner)
        if owner.uid in self._unsure:
            claims = await self._access.list(CLAIM, owner.metadata.namespace)
            self._unsure.discard(owner.uid)
        return owned_claim(claims, owner, entry_name)

    async def _create(self, owner: Owner, entry_name: str, template_name: str) -> ResourceClaim:
        template = await self._template(owner.metadata.namespace, template_name)
        api_version = self._access.api_version(type(owner).__name__)
        try:
            created = await self._access.create(
                CLAIM, owner.metadata.namespace, claim_body(owner, entry_name, template, api_version)
            )
        except ApiError as error:
            self._count("failure", owner.metadata.namespace, template_name)
            if isinstance(error, ApiUnavailable):
                self._unsure.add(owner.uid)
            raise
        assert isinstance(created, ResourceClaim)
        self._count("success", owner.metadata.namespace, template_name)
        logger.info("claim created from its template", extra=fields(claim=created.key))
        return created

    def _count(self, status: str, namespace: str, template_name: str) -> None:
        """Under our name, and under upstream's, as kube-controller-manager does not count where we generate."""
        template = self._cluster.templates.get(f"{namespace}/{template_name}")
        admin_access = template is not None and template.spec.spec.wants_admin_access
        self._parts.metrics.count(CLAIMS_GENERATED, status)
        self._parts.metrics.count(UPSTREAM_CREATES, status, str(admin_access).lower())

    async def _template(self, namespace: str, name: str) -> dict[str, Any]:
        """The raw template: read once per version, as the model leaves out what it does not know (cp C-24)."""
        key = f"{namespace}/{name}"
        known = self._cluster.templates.get(key)
        if known is None:
            raise InvalidClaim(
                "",
                f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found',
            )
        check_template(known, self._parts.features)
        cached = self._templates.get(key)
        if cached is not None and cached[0] == known.metadata.resource_version:
            return cached[1]
        try:
            raw = await self._access.raw(TEMPLATE, namespace, name)
        except ApiNotFound as error:
            raise InvalidClaim("", f'resource claim template "{name}": {error}') from error
        if key in self._cluster.templates:
            self._templates[key] = (raw["metadata"]["resourceVersion"], raw)
        return raw
