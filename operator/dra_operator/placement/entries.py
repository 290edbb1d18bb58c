"""What to tell of what a pod names and cannot go on with, entries of `spec.resourceClaims` above all: path, upstream's words, next step.

Called by `Intake`. Where upstream has words for the same state (cp C-10, C-11, S-1), those are used: users find them in search engines. It
must not decide whether the pod goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cluster import Resolution
from dra_operator.words import listed

from .outcomes import Refuse, Wait

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from dra_operator.cluster import PodClaim
    from dra_operator.model import Pod

CLAIM_MISSING: Final = "ClaimMissing"
"""The reason of pods whose generated claim is not known here: not yet, or no more."""

NAMED: Final = 3
"""Names that a message lists."""

LAG: Final = 5.0
"""Seconds for which what a pod names may be unknown without a word. Arbitrary: feeds are apart by less than one, and people apply a
pod together with what it uses."""

SLOW: Final = 60.0
"""Seconds that whoever generates claims may take without a word. Arbitrary: a burst of thousands of pods takes minutes, one pod
less than a second."""

POD_GROUP: Final = "PodGroup"


def hindrance(pod: Pod, index: int, entry: PodClaim, templates: Container[str]) -> Wait | Refuse | None:
    """What stands in the way of the pod at one of its entries; None if nothing does.

    Args:
        pod: the pod.
        index: of the entry in `spec.resourceClaims`.
        entry: what it resolves to.
        templates: keys of the templates that exist.
    """
    path = f"spec.resourceClaims[{index}]"
    if entry.resolution is Resolution.NOT_CREATED:
        return _not_created(pod, path, entry, templates)
    if not entry.message:
        return None
    if entry.resolution is Resolution.UNKNOWN:
        text = f"{path}: {entry.message}: it is of an API that dra-operator does not know"
        return Wait("ClaimNotReady", f"{text}. Name a claim or a template in it")
    path = _claim_path(pod, path, entry)
    if entry.resolution is Resolution.MISSING:
        return _missing(path, entry)
    if entry.resolution is Resolution.FOREIGN:
        return _foreign(path, entry)
    return _going(path, entry)


def node_unknown(pod: Pod) -> Wait:
    """The node that a pod was created for is not there. Quiet at first: the feeds of pods and nodes overtake each other."""
    text = (
        f"spec.nodeName: Node {pod.spec.node_name}, to which this pod is bound, does not exist, so no devices can be chosen for it: create "
        "the node, and the pod goes on by itself, or recreate the pod with the name of another node, or without"
    )
    return Wait("NodeUnknown", text, quiet=True, told_after=LAG)


def group_unknown(pod: Pod, key: str) -> Wait:
    """The pod's PodGroup is not there: whether its claims are shared cannot be told (cp C-20). Quiet at first, as `node_unknown`."""
    text = (
        f"spec.schedulingGroup.podGroupName: pod {pod.key}: PodGroup {key} does not exist: create it, and the pod goes on by itself, or "
        "recreate the pod without the group"
    )
    return Wait("ClaimNotReady", text, quiet=True, told_after=LAG)


def unknown_requests(pod: Pod, entries: Iterable[PodClaim]) -> str:
    """The containers' uses of requests that their claims do not have; empty if there are none.

    Neither API server nor scheduler compares them (kube-scheduler places such a pod, too): the kubelet does, when it starts the container.
    """
    known = {
        entry.entry.name: [request.name for request in entry.claim.spec.devices.requests]
        for entry in entries
        if entry.claim is not None
    }
    found = [
        f"spec.{kind}[{index}].resources.claims[{number}].request: {use.request} is no request of the pod's claim {use.name}, which has "
        f"{listed(known[use.name], NAMED)}"
        for kind, containers in (
            ("initContainers", pod.spec.init_containers),
            ("containers", pod.spec.containers),
        )
        for index, container in enumerate(containers)
        for number, use in enumerate(container.resources.claims)
        if use.request and use.request not in known.get(use.name, (use.request,))
    ]
    if not found:
        return ""
    return f"{listed(found, NAMED, '; ')}: the kubelet cannot start such a container. Correct the name and recreate the pod"


def _claim_path(pod: Pod, path: str, entry: PodClaim) -> str:
    """Where the name of the claim stands: in the spec, or in the status for generated claims."""
    if not entry.must_check_owner:
        return f"{path}.resourceClaimName"
    names = [status.name for status in pod.status.resource_claim_statuses]
    return f"status.resourceClaimStatuses[{names.index(entry.entry.name)}].resourceClaimName"


def _not_created(pod: Pod, path: str, entry: PodClaim, templates: Container[str]) -> Wait:
    """Quiet at first: whoever generates the claim is at work on it, and reports failures himself (cp C-60)."""
    key = f"{pod.metadata.namespace}/{entry.entry.resource_claim_template_name}"
    path = f"{path}.resourceClaimTemplateName"
    if key not in templates:
        text = f"{path}: ResourceClaimTemplate {key} does not exist: create it in the pod's own namespace, and the pod goes on by itself"
        return Wait("TemplateMissing", text, quiet=True, told_after=LAG)
    text = (
        f"{path}: the claim from ResourceClaimTemplate {key} has not been created for more than {SLOW:g} s: see events "
        "FailedResourceClaimCreation of this pod and the ResourceQuotas of its namespace, or whether kube-controller-manager "
        "and its resourceclaim-controller run"
    )
    return Wait("ClaimNotCreated", text, quiet=True, told_after=SLOW)


def _missing(path: str, entry: PodClaim) -> Wait:
    """Quiet at first, as feeds of two kinds overtake each other."""
    text = f"{path}: {entry.message}"
    if entry.must_check_owner:
        text += ". It was generated for this pod and seems to be deleted: recreate the pod"
        return Wait(CLAIM_MISSING, text, quiet=True, told_after=LAG)
    text += f": create ResourceClaim {entry.claim_key}, and the pod goes on by itself"
    return Wait("ClaimNotReady", text, quiet=True, told_after=LAG)


def _going(path: str, entry: PodClaim) -> Wait:
    """One that was generated for the pod must not be made by hand: its owner and name are the generator's to set (cp C-11, C-82)."""
    step = (
        "It was generated for this pod: when it is gone, kube-controller-manager generates another; if none comes, recreate the pod. If"
        if entry.must_check_owner
        else "Wait until it is gone and create it anew; if"
    )
    text = (
        f"{path}: {entry.message}: no pod can use it any more. {step} it stays, see its metadata.finalizers and the pods in its "
        f"status.reservedFor (kubectl get resourceclaim {entry.name} -o yaml)"
    )
    return Wait("ClaimNotReady", text)


def _foreign(path: str, entry: PodClaim) -> Wait | Refuse:
    owner = entry.claim.metadata.controller if entry.claim is not None else None
    if owner is not None and owner.kind == POD_GROUP:
        text = (
            f"{path}: ResourceClaim {entry.claim_key} is of PodGroup {owner.name}, and the pod is none of its pods "
            "(spec.schedulingGroup.podGroupName), or the API server does not serve PodGroups, so that nobody can tell "
            "(DRAWorkloadResourceClaims): give the pod a template of its own, or recreate it in the group"
        )
        return Refuse("FeatureUnsupported", text)
    text = f"{path}: {entry.message}: recreate the pod, so that it gets a claim of its own"
    return Wait("ClaimNotReady", text)
