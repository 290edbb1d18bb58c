"""Traits of pods that look at other pods: inter-pod affinity and topology spread; and resizes in place of those that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import World

Object = dict[str, Any]

KEYS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "disk", "kubernetes.io/hostname")
APPS = ("web", "db", "batch")
TRACKS = ("stable", "canary")
SPACE_LABEL = "kubernetes.io/metadata.name"


def pod_affinity(of: World, item: Object) -> None:
    """Pods that want others near them; few, as most nodes fail them."""
    if of.chance(0.2):
        terms = [_term(of) for _ in range(of.dice.randint(1, 2))]
        affinity = item["spec"].setdefault("affinity", {})
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def pod_anti_affinity(of: World, item: Object) -> None:
    """Pods that want others away; of bound ones, it is they who keep ours off."""
    if of.chance(0.15):
        terms = [_term(of) for _ in range(of.dice.randint(1, 2))]
        affinity = item["spec"].setdefault("affinity", {})
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _term(of: World) -> Object:
    term: Object = {"topologyKey": of.dice.choice(KEYS), "labelSelector": _selector(of)}
    if of.chance(0.15):
        del term["labelSelector"]
    elif of.chance(0.15) and "track" not in str(term["labelSelector"]):
        term[of.dice.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["track"]
    if of.chance(0.2):
        term["namespaces"] = of.some(("default", "kube-system"))
    if of.chance(0.2):
        term["namespaceSelector"] = of.dice.choice(
            ({}, {"matchLabels": {SPACE_LABEL: "default"}}, {"matchLabels": {SPACE_LABEL: "kube-system"}})
        )
    return term


def _selector(of: World) -> Object:
    match of.dice.randrange(4):
        case 0:
            return {"matchExpressions": [_expression(of)]}
        case 1:
            return {"matchLabels": {"app": of.dice.choice(APPS), "track": of.dice.choice(TRACKS)}}
        case _:
            return {"matchLabels": {"app": of.dice.choice(APPS)}}


def _expression(of: World) -> Object:
    operator = of.dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    key, values = of.dice.choice((("app", APPS), ("track", TRACKS), ("tier", ("front",))))
    wanted = {"values": of.some(values)} if operator in {"In", "NotIn"} else {}
    return {"key": key, "operator": operator} | wanted


def pod_spread(of: World, item: Object) -> None:
    """One constraint or two, on different labels of nodes, as the API server wants it."""
    if not of.chance(0.3):
        return
    found: list[Object] = []
    keys: Sequence[str] = of.dice.sample(sorted(set(KEYS)), of.dice.randint(1, 2))
    for key in keys:
        hard = of.chance(0.85)
        constraint: Object = {
            "maxSkew": of.dice.randint(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        if of.chance(0.9):
            constraint["labelSelector"] = {} if of.chance(0.1) else _selector(of)
        if "labelSelector" in constraint and "track" not in str(constraint) and of.chance(0.3):
            constraint["matchLabelKeys"] = ["track"]
        if hard and of.chance(0.3):
            constraint["minDomains"] = of.dice.randint(1, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if of.chance(0.4):
                constraint[policy] = of.dice.choice(("Honor", "Ignore"))
        found.append(constraint)
    item["spec"]["topologySpreadConstraints"] = found


def bound_resize(of: World, item: Object) -> None:
    """What kubelets tell while a resize in place is on its way, or is refused."""
    if not of.chance(0.3):
        return
    status = item.setdefault("status", {})
    status["containerStatuses"] = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "allocatedResources": {"cpu": of.dice.choice(("100m", "1", "2"))},
            "resources": {"requests": {"cpu": of.dice.choice(("100m", "500m", "3"))}},
        }
        for container in item["spec"]["containers"]
    ]
    if of.chance(0.3):
        reason = of.dice.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
