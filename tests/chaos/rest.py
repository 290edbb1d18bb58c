"""What must hold when all is quiet: nothing half-done, nothing left over, nobody forgotten. Pure; reads lists as the API gives them.

Nothing of the operator is imported: its gate and its name are what users see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.chaos.ledger import FINALIZER
from tests.e2e.harness.audit import claim_names, find_problems, holders

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

OPERATOR = "dra-operator"
GATE = "dra-operator.io/allocate"


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster at rest: all objects of these kinds, the storm's namespace, and the driver whose devices are the operator's."""

    pods: list[Object]
    claims: list[Object]
    slices: list[Object]
    nodes: list[Object]
    events: list[Object]
    namespace: str
    driver: str


def wrong(picture: Picture) -> list[str]:
    """Everything that is wrong, one sentence each; empty is good."""
    here = [pod for pod in picture.pods if pod["metadata"]["namespace"] == picture.namespace]
    return [
        *find_problems(picture.claims, picture.pods, picture.namespace),
        *(text for claim in picture.claims for text in _leftover(claim)),
        *(text for pod in here for text in _undecided(pod, picture)),
        *_forgotten(here, picture),
        *_unpublished(picture),
    ]


def _leftover(claim: Object) -> Iterator[str]:
    metadata = claim["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    if claim.get("status", {}).get("allocation"):
        return
    if FINALIZER in metadata.get("finalizers", []):
        yield f"claim {name} has a finalizer and no allocation"


def _undecided(pod: Object, picture: Picture) -> Iterator[str]:
    """A pod is bound, or somebody has said why it is not."""
    if pod["spec"].get("nodeName") or _is_over(pod):
        return
    name = pod["metadata"]["name"]
    ours = GATE in _gates(pod) or pod["spec"].get("schedulerName") == OPERATOR
    if not ours:
        yield f"pod {name} was released and is not bound"
    elif not (_has_event(pod, picture.events) or _has_condition(pod)):
        yield f"pod {name} waits, and nobody has said why"


def _forgotten(pods: list[Object], picture: Picture) -> Iterator[str]:
    """No pod waits for what lies idle on a node that it could go to."""
    free = free_devices(picture)
    if not free:
        return
    most = max(free.values())
    by_name = {claim["metadata"]["name"]: claim for claim in picture.claims}
    for pod in pods:
        if pod["spec"].get("nodeName") or _is_over(pod):
            continue
        wanted = [by_name.get(name) for name in claim_names(pod)]
        if not wanted or any(claim is None for claim in wanted):
            continue
        count = sum(_count(claim, picture.driver) for claim in wanted if claim)
        if 0 < count <= most:
            idle = max(free, key=lambda node: free[node])
            yield f"pod {pod['metadata']['name']} waits for {count}, and node {idle} has {free[idle]} devices that nobody holds"


def free_devices(picture: Picture) -> Counter[str]:
    """Devices of the driver that no claim holds, by nodes that take pods."""
    held = holders(picture.claims)
    able = {
        node["metadata"]["name"]
        for node in picture.nodes
        if not node["spec"].get("unschedulable") and not node["spec"].get("taints")
    }
    free: Counter[str] = Counter()
    for found in picture.slices:
        spec = found["spec"]
        if spec["driver"] != picture.driver or spec.get("nodeName") not in able:
            continue
        for device in spec.get("devices", []):
            if (spec["driver"], spec["pool"]["name"], device["name"]) not in held:
                free[spec["nodeName"]] += 1
    return free


def _count(claim: Object, driver: str) -> int:
    """Devices of the driver's class that a claim yet needs; none if it is allocated, or is on its way out."""
    if claim.get("status", {}).get("allocation") or "deletionTimestamp" in claim["metadata"]:
        return 0
    requests = [request["exactly"] for request in claim["spec"]["devices"]["requests"]]
    return sum(
        request.get("count", 1) for request in requests if request.get("deviceClassName") in {None, driver}
    )


def _unpublished(picture: Picture) -> Iterator[str]:
    """When all is quiet, all devices that were ever withdrawn for a while are there again: who holds another one got it from a ghost."""
    published = {
        (spec["driver"], spec["pool"]["name"], device["name"])
        for spec in (found["spec"] for found in picture.slices)
        for device in spec.get("devices", [])
    }
    for device, keys in holders(picture.claims).items():
        if device not in published:
            yield f"device {'/'.join(device)} is held by {', '.join(sorted(keys))} and published by nobody"


def _gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def _is_over(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in {"Succeeded", "Failed"}


def _has_event(pod: Object, events: list[Object]) -> bool:
    uid = pod["metadata"]["uid"]
    return any(
        event["involvedObject"].get("uid") == uid
        and OPERATOR in (event.get("reportingComponent"), (event.get("source") or {}).get("component"))
        for event in events
    )


def _has_condition(pod: Object) -> bool:
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and condition.get("reason") != "SchedulingGated"
        and condition.get("message")
        for condition in pod["status"].get("conditions", [])
    )
