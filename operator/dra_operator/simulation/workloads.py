"""Pods that other objects would make: Deployments, Jobs, or kinds that only their users know. By the shape of the object, not by its kind."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidObject
from dra_operator.model import Pod, from_object
from dra_operator.placement.nodes import blocking_taint, matches_affinity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dra_operator.model import Node

    Obj = dict[str, Any]
    Path = tuple[str | int, ...]

MOST: Final = 1000
"""Pods that one template makes at most: a figure that is too large by a slip must not take the memory. Arbitrary."""

_COUNTS: Final = ("replicas", "parallelism")
"""Members beside a template that say how many pods are made of it at a time."""


def pods_of(raw: Mapping[str, Any], paths: Sequence[Path]) -> list[Obj]:
    """The pods that an object makes, named after it, with its own metadata's namespace.

    Args:
        raw: the object.
        paths: of the specs of pods in it, such as `("spec", "template", "spec")`.
    """
    metadata = raw.get("metadata") or {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    if not name or not paths:
        return []
    return [
        _pod(template, f"{base}-{number}", metadata.get("namespace"))
        for path in paths
        for base in [f"{name}{_infix(path)}" if len(paths) > 1 or _is_deep(path) else name]
        for template, count in [_template(raw, path)]
        for number in range(min(count, MOST))
    ]


DAEMON_TOLERATIONS: Final = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""What the DaemonSet controller has its pods tolerate."""


USUAL: Final = ("spec", "template", "spec")
"""Where the spec of pods is in the objects of Kubernetes itself."""


def daemons_of(raw: Mapping[str, Any], nodes: Iterable[Node]) -> list[Obj]:
    """The pods of a DaemonSet: one for each node that its template does not keep it off, pinned there, named after both.

    Raises:
        InvalidObject: the template is no pod.
    """
    template, _ = _template(raw, USUAL)
    metadata = raw.get("metadata") or {}
    found = []
    for node in nodes:
        pod = _pod(template, f"{metadata.get('name', '')}-{node.name}", metadata.get("namespace"))
        spec = pod["spec"]
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *map(dict, DAEMON_TOLERATIONS)]
        value = _decoded(pod)
        if matches_affinity(value, node) and blocking_taint(value, node) is None:
            spec["affinity"] = _only_on(spec.get("affinity") or {}, node.name)
            found.append(pod)
    return found


def _decoded(pod: Obj) -> Pod:
    try:
        return from_object(Pod, pod)
    except InvalidObject as error:
        path = error.path.removeprefix("spec")
        raise InvalidObject(error.ref, f"spec.template.spec{path}", error.message) from error


def _only_on(affinity: Obj, name: str) -> Obj:
    """The node in the place of what the template requires of nodes, which it meets."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def _is_deep(path: Path) -> bool:
    """Whether the template is one of several that the kind may have, as of an MPIJob's workers."""
    return path[:3] != USUAL


def _infix(path: Path) -> str:
    """The word before `template`, which is what tells one template of an object from another."""
    words = [str(step).lower() for step in path if step not in {"spec", "template", "jobTemplate"}]
    return f"-{words[-1]}" if words else ""


def _template(raw: Mapping[str, Any], path: Path) -> tuple[Obj, int]:
    """What holds the spec, and how many pods are made of it."""
    above: list[Any] = [raw]
    for step in path:
        above.append(above[-1][step])
    spec, holder = above[-1], above[-2]
    count = next(_counts(above[-3]), 1) if len(above) > len(("spec", "template")) else 1
    metadata = holder.get("metadata") if isinstance(holder, dict) else None
    return {"metadata": metadata if isinstance(metadata, dict) else {}, "spec": spec}, count


def _counts(beside: object) -> Iterator[int]:
    for name in _COUNTS:
        value = beside.get(name) if isinstance(beside, dict) else None
        if type(value) is int and value >= 0:
            yield value


def _pod(template: Obj, name: str, namespace: object) -> Obj:
    metadata = {**copy.deepcopy(template["metadata"]), "name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template["spec"])}
