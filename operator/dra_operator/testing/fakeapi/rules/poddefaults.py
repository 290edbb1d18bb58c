"""What a pod gets when it is created: defaults of the spec, first status.

Called through `strategies`. Defaults that only a kubelet reads are kept to those that make `kubectl describe` look right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, dicts, timestamp

if TYPE_CHECKING:
    from datetime import datetime

_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_pod(pod: Obj, now: datetime) -> None:
    """Fill in a new pod, in place."""
    spec = pod.setdefault("spec", {})
    for field, value in _SPEC.items():
        spec.setdefault(field, value)
    spec.setdefault("securityContext", {})
    for container in (*dicts(spec.get("initContainers")), *dicts(spec.get("containers"))):
        _default_container(container)
    _default_tolerations(spec)
    pod["status"] = {"phase": "Pending", "qosClass": _qos(spec)}
    show_gates(pod, now)


def _default_container(container: Obj) -> None:
    for field, value in _CONTAINER.items():
        container.setdefault(field, value)
    image = str(container.get("image", ""))
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_tolerations(spec: Obj) -> None:
    tolerations = spec.setdefault("tolerations", [])
    present = {toleration.get("key") for toleration in dicts(tolerations)}
    for key in _NODE_TROUBLE:
        if key not in present:
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )


def _qos(spec: Obj) -> str:
    resources = [container.get("resources") or {} for container in dicts(spec.get("containers"))]
    figures = [(part.get("requests") or {}, part.get("limits") or {}) for part in resources]
    if not any(requests or limits for requests, limits in figures):
        return "BestEffort"
    guaranteed = all(
        requests == limits and {"cpu", "memory"} <= limits.keys() for requests, limits in figures
    )
    return "Guaranteed" if guaranteed else "Burstable"


def show_gates(pod: Obj, now: datetime) -> None:
    """A gated pod says so in its conditions from the start (cp I-20)."""
    if not pod["spec"].get("schedulingGates"):
        return
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    pod["status"].setdefault("conditions", []).append(condition)
