"""The `pods/binding` subresource.

Called by `http` and by the binding stand-in. It checks what a real server checks, and no more: neither the node nor any claim is
looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.objects import Key, Obj, copied, dig, meta, timestamp

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Record


def bind(machinery: Machinery, key: Key, binding: Obj) -> Record:
    """Set the pod's node, and PodScheduled.

    Raises:
        StatusError: 404 (no such pod), 409 (bound, gated, being deleted, or a precondition failed), 500 (bad target).
    """
    kind = machinery.kinds.named("pods")
    live = machinery.get(kind, key)
    target = binding.get("target") or {}
    if target.get("kind") not in ("Node", "", None):
        text = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise failures.StatusError(500, "", text)
    if not target.get("name"):
        raise failures.StatusError(500, "", "target.name: Required value")
    pod = copied(live.obj)
    _check(key[1], live, pod, binding)
    pod["spec"]["nodeName"] = target["name"]
    for field in ("labels", "annotations"):
        if meta(binding).get(field):
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta(binding)[field]}
    _show_scheduled(pod, timestamp(machinery.clock()))
    return machinery.store.put(kind.resource, pod)


def _check(name: str, live: Record, pod: Obj, binding: Obj) -> None:
    uid, version = meta(binding).get("uid"), meta(binding).get("resourceVersion")
    about, namespace = failures.About("", "pods", name), meta(pod)["namespace"]
    if uid and uid != live.uid:
        raise failures.storage_precondition(about, namespace, "UID", uid, live.uid)
    if version and version != str(live.version):
        raise failures.storage_precondition(about, namespace, "ResourceVersion", version, str(live.version))
    pod_about = failures.About("", "pods/binding", name)
    if "deletionTimestamp" in meta(pod):
        raise failures.conflict(pod_about, f"pod {name} is being deleted, cannot be assigned to a host")
    if dig(pod, "spec", "nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise failures.conflict(pod_about, why)
    if dig(pod, "spec", "schedulingGates"):
        raise failures.conflict(pod_about, f"pod {name} has non-empty .spec.schedulingGates")


def _show_scheduled(pod: Obj, now: str) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    )
