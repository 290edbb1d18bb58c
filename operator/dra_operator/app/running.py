"""Which pods of the operator run, for `release`: nothing may be given back while one of them can still take it.

Whoever may create a pod may give it our label. A pod counts only if its ServiceAccount may allocate, which users cannot arrange.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from dra_operator.errors import ApiForbidden, ApiNotFound, ApiUnavailable
from dra_operator.kube.listing import RawMeta  # noqa: TC001 - msgspec looks it up

if TYPE_CHECKING:
    from dra_operator.kube.api import Api

logger = logging.getLogger(__name__)

OPERATOR_LABEL = "app.kubernetes.io/name=dra-operator"
"""Label of the operator's pods in manifests/base, in every release so far; the release Job's pods have another."""

PODS = "/api/v1/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ALLOCATING = {
    "group": "resource.k8s.io",
    "resource": "resourceclaims",
    "subresource": "status",
    "verb": "patch",
}
"""What no operator can do without, in all namespaces; every release so far asks for it."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    service_account_name: str = "default"


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    """As little as is needed: a pod that the model cannot read may be the operator's all the same."""

    metadata: RawMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def groups(self) -> list[str]:
        """Of its ServiceAccount."""
        everyone = ("system:serviceaccounts", "system:authenticated")
        return [*everyone, f"system:serviceaccounts:{self.metadata.namespace}"]

    @property
    def user(self) -> str:
        """Its ServiceAccount as a user."""
        return f"system:serviceaccount:{self.metadata.namespace}:{self.spec.service_account_name}"


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod] | None = None


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


async def running(api: Api) -> list[RawMeta]:
    """Pods of the operator that run, or are going to, in all namespaces.

    Raises:
        ApiError: pods cannot be listed, or rights cannot be asked for just now.
    """
    answer = await api.request("GET", PODS, query={"labelSelector": OPERATOR_LABEL})
    try:
        pods = msgspec.json.decode(answer.body, type=_Pods).items or []
    except msgspec.DecodeError as error:
        raise ApiUnavailable(f"GET {PODS}: the list cannot be read: {error}") from error
    live = [pod for pod in pods if pod.status.phase not in {"Succeeded", "Failed"}]
    return [pod.metadata for pod in live if await _can_allocate(api, pod)]


async def _can_allocate(api: Api, pod: _Pod) -> bool:
    """Whether its ServiceAccount may; true also if we may not ask: then the label has to do."""
    spec = {"user": pod.user, "groups": pod.groups, "resourceAttributes": ALLOCATING}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    try:
        answer = await api.request("POST", REVIEWS, body={**kind, "spec": spec})
    except (ApiForbidden, ApiNotFound) as error:
        logger.warning("pod %s counts as the operator's by its label alone: %s", pod.metadata.key, error)
        return True
    if allowed := msgspec.json.decode(answer.body, type=_Review).status.allowed:
        return allowed
    logger.info(
        "pod %s has the operator's label, but may not allocate: it is somebody else's", pod.metadata.key
    )
    return False
