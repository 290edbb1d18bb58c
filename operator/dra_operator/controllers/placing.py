"""The last write for a pod: one that pins it to a node and releases it, or one that binds it there (cp I-22…I-26, real-control-plane 6f).

A gated pod is pinned, and kube-scheduler binds it; a pod that names us as its scheduler is bound. Either write carries the pod's uid and
resourceVersion, so that one of two that were sent for the same version fails. Used by `commit` alone; it knows no claims and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.errors import ApiConflict, ApiUnavailable, InvalidObject
from dra_operator.model import to_object

from .access import MERGE, STRATEGIC
from .names import EPOCH
from .pinning import placement_spec, release_spec

if TYPE_CHECKING:
    from dra_operator.model import NodeAllocatableResourceClaimStatus, Pod

    from .access import Access

POD = "Pod"

UNANSWERED = (ApiUnavailable, InvalidObject)
"""No answer, or one that cannot be read: the write may have happened."""


class Placing:
    """Sends pods to their nodes."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._unanswered: dict[str, Pod] = {}
        self._sent: set[str] = set()
        self._bound: set[str] = set()

    async def send(
        self, pod: Pod, node: str, taken: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    ) -> None:
        """Pin and release a gated pod, bind one that has no gates.

        Args:
            pod: the pod.
            node: where it goes.
            taken: what the devices of its claims take of the node: the kubelet of a pod that we bind is told (KEP 5517). For a gated pod
                kube-scheduler does that.

        Raises:
            ApiConflict: the pod changed, or is bound; the model knows it now.
            ApiUnavailable: an answer is missing; call `settle` before anything else is decided for the pod.
        """
        self._sent.add(pod.uid)
        last = pod
        try:
            if pod.gate_names:
                await self.patch(pod, {"spec": placement_spec(pod, node)})
            else:
                last = await self._tell_kubelet(pod, taken)
                await self._bind(last, node)
        except UNANSWERED:
            self._unanswered[pod.key] = last
            raise
        except BaseException:
            self._sent.discard(pod.uid)
            raise
        self._sent.discard(pod.uid)

    async def release(self, pod: Pod) -> Pod:
        """Take our gate off a pod and change nothing else."""
        return await self.patch(pod, {"spec": release_spec()})

    async def fence(self, pod: Pod) -> Pod:
        """Touch a pod that still waits, so that a pin or a binding of it which is under way fails from now on.

        Raises:
            ApiConflict: the pod changed; the model knows it now.
        """
        touch = {"metadata": {"annotations": {EPOCH: pod.metadata.resource_version}}}
        return await self.patch(pod, touch, content_type=MERGE)

    async def settle(self, pod_key: str) -> None:
        """Read a pod again whose last write got no answer; one that waits yet is touched, so that the write cannot come late.

        Raises:
            ApiError: still unknown.
        """
        pod = self._unanswered.get(pod_key)
        if pod is None:
            return
        current = await self._access.fresh(POD, pod)
        if current is not None and current.metadata.resource_version == pod.metadata.resource_version:
            await self.fence(current)
        self._unanswered.pop(pod_key, None)
        self._sent.discard(pod.uid)

    def is_sending(self, pod: Pod) -> bool:
        """Whether the pod may be on its way although the model has it waiting: the write is under way, or got no answer."""
        return pod.uid in self._sent

    def is_bound(self, pod: Pod) -> bool:
        """Whether the pod is bound, by itself or by an answer that the feed has not caught up with: a binding tells no new version."""
        return bool(pod.spec.node_name) or pod.uid in self._bound

    def forget(self, pod_uid: str) -> None:
        """The pod is gone or done."""
        self._bound.discard(pod_uid)
        self._sent.discard(pod_uid)

    async def patch(
        self, pod: Pod, body: dict[str, Any], content_type: str = STRATEGIC, subresource: str = ""
    ) -> Pod:
        """Patch a pod in the version that it is.

        Raises:
            ApiConflict: it changed, perhaps in what a plan was made from; the model knows it now.
        """
        try:
            return await self._access.patch(
                POD, pod, body, subresource=subresource, content_type=content_type
            )
        except ApiConflict:
            await self._access.fresh(POD, pod)
            raise

    async def _tell_kubelet(self, pod: Pod, taken: tuple[NodeAllocatableResourceClaimStatus, ...]) -> Pod:
        """What its devices take, before it is bound, in place of what an attempt that failed may have left; the pod in its new version."""
        if pod.status.node_allocatable_resource_claim_statuses == taken:
            return pod
        # An empty list clears it; the API server takes a missing one for the word of a client that does not know the field.
        body = {"status": {"nodeAllocatableResourceClaimStatuses": [to_object(entry) for entry in taken]}}
        return await self.patch(pod, body, MERGE, subresource="status")

    async def _bind(self, pod: Pod, node: str) -> None:
        try:
            await self._access.bind(pod, node)
        except ApiConflict:
            await self._access.fresh(POD, pod)
            raise
        self._bound.add(pod.uid)
