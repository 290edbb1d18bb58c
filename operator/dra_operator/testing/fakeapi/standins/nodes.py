"""Node selectors, taints and resources, judged the stand-ins' own way.

Called by the binding and kubelet stand-ins. Deliberately not the operator's `placement`: a test that used the same code on both
sides would prove nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.quantity import Quantity
from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, meta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_BLOCKING = ("NoSchedule", "NoExecute")
_ZERO = Quantity.of(0)


def _number(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _compare(actual: Any, wanted: list[str], test: Callable[[int, int], bool]) -> bool:
    left, right = _number(actual), _number(wanted[0] if wanted else None)
    return left is not None and right is not None and test(left, right)


_OPERATORS: Mapping[str, Callable[[Any, list[str]], bool]] = {
    "In": lambda actual, wanted: actual is not None and actual in wanted,
    "NotIn": lambda actual, wanted: actual not in wanted,
    "Exists": lambda actual, _wanted: actual is not None,
    "DoesNotExist": lambda actual, _wanted: actual is None,
    "Gt": lambda actual, wanted: _compare(actual, wanted, int.__gt__),
    "Lt": lambda actual, wanted: _compare(actual, wanted, int.__lt__),
}


def _holds(requirement: Obj, values: Mapping[str, Any]) -> bool:
    test = _OPERATORS.get(requirement.get("operator", ""))
    return test is not None and test(values.get(requirement.get("key", "")), requirement.get("values") or [])


def selects(selector: Obj, node: Obj) -> bool:
    """Whether a core/v1 NodeSelector matches; terms are ORed, an empty term matches nothing."""
    labels = meta(node).get("labels") or {}
    fields = {"metadata.name": meta(node)["name"]}
    for term in dicts(selector.get("nodeSelectorTerms")):
        by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not by_label and not by_field:
            continue
        if all(_holds(item, labels) for item in by_label) and all(_holds(item, fields) for item in by_field):
            return True
    return False


def tolerated(taint: Obj, tolerations: Iterable[Obj]) -> bool:
    """Whether some toleration matches a node taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return (toleration.get("value") or "") == (taint.get("value") or "")


def admits(node: Obj, pod: Obj) -> bool:
    """Selectors, required affinity, taints, cordon and readiness: whether the pod may run there at all."""
    spec = pod.get("spec") or {}
    labels = meta(node).get("labels") or {}
    if dig(node, "spec", "unschedulable") or not _is_ready(node):
        return False
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not selects(required, node):
        return False
    tolerations = list(dicts(spec.get("tolerations")))
    taints = dicts(dig(node, "spec", "taints"))
    return all(tolerated(taint, tolerations) for taint in taints if taint.get("effect") in _BLOCKING)


def _is_ready(node: Obj) -> bool:
    conditions = dicts(dig(node, "status", "conditions"))
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def requests(pod: Obj) -> dict[str, Quantity]:
    """What the containers of a pod ask for (init containers aside), the pod itself counted, too."""
    total: dict[str, Quantity] = {"pods": Quantity.of(1)}
    for container in dicts(dig(pod, "spec", "containers")):
        for name, amount in (dig(container, "resources", "requests") or {}).items():
            total[name] = total.get(name, _ZERO) + Quantity.parse(amount)
    return total


def fits(node: Obj, pod: Obj, others: Iterable[Obj]) -> bool:
    """Whether what is left of the node's allocatable is enough; resources that the node does not list are not judged."""
    left = {
        name: Quantity.parse(amount) for name, amount in (dig(node, "status", "allocatable") or {}).items()
    }
    for other in (*others, pod):
        for name, amount in requests(other).items():
            if name in left:
                left[name] = left[name] - amount
    return all(amount >= _ZERO for amount in left.values())
