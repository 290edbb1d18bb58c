"""The status of a pod as a kubelet reports it, from what its processes do. Used by `podrunner`; it starts and writes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.harness.process import Process

Object = dict[str, Any]

MESSAGE_LENGTH = 2048
"""Bytes of log that become the termination message, a kubelet's own limit."""


class Running(Protocol):
    """What there is to report of."""

    @property
    def processes(self) -> Mapping[str, Process]:
        """By the container's name."""
        ...

    @property
    def restarts(self) -> Mapping[str, int]:
        """By the container's name."""
        ...

    @property
    def trouble(self) -> str:
        """Why the pod cannot be run."""
        ...

    def is_ready(self, spec: Object) -> bool:
        """Whether a container is ready."""
        ...


def report(pod: Object, running: Running) -> Object:
    """The body of a strategic merge patch for the status: equal as long as nothing changes, but for the times in it."""
    specs = pod["spec"]["containers"]
    containers = [_container(pod, spec, running) for spec in specs]
    phase = _phase(pod, running)
    ready = phase == "Running" and all(container["ready"] for container in containers)
    conditions = {"Initialized": True, "ContainersReady": ready, "Ready": ready}
    return {
        "phase": phase,
        "startTime": pod["status"].get("startTime") or _now(),
        "conditions": [_condition(pod, kind, on) for kind, on in conditions.items()],
        "containerStatuses": [{"$patch": "replace"}, *containers],
    }


def _phase(pod: Object, running: Running) -> str:
    if running.trouble:
        return "Pending"
    endings = [process.exit_status for process in running.processes.values()]
    policy = pod["spec"]["restartPolicy"]
    if policy == "Always" or None in endings:
        return "Running"
    if all(status == 0 for status in endings):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _container(pod: Object, spec: Object, running: Running) -> Object:
    ready = running.is_ready(spec)
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": running.restarts.get(spec["name"], 0),
        "state": _state(pod, spec, running),
    }


def _state(pod: Object, spec: Object, running: Running) -> Object:
    known = _known_state(pod, spec["name"])
    if running.trouble:
        return {"waiting": {"reason": "CreateContainerConfigError", "message": running.trouble}}
    process = running.processes[spec["name"]]
    status = process.exit_status
    if status is None:
        return {"running": known.get("running") or {"startedAt": _now()}}
    if "terminated" in known:
        return {"terminated": known["terminated"]}
    ended = {"exitCode": status, "reason": "Completed" if status == 0 else "Error", "finishedAt": _now()}
    if status != 0 and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        ended["message"] = process.log_tail()[-MESSAGE_LENGTH:]
    return {"terminated": ended}


def _known_state(pod: Object, name: str) -> Object:
    statuses = pod["status"].get("containerStatuses", [])
    return next((found.get("state", {}) for found in statuses if found["name"] == name), {})


def _condition(pod: Object, kind: str, on: bool) -> Object:  # noqa: FBT001 - a condition's status
    wanted = {"type": kind, "status": str(on)}
    for known in pod["status"].get("conditions", []):
        if wanted | {"lastTransitionTime": known["lastTransitionTime"]} == {
            key: known[key] for key in ("type", "status", "lastTransitionTime")
        }:
            return {**wanted, "lastTransitionTime": known["lastTransitionTime"]}
    return {**wanted, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
