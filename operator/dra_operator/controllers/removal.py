"""What has to be written to an object so that nothing of the operator's is left on it: the next write for the object as it is.

Pure functions, one a kind and step; `remover` calls them again with what the server answered until they have no more to say, so
that a conflict, a crash and a second run are all the same. The order of the steps is `remover`'s (decision record 0009).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dra_operator.cluster import claim_keys
from dra_operator.model import FINALIZER, GATE

from .access import MERGE, STRATEGIC
from .names import EPOCH, MARK, POLICY_FINALIZER, holds_our_allocation, is_marked, pod_owner
from .pinning import release_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dra_operator.model import AllocationPolicy, Pod, ResourceClaim


class Deed(StrEnum):
    """What can be done to an object, as the summary counts it."""

    TAKEN_BACK = "unused allocations taken back"
    UNFINISHED = "claims marked and not allocated that lost mark and finalizer"
    RULE = "DeviceTaintRules deleted"
    POLICY = "AllocationPolicies that lost our finalizer"
    RELEASED = "pods released from the gate"
    FORGOTTEN = "claims and pods that lost our annotations"


@dataclass(frozen=True, slots=True)
class Edit:
    """One patch of one object; uid and resourceVersion are added by whoever sends it.

    Attributes:
        deed: what it does.
        body: of the patch.
        subresource: `status`, or empty.
        content_type: of the patch.
    """

    deed: Deed
    body: Mapping[str, Any]
    subresource: str = ""
    content_type: str = MERGE


def unfinished(claim: ResourceClaim, in_use: Collection[str]) -> Edit | None:
    """Ends what an attempt left half done, where kube-scheduler and kube-controller-manager would leave it so.

    An allocation with a consumer is left as it is, also if the consumer still waits at the gate: kube-scheduler honours it, and takes
    it back itself where the pod cannot use it (cp S-31). One without any is given up by nobody else (cp C-64).

    Args:
        claim: as it is.
        in_use: keys of the claims that live pods name or own.
    """
    if not is_marked(claim) or claim.status.reserved_for:
        return None
    if not claim.is_allocated:
        # The write also makes an allocation fail that a dead operator has sent and that is still on its way.
        finalizers = [name for name in claim.metadata.finalizers if name != FINALIZER]
        gone = {MARK: None, EPOCH: None}
        return Edit(Deed.UNFINISHED, {"metadata": {"finalizers": finalizers, "annotations": gone}})
    if holds_our_allocation(claim) and claim.key not in in_use:
        return Edit(Deed.TAKEN_BACK, {"status": {"allocation": None, "reservedFor": None}}, "status")
    return None


def forgotten(claim: ResourceClaim) -> Edit | None:
    """Takes our annotations off a claim, and leaves all else; a mark that came late, without an allocation, as `unfinished` does."""
    if not claim.is_allocated and (edit := unfinished(claim, ())) is not None:
        return edit
    gone = dict.fromkeys(name for name in (MARK, EPOCH) if name in claim.metadata.annotations)
    return Edit(Deed.FORGOTTEN, {"metadata": {"annotations": gone}}) if gone else None


def released(pod: Pod) -> Edit | None:
    """Takes our gate off a pod, by its name, and our annotation; other gates stay."""
    body: dict[str, Any] = {}
    if EPOCH in pod.metadata.annotations:
        body["metadata"] = {"annotations": {EPOCH: None}}
    if GATE in pod.gate_names:
        body["spec"] = release_spec()
    if not body:
        return None
    return Edit(Deed.RELEASED if "spec" in body else Deed.FORGOTTEN, body, content_type=STRATEGIC)


def let_go(policy: AllocationPolicy) -> Edit | None:
    """Takes our finalizer off a policy."""
    finalizers = policy.metadata.finalizers
    if POLICY_FINALIZER not in finalizers:
        return None
    kept = [name for name in finalizers if name != POLICY_FINALIZER]
    return Edit(Deed.POLICY, {"metadata": {"finalizers": kept}})


def may_be_ours(raw: bytes) -> bool:
    """Whether an object that cannot be read may bear something of the operator's, or be a pod that uses a claim of ours.

    Gate, mark, epoch, finalizer, label, taint and the names of rules all have one word in common.

    Args:
        raw: the object as the API server sent it.
    """
    if b"dra-operator" in raw:
        return True
    try:
        return bool(json.loads(raw)["spec"].get("resourceClaims"))
    except (ValueError, TypeError, LookupError, AttributeError):
        return True


def claims_in_use(pods: Collection[Pod], claims: Collection[ResourceClaim]) -> set[str]:
    """Keys of the claims that a live pod names, or that were made for one and not recorded in its status yet."""
    live = {pod.uid: pod for pod in pods if not pod.is_done}
    named = {key for pod in live.values() for key in claim_keys(pod)}
    owners = ((claim.key, pod_owner(claim)) for claim in claims)
    return named | {key for key, owner in owners if owner is not None and owner.uid in live}
