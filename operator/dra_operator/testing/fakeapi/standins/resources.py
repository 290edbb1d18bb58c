"""Where the stand-ins find things, and the questions that several of them ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.kinds import DRA
from dra_operator.testing.fakeapi.objects import Obj, Resource, controller_of, dicts, dig, meta

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.store import Record, Store

PODS: Resource = ("", "pods")
NODES: Resource = ("", "nodes")
NAMESPACES: Resource = ("", "namespaces")
CLAIMS: Resource = (DRA, "resourceclaims")
TEMPLATES: Resource = (DRA, "resourceclaimtemplates")

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def pod_claims(pod: Obj) -> list[Obj]:
    """The entries of spec.resourceClaims."""
    return list(dicts(dig(pod, "spec", "resourceClaims")))


def done(pod: Obj) -> bool:
    """Terminal, or being deleted without ever having had a node (cp C-4 b)."""
    if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return True
    return "deletionTimestamp" in meta(pod) and not dig(pod, "spec", "nodeName")


def claim_name(pod: Obj, entry: Obj) -> tuple[str | None, bool]:
    """The claim of one entry, and whether it is known; None and True means that none is needed (cp C-10)."""
    if entry.get("resourceClaimName"):
        return str(entry["resourceClaimName"]), True
    for status in dicts(dig(pod, "status", "resourceClaimStatuses")):
        if status.get("name") == entry.get("name"):
            return status.get("resourceClaimName"), True
    return None, False


def owned_by(claim: Obj, pod: Obj) -> bool:
    """Whether `pod`, or its PodGroup, is the claim's controller (cp C-11)."""
    owner = controller_of(claim) or {}
    group = dig(pod, "spec", "schedulingGroup", "podGroupName")
    is_group = owner.get("kind") == "PodGroup" and group is not None and owner.get("name") == group
    return bool(owner) and (is_group or owner.get("uid") == meta(pod).get("uid"))


def reserved_for(claim: Obj, pod: Obj) -> bool:
    """Whether the claim is reserved for `pod`, or for its PodGroup (cp C-12)."""
    uid, group = meta(pod).get("uid"), dig(pod, "spec", "schedulingGroup", "podGroupName")
    return any(
        consumer.get("uid") == uid
        or (consumer.get("resource") == "podgroups" and group is not None and consumer.get("name") == group)
        for consumer in dicts(dig(claim, "status", "reservedFor"))
    )


def consumer_of(pod: Obj) -> Obj:
    """The reservedFor entry of `pod`."""
    return {"resource": "pods", "name": meta(pod)["name"], "uid": meta(pod)["uid"]}


def claims_of(store: Store, pod: Obj) -> list[Record] | None:
    """The claims of a pod, or None while one of them is missing, foreign or being deleted (cp S-1)."""
    found: list[Record] = []
    for entry in pod_claims(pod):
        name, known = claim_name(pod, entry)
        if not known:
            return None
        if name is None:
            continue
        claim = store.get(CLAIMS, (meta(pod)["namespace"], name))
        if claim is None or "deletionTimestamp" in meta(claim.obj):
            return None
        if entry.get("resourceClaimTemplateName") and not owned_by(claim.obj, pod):
            return None
        found.append(claim)
    return found
