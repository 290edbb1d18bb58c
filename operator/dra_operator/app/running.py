"""Which pods of the operator run. For `release`: nothing may be given back while one of them can still take it. For `leading` and `operator`: two
allocators must not serve one pool, and not all of them take part in the election.

Whoever may create a pod may give it our label. A pod counts only if its ServiceAccount may allocate, which users cannot arrange.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import msgspec

from dra_operator.errors import ApiError, ApiForbidden, ApiNotFound, ApiUnavailable
from dra_operator.kube.listing import RawMeta

if TYPE_CHECKING:
    from dra_operator.kube.api import Api

logger = logging.getLogger(__name__)

OPERATOR_LABEL = "app.kubernetes.io/name=dra-operator"
"""Label of the operator's pods in manifests/base, in every release so far; the release Job's pods have another."""

ELECTS_LABEL = "dra-operator.io/elects"
"""Label of pods that write only while they hold the Lease: those of the Deployment in manifests/base from 0.3.0 on."""

NAMESPACE = "dra-operator"
ACCOUNT = "dra-operator"
"""Namespace and ServiceAccount of the Deployment in manifests/base."""

PODS = "/api/v1/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ALLOCATING = {
    "group": "resource.k8s.io",
    "resource": "resourceclaims",
    "subresource": "status",
    "verb": "patch",
}
"""What no operator can do without, in all namespaces; every release so far asks for it."""


class _Meta(RawMeta, frozen=True, rename="camel"):
    deletion_timestamp: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    service_account_name: str = "default"


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    """As little as is needed: a pod that the model cannot read may be the operator's all the same."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_at_work(self) -> bool:
        """Whether it runs with the Deployment's ServiceAccount, and is to go on."""
        is_ours = self.spec.service_account_name == ACCOUNT
        return is_ours and self.status.phase == "Running" and not self.metadata.deletion_timestamp

    @property
    def works_unasked(self) -> bool:
        """Whether it allocates although it holds no Lease. One that is to end still writes until it has ended."""
        is_ours = self.spec.service_account_name == ACCOUNT
        return is_ours and self.status.phase == "Running" and ELECTS_LABEL not in self.metadata.labels

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
    pods = await _labelled(api, PODS)
    live = [pod for pod in pods if pod.status.phase not in {"Succeeded", "Failed"}]
    return [pod.metadata for pod in live if await _can_allocate(api, pod)]


async def warn_of_others(api: Api) -> None:
    """Say loudly that another operator runs, if a pod of the Deployment does that we are not in. Asks with no rights but those of the feeds.

    That it ends already (its successor starts) is no news. Who runs outside of the cluster is not seen.
    """
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    try:
        pods = await _labelled(api, path)
    except ApiError as error:
        logger.debug("whether another operator runs is not known: %s", error)
        return
    others = [
        pod.metadata.key for pod in pods if pod.is_at_work and pod.metadata.name != socket.gethostname()
    ]
    if others:
        logger.warning(
            "another operator runs: pod %s. Both will allocate from the same pools, and the API server accepts one device in two claims: stop "
            "one of them, this one or kubectl --namespace=%s scale deployment dra-operator --replicas=0",
            ", ".join(others),
            NAMESPACE,
        )


async def without_election(api: Api, namespace: str) -> str:
    """A sentence about the pods of the Deployment that allocate without asking for the Lease; empty if there are none.

    Raises:
        ApiError: pods cannot be listed.
    """
    pods = await _labelled(api, f"/api/v1/namespaces/{namespace}/pods")
    others = [pod.metadata.key for pod in pods if pod.works_unasked]
    if not others:
        return ""
    return (
        f"pod {', '.join(others)} works without leader election, as releases before 0.3.0 do, and both would give one device to two claims. "
        f"It ends by itself while the Deployment is being updated; if its node is lost for good: kubectl --namespace={namespace} delete pod "
        f"{' '.join(key.partition('/')[2] for key in others)} --force"
    )


async def _labelled(api: Api, path: str) -> list[_Pod]:
    answer = await api.request("GET", path, query={"labelSelector": OPERATOR_LABEL})
    try:
        return msgspec.json.decode(answer.body, type=_Pods).items or []
    except msgspec.DecodeError as error:
        raise ApiUnavailable(f"GET {path}: the list cannot be read: {error}") from error


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
