"""What must hold in a cluster at rest, whoever allocated: looked up in the API objects alone.

kwok runs any bound pod, so nothing but this tells whether a pod really has its devices. For the end-to-end tests; no part of
the operator's own model is used, so that both cannot be wrong in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tests.e2e.harness.kubectl import Kubectl

Object = dict[str, Any]
Device = tuple[str, str, str]  # driver, pool, device

FINALIZER = "resource.kubernetes.io/delete-protection"
LEFT = "is reserved for pods that do not exist"
"""What is so for a moment after each pod's end: whoever releases claims hears of it a little later."""


def holders(claims: Iterable[Object]) -> dict[Device, list[str]]:
    """Which claims (namespace/name) hold each allocated device. Admin access holds nothing."""
    held: dict[Device, list[str]] = defaultdict(list)
    for claim in claims:
        for result in _allocation(claim).get("devices", {}).get("results", []):
            if not result.get("adminAccess"):
                held[result["driver"], result["pool"], result["device"]].append(_key(claim))
    return dict(held)


def problems(kubectl: Kubectl, namespace: str | None = None) -> list[str]:
    """Everything that is wrong with claims and the pods that use them, one sentence each; empty is good.

    Other pods may be on their way meanwhile, and the claims of pods that went are waited for: what is returned is wrong.

    Args:
        kubectl: Administrator.
        namespace: Look at its pods and claims only; doubles are always looked for in the whole cluster.

    Raises:
        NotInTimeError: A claim stays reserved for pods that went.
    """
    return wait_until(
        lambda: _look(kubectl, namespace),
        "the claims of pods that went released",
        accept=lambda found: not found or not all(LEFT in text for text in found),
    )


def _look(kubectl: Kubectl, namespace: str | None) -> list[str]:
    """No two lists are of one moment: pods are listed on both sides of claims, and judged by what was so all the time."""
    before = kubectl.get_all("pods", "--all-namespaces")
    claims = kubectl.get_all("resourceclaims", "--all-namespaces")
    after = kubectl.get_all("pods", "--all-namespaces")
    stayed, passing = steady(before, after)
    return find_problems(claims, stayed, namespace, passing)


def steady(before: Iterable[Object], after: Iterable[Object]) -> tuple[list[Object], set[str]]:
    """The pods that were there between two looks, as they were at the first, and the uids of those that came, went or ended."""
    first = {pod["metadata"]["uid"]: pod for pod in before}
    last = {pod["metadata"]["uid"]: pod for pod in after}
    stayed = {uid: pod for uid, pod in first.items() if uid in last and _is_over(pod) == _is_over(last[uid])}
    return list(stayed.values()), (first.keys() | last.keys()) - stayed.keys()


def find_problems(
    claims: Iterable[Object],
    pods: Iterable[Object],
    namespace: str | None = None,
    passing: Collection[str] = (),
) -> list[str]:
    """As `problems`, from lists of all claims and pods.

    Args:
        claims: All.
        pods: All that are to be judged.
        namespace: As of `problems`.
        passing: Uids of pods that may have been there when the claims were listed.
    """
    all_claims = list(claims)
    own_claims = [claim for claim in all_claims if _inside(claim, namespace)]
    own_pods = [pod for pod in pods if _inside(pod, namespace)]
    by_key = {_key(claim): claim for claim in own_claims}
    uids = {pod["metadata"]["uid"] for pod in own_pods} | set(passing)
    return [
        *_doubles(all_claims),
        *(text for pod in own_pods for text in _of_bound_pod(pod, by_key)),
        *(text for claim in own_claims for text in _of_claim(claim, uids)),
    ]


def claim_names(pod: Object) -> Iterator[str]:
    """Names of a pod's claims: as the user gave them, or as they were generated."""
    generated = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in pod.get("status", {}).get("resourceClaimStatuses") or []
    }
    for entry in pod["spec"].get("resourceClaims", []):
        if name := entry.get("resourceClaimName") or generated.get(entry["name"]):
            yield name


def _doubles(claims: list[Object]) -> Iterator[str]:
    """Several claims may have shares of a device, as long as nobody has it as a whole."""
    whole = {
        (result["driver"], result["pool"], result["device"])
        for claim in claims
        for result in _allocation(claim).get("devices", {}).get("results", [])
        if not result.get("adminAccess") and not result.get("shareID")
    }
    for device, keys in holders(claims).items():
        if len(keys) > 1 and device in whole:
            yield f"device {'/'.join(device)} is held by {', '.join(sorted(keys))}"


def _of_bound_pod(pod: Object, claims: Mapping[str, Object]) -> Iterator[str]:
    node = pod["spec"].get("nodeName")
    if not node or _is_over(pod):
        return
    names = list(claim_names(pod))
    if len(names) < len(pod["spec"].get("resourceClaims", [])):
        yield f"pod {_key(pod)} is bound but not all its claims were generated"
    for name in names:
        key = f"{pod['metadata']['namespace']}/{name}"
        if trouble := _unusable(claims.get(key), pod, node):
            yield f"pod {_key(pod)} is bound to {node} but its claim {name} {trouble}"


def _unusable(claim: Object | None, pod: Object, node: str) -> str | None:
    if claim is None:
        return "does not exist"
    allocation = _allocation(claim)
    if not allocation:
        return "is not allocated"
    if not _fits(allocation.get("nodeSelector"), node):
        return "is allocated for another node"
    if pod["metadata"]["uid"] not in _consumers(claim) and not _is_of_group(claim, pod):
        return "is not reserved for it"
    return None


def _is_of_group(claim: Object, pod: Object) -> bool:
    """Whether the claim is reserved for the PodGroup of the pod."""
    name = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    consumers = claim.get("status", {}).get("reservedFor") or []
    return any(item["resource"] == "podgroups" and item["name"] == name for item in consumers)


def _fits(selector: Object | None, node: str) -> bool:
    """Node-local selectors by name are judged; any other is taken to fit (slices of these tests have no others)."""
    terms = (selector or {}).get("nodeSelectorTerms", [])
    names = [
        field["values"]
        for term in terms
        for field in term.get("matchFields", [])
        if field["key"] == "metadata.name"
    ]
    return not names or any(node in values for values in names)


def _of_claim(claim: Object, pod_uids: set[str]) -> Iterator[str]:
    if not _allocation(claim):
        return
    if FINALIZER not in claim["metadata"].get("finalizers", []):
        yield f"claim {_key(claim)} is allocated without the finalizer {FINALIZER}"
    consumers = _consumers(claim)
    if not consumers:
        yield f"claim {_key(claim)} is allocated but reserved for nobody"
    of_pods = (
        {item["uid"] for item in claim["status"]["reservedFor"] if item["resource"] == "pods"}
        if consumers
        else set()
    )
    if stale := of_pods - pod_uids:
        yield f"claim {_key(claim)} {LEFT}: {', '.join(sorted(stale))}"


def _allocation(claim: Object) -> Object:
    found: Object = claim.get("status", {}).get("allocation") or {}
    return found


def _consumers(claim: Object) -> set[str]:
    return {consumer["uid"] for consumer in claim.get("status", {}).get("reservedFor") or []}


def _is_over(pod: Object) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _inside(found: Object, namespace: str | None) -> bool:
    return namespace is None or found["metadata"]["namespace"] == namespace


def _key(found: Object) -> str:
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}"
