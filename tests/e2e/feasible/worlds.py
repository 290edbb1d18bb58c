"""Random small clusters, and pods to be placed there: a function of a seed and nothing else.

A world is a list of objects as users and controllers write them. Each trait of pods and nodes is a function of its own that changes an object
in place, in the lists at the end of this module; what needs further objects adds them to the world. Values are few on purpose: they
have to meet.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.e2e.harness.objects import claim, device_class, exactly, node, pod

from .base import APPS, BOUND, CLASS, DRIVER, NAMESPACE, NODES, PODS, TERMINATING, ZONE, ZONES, World
from .neighbours import bound_resize, pod_affinity, pod_anti_affinity, pod_spread
from .volumes import STORAGE, bound_volumes, pod_volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .base import Object, Trait


def world(seed: int) -> World:
    """The world of that seed."""
    made = World(Random(seed))
    made.objects.append(device_class(CLASS, driver=DRIVER))
    for index in range(NODES):
        made.objects.append(_made(made, node(f"n{index}"), NODE_TRAITS))
    for trait in WORLD_TRAITS:
        trait(made)
    names = made.named("Node")
    for index in range(BOUND):
        item = _made(made, pod(f"bound-{index}", nodeName=made.dice.choice(names)), BOUND_TRAITS)
        made.objects.append(item)
    for index in range(PODS):
        made.pods.append(_made(made, pod(f"pod-{index}"), POD_TRAITS))
    return made


def _made(of: World, item: Object, traits: Sequence[Trait]) -> Object:
    item["metadata"].setdefault("labels", {})
    if item["kind"] == "Pod":
        item["metadata"]["namespace"] = NAMESPACE
    for trait in traits:
        trait(of, item)
    return item


# --------------------------------------------------------------------------- nodes


def node_labels(of: World, item: Object) -> None:
    labels = item["metadata"]["labels"]
    if of.chance(0.9):
        labels[ZONE] = of.dice.choice(ZONES)
    if of.chance(0.7):
        labels["disk"] = of.dice.choice(("ssd", "hdd"))
    if of.chance(0.7):
        labels["generation"] = of.dice.choice(("1", "2", "10", "new"))


def node_room(of: World, item: Object) -> None:
    amounts = {
        "cpu": of.dice.choice(("2", "4", "3500m")),
        "memory": of.dice.choice(("4Gi", "8Gi", "6000M")),
        "pods": of.dice.choice(("3", "5", "20")),
        "ephemeral-storage": "20Gi",
    }
    if of.chance(0.5):
        amounts["example.com/licence"] = of.dice.choice(("0", "1", "3"))
    if of.chance(0.3):
        amounts["hugepages-2Mi"] = of.dice.choice(("64Mi", "0"))
    item["status"] = {
        "capacity": amounts,
        "allocatable": dict(amounts),
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }


def node_taints(of: World, item: Object) -> None:
    if of.chance(0.15):
        item.setdefault("spec", {})["unschedulable"] = True
    if of.chance(0.4):
        effect = of.dice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        taint = {"key": of.dice.choice(("team", "spot")), "effect": effect}
        if of.chance(0.7):
            taint["value"] = of.dice.choice(("x", "y"))
        item.setdefault("spec", {})["taints"] = [taint]


# --------------------------------------------------------------------------- pods, bound or not


def pod_labels(of: World, item: Object) -> None:
    item["metadata"]["labels"] = {"app": of.dice.choice(APPS), "track": of.dice.choice(("stable", "canary"))}


def pod_requests(of: World, item: Object) -> None:
    spec = item["spec"]
    spec["containers"][0]["resources"]["requests"] = _requests(of, 0.8)
    if of.chance(0.2):
        spec["containers"].append(spec["containers"][0] | {"name": "side", "ports": []})
    if of.chance(0.2):
        first = {"name": "init", "image": "registry.test/init:1", "resources": {"requests": _requests(of, 1)}}
        if of.chance(0.5):
            first["restartPolicy"] = "Always"
        second = {
            "name": "init-2",
            "image": "registry.test/init:1",
            "resources": {"requests": _requests(of, 1)},
        }
        spec["initContainers"] = [first, second]
    # At least what the containers ask for, or it is refused.
    if len(spec["containers"]) == 1 and "initContainers" not in spec and of.chance(0.15):
        spec["resources"] = {"requests": {"cpu": "2500m", "memory": "3Gi"}}


def _requests(of: World, share: float) -> dict[str, str]:
    found = {}
    if of.chance(share):
        found["cpu"] = of.dice.choice(("100m", "500m", "1", "1500m"))
    if of.chance(share):
        found["memory"] = of.dice.choice(("64Mi", "1Gi", "2G", "3Gi"))
    if of.chance(0.15):
        found["ephemeral-storage"] = of.dice.choice(("1Gi", "12Gi"))
    return found


def pod_ports(of: World, item: Object) -> None:
    if of.chance(0.25):
        port = {"containerPort": 80, "hostPort": of.dice.choice((80, 8080)), "protocol": "TCP"}
        if of.chance(0.3):
            port["protocol"] = "UDP"
        if of.chance(0.4):
            port["hostIP"] = of.dice.choice(("127.0.0.1", "127.0.0.2", "0.0.0.0"))  # noqa: S104 -- a value
        item["spec"]["containers"][0]["ports"] = [port]


def pod_extended(of: World, item: Object) -> None:
    if of.chance(0.15):
        amount = {"example.com/licence": of.dice.choice(("1", "2"))}
        _resources(item).update(requests=_resources(item)["requests"] | amount, limits=amount)
    elif of.chance(0.1):
        amount = {"hugepages-2Mi": "64Mi"}
        requests = {"cpu": "100m"} | _resources(item)["requests"] | amount
        _resources(item).update(requests=requests, limits=amount)


def _resources(item: Object) -> Object:
    found: Object = item["spec"]["containers"][0]["resources"]
    return found


# --------------------------------------------------------------------------- pods that wait


def pod_tolerations(of: World, item: Object) -> None:
    found = []
    for key in of.some(("team", "spot", "node.kubernetes.io/unschedulable", ""), 0):
        toleration: Object = {"operator": "Exists"}
        if key:
            toleration["key"] = key
        if key in {"team", "spot"} and of.chance(0.6):
            toleration |= {"operator": "Equal", "value": of.dice.choice(("x", "y"))}
        if of.chance(0.5):
            toleration["effect"] = of.dice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        found.append(toleration)
    # Most pods tolerate little: who tolerates all tells nothing.
    if of.chance(0.6):
        item["spec"]["tolerations"] = found


def pod_selector(of: World, item: Object) -> None:
    if of.chance(0.15):
        item["spec"]["nodeSelector"] = {ZONE: of.dice.choice(ZONES)}
    elif of.chance(0.1):
        item["spec"]["nodeSelector"] = {"disk": of.dice.choice(("ssd", "hdd", "tape"))}


def pod_node_affinity(of: World, item: Object) -> None:
    if of.chance(0.35):
        terms = [_term(of) for _ in range(of.dice.randint(1, 2))]
        affinity = item["spec"].setdefault("affinity", {})
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }


def _term(of: World) -> Object:
    term: Object = {}
    if of.chance(0.85):
        term["matchExpressions"] = [_expression(of) for _ in range(of.dice.randint(1, 2))]
    if of.chance(0.2):
        operator = of.dice.choice(("In", "NotIn"))
        name = f"n{of.dice.randrange(NODES)}"
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    return term


def _expression(of: World) -> Object:
    operator = of.dice.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in {"Gt", "Lt"}:
        return {"key": "generation", "operator": operator, "values": [of.dice.choice(("1", "5"))]}
    key, values = of.dice.choice(((ZONE, ZONES), ("disk", ("ssd", "hdd")), ("generation", ("1", "2", "10"))))
    wanted = {"values": of.some(values)} if operator in {"In", "NotIn"} else {}
    return {"key": key, "operator": operator} | wanted


# --------------------------------------------------------------------------- bound pods


def bound_state(of: World, item: Object) -> None:
    """Some are over, some on their way out; the status is written after the creation, the deletion asked for last."""
    if of.chance(0.15):
        item["status"] = {"phase": of.dice.choice(("Succeeded", "Failed", "Running"))}
    if of.chance(0.1):
        item["metadata"]["annotations"] = {TERMINATING: ""}


# --------------------------------------------------------------------------- claims


def claims(of: World) -> None:
    """Allocated claims that bind their users to some nodes, or to none."""
    for index in range(4):
        item = claim(f"claim-{index}", exactly("gpu", CLASS))
        item["metadata"]["namespace"] = NAMESPACE
        result = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": f"gpu-{index}"}
        allocation: Object = {"devices": {"results": [result]}}
        if of.chance(0.8):
            allocation["nodeSelector"] = {"nodeSelectorTerms": [_claim_term(of)]}
        # In use, or kube-scheduler would take the allocation back for the first pod that fits nowhere.
        consumer = {"resource": "pods", "name": "elsewhere", "uid": "elsewhere"}
        item["status"] = {"allocation": allocation, "reservedFor": [consumer]}
        of.objects.append(item)


def _claim_term(of: World) -> Object:
    if of.chance(0.5):
        values = [f"n{of.dice.randrange(NODES)}"]
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": values}]}
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": of.some(ZONES)}]}


def pod_claims(of: World, item: Object) -> None:
    names = of.named("ResourceClaim")
    if of.chance(0.25):
        name = of.dice.choice(names)
        item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        _resources(item)["claims"] = [{"name": "gpu"}]


NODE_TRAITS: Sequence[Trait] = (node_labels, node_room, node_taints)
WORLD_TRAITS: Sequence[Callable[[World], None]] = (claims, *STORAGE)
BOUND_TRAITS: Sequence[Trait] = (
    pod_labels,
    pod_requests,
    pod_ports,
    pod_anti_affinity,
    bound_volumes,
    bound_state,
    bound_resize,
)
POD_TRAITS: Sequence[Trait] = (
    pod_labels,
    pod_requests,
    pod_ports,
    pod_extended,
    pod_tolerations,
    pod_selector,
    pod_node_affinity,
    pod_claims,
    pod_affinity,
    pod_anti_affinity,
    pod_spread,
    pod_volumes,
)
