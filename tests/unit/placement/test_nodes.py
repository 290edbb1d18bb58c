"""Whether a node can take a pod, devices aside, in kube-scheduler's words (issue part 9, cp I-27)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra_operator.cluster import Cluster, NodeUsage
from dra_operator.placement.checks import NodeChecks
from dra_operator.placement.nodes import NodeReason, node_reason
from dra_operator.placement.outcomes import Cause
from dra_operator.placement.resources import demand_of, dra_resource_names

from .build import cluster_of, cpu, device_class, node, pod, running


def why(spec: dict[str, Any], on: dict[str, Any], *others: dict[str, Any], classes: Any = ()) -> str | None:
    found = reason(spec, on, *others, classes=classes)
    return found.text if found else None


def reason(
    spec: dict[str, Any], on: dict[str, Any], *others: dict[str, Any], classes: Any = ()
) -> NodeReason | None:
    """What keeps a pod of that spec off a node of that spec where the others run."""
    subject, target = pod("p", **spec), node("n1", **on)
    model = cluster_of(*[running(f"other-{index}", "n1", **other) for index, other in enumerate(others)])
    usage = model.node_usage("n1")
    return node_reason(subject, demand_of(subject), target, usage, dra_resource_names(classes))


def taint(key: str, effect: str, value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def ports(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": list(entries)}]}


def test_a_pod_that_asks_nothing_goes_to_an_empty_ready_node() -> None:
    assert why({}, {}) is None


# --- state


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_takes_no_pod(ready: str) -> None:
    assert why({}, {"ready": ready}) == "node(s) were not ready"


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}

    assert why({}, {"unschedulable": True}) == "node(s) were unschedulable"
    assert why({"tolerations": [toleration]}, {"unschedulable": True}) is None


# --- taints


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (None, "node(s) had untolerated taint {dedicated: db}"),
        ({"key": "dedicated", "operator": "Equal", "value": "db"}, None),
        ({"key": "dedicated", "value": "db", "effect": "NoSchedule"}, None),
        ({"key": "dedicated", "operator": "Exists"}, None),
        ({"operator": "Exists"}, None),
        (
            {"key": "dedicated", "operator": "Equal", "value": "web"},
            "node(s) had untolerated taint {dedicated: db}",
        ),
        (
            {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
            "node(s) had untolerated taint {dedicated: db}",
        ),
        ({"key": "other", "operator": "Exists"}, "node(s) had untolerated taint {dedicated: db}"),
        (
            {"key": "dedicated", "operator": "Gt", "value": "db"},
            "node(s) had untolerated taint {dedicated: db}",
        ),
        ({"operator": "Equal", "value": "db"}, "node(s) had untolerated taint {dedicated: db}"),
    ],
)
def test_taints_need_a_matching_toleration(toleration: dict[str, Any] | None, expected: str | None) -> None:
    spec = {"tolerations": [toleration]} if toleration else {}

    assert why(spec, {"taints": [taint("dedicated", "NoSchedule", "db")]}) == expected


def test_every_taint_needs_its_own_toleration() -> None:
    taints = [taint("a", "NoSchedule"), taint("b", "NoExecute")]
    spec = {"tolerations": [{"key": "a", "operator": "Exists"}]}

    assert why(spec, {"taints": taints}) == "node(s) had untolerated taint {b}"


def test_a_soft_taint_keeps_nobody_off() -> None:
    assert why({}, {"taints": [taint("a", "PreferNoSchedule")]}) is None


# --- affinity


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"zone": "a", "disk": "ssd"}}, False),
        (required(expression("zone", "In", "a", "b")), True),
        (required(expression("zone", "NotIn", "a")), False),
        (required(expression("zone", "In", "b"), expression("gpus", "Gt", "4")), True),
        (required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), True),
        (required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}), False),
        (required(), False),
        (required({}), False),
        ({"nodeSelector": {"zone": "a"}, **required(expression("zone", "In", "b"))}, False),
    ],
)
def test_node_selector_and_required_affinity_both_have_to_hold(spec: dict[str, Any], *, fits: bool) -> None:
    """Alloc N-2; no terms, and empty terms, match nothing."""
    found = why(spec, {"labels": {"zone": "a", "gpus": "8"}})

    assert found == (None if fits else "node(s) didn't match Pod's node affinity/selector")


# --- room


def test_what_others_use_is_not_there_any_more() -> None:
    other = {"containers": cpu("3")}

    assert why({"containers": cpu("1")}, {}, other) is None
    assert why({"containers": cpu("1001m")}, {}, other) == "Insufficient cpu"


@pytest.mark.parametrize("name", ["memory", "ephemeral-storage", "hugepages-2Mi", "vendor.example/thing"])
def test_every_resource_counts_and_what_a_node_does_not_offer_is_zero(name: str) -> None:
    containers = [{"name": "c", "resources": {"requests": {name: "2"}}}]

    assert why({"containers": containers}, {"allocatable": {name: "1"}}) == f"Insufficient {name}"
    assert why({"containers": containers}, {"allocatable": {name: "2"}}) is None
    if name != "memory":
        assert why({"containers": containers}, {}) == f"Insufficient {name}"


def test_a_node_takes_so_many_pods_and_no_more() -> None:
    assert why({}, {"allocatable": {"pods": "2"}}, {}, {}) == "Too many pods"
    assert why({}, {"allocatable": {"pods": "3"}}, {}, {}) is None


def test_all_shortages_are_named() -> None:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "5", "memory": "9Gi"}}}]
    found = why({"containers": containers}, {"allocatable": {"pods": "0"}})

    assert found == "Too many pods, Insufficient cpu, Insufficient memory"


def test_extended_resources_of_a_device_class_are_left_to_kube_scheduler() -> None:
    """Alloc section 18: it makes a claim of its own for them."""
    classes = [device_class("gpu", extendedResourceName="example.com/gpu")]
    explicit = [{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]
    implicit = [{"name": "c", "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}]

    assert why({"containers": explicit}, {}, classes=classes) is None
    assert why({"containers": implicit}, {}, classes=classes) is None
    assert why({"containers": explicit}, {}) == "Insufficient example.com/gpu"


def test_extended_resources_that_a_device_plugin_offers_count_as_ever() -> None:
    classes = [device_class("gpu", extendedResourceName="example.com/gpu")]
    wanting = [{"name": "c", "resources": {"requests": {"example.com/gpu": "2"}}}]
    on = {"allocatable": {"example.com/gpu": "1"}}

    assert why({"containers": wanting}, on, classes=classes) == "Insufficient example.com/gpu"


@pytest.mark.parametrize(
    ("wanted", "taken", "fits"),
    [
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"containerPort": 80}, {"hostPort": 80}, True),
    ],
)
def test_host_ports_conflict_where_address_protocol_and_number_meet(
    wanted: dict[str, Any], taken: dict[str, Any], *, fits: bool
) -> None:
    found = why(ports(wanted), {}, ports(taken))

    assert found == (None if fits else "node(s) didn't have free ports for the requested pod ports")


# --- what waiting can mend


@pytest.mark.parametrize(
    ("spec", "on", "others", "expected"),
    [
        ({}, {"unschedulable": True}, [], (Cause.STATE, False)),
        ({}, {"taints": [taint("a", "NoSchedule")]}, [], (Cause.POD, True)),
        ({"nodeSelector": {"a": "b"}}, {}, [], (Cause.POD, True)),
        ({"containers": cpu("5")}, {}, [], (Cause.ROOM, True)),
        ({"containers": cpu("2")}, {}, [{"containers": cpu("3")}], (Cause.ROOM, False)),
    ],
)
def test_a_reason_tells_whether_it_lasts(
    spec: dict[str, Any], on: dict[str, Any], others: list[dict[str, Any]], expected: tuple[Cause, bool]
) -> None:
    found = reason(spec, on, *others)

    assert found is not None
    assert (found.cause, found.lasting) == expected


def test_nothing_runs_on_a_node_that_no_pod_names() -> None:
    assert cluster_of().node_usage("n1") == NodeUsage()


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        (
            {"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "RestartAllContainersOnContainerExits",
        ),
        (
            {"initContainers": [{"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}]},
            "VolumeBindMountOptions",
        ),
        ({"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport"),
    ],
)
def test_a_feature_that_the_pod_uses_has_to_be_declared_by_the_node(
    spec: dict[str, Any], feature: str
) -> None:
    checks = NodeChecks(pod(**spec), Cluster())
    bare = node("n1")
    declaring = msgspec.structs.replace(
        bare, status=msgspec.structs.replace(bare.status, declared_features=(feature, "Other"))
    )

    found = checks.reason(bare)

    assert found is not None
    assert (found.text, found.lasting) == ("node(s) didn't match Pod's required features", True)
    assert checks.lasting_reason(bare) == found
    assert checks.reason(declaring) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]},
        {"containers": [{"volumeMounts": [{"name": "v"}]}]},
        {"hostNetwork": True},
        {"hostUsers": False},
    ],
)
def test_other_pods_need_nothing_declared(spec: dict[str, Any]) -> None:
    assert NodeChecks(pod(**spec), Cluster()).reason(node("n1")) is None
