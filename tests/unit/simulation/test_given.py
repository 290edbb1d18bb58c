"""What a simulation makes of objects as files have them: what is left out is filled in, and said where it matters."""

from __future__ import annotations

import pytest

from dra_operator.errors import InvalidObject
from dra_operator.kube.kinds import KINDS as SERVED
from dra_operator.model import KINDS
from dra_operator.simulation import Given, pods_of
from dra_operator.simulation.given import GROUPS, NAMESPACED
from dra_operator.testing.builders import Obj, claim, device, devices, node, pod, resource_slice, result


def given(*objects: Obj) -> Given:
    found = Given()
    for obj in objects:
        assert found.take(obj)
    return found


def test_every_kind_of_the_model_is_looked_at() -> None:
    assert set(GROUPS) - {"PriorityClass"} == set(KINDS)
    assert {kind: SERVED[kind].group for kind in KINDS} == {kind: GROUPS[kind] for kind in KINDS}
    assert {kind for kind in KINDS if SERVED[kind].namespaced} == NAMESPACED


def test_other_objects_are_passed_over() -> None:
    found = Given()
    assert not found.take({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert not found.take({"apiVersion": "other.test/v1", "kind": "Pod", "metadata": {"name": "a"}})
    assert not found.take({})


def test_namespace_and_uid_are_filled_in_and_equal_names_get_equal_uids() -> None:
    one, other = (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}} for _ in range(2)
    )

    first, second = given(one).raw("Pod"), given(other).raw("Pod")

    assert list(first) == ["default/a"]
    assert first["default/a"]["metadata"]["uid"] == second["default/a"]["metadata"]["uid"]


def test_uids_of_owners_and_consumers_are_those_of_the_objects_named() -> None:
    held = claim("c")
    held["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "a", "controller": True}
    ]
    held["status"] = {"reservedFor": [{"resource": "pods", "name": "a"}]}
    found = given(pod("a"))

    found.name_uids(held)

    uid = found.raw("Pod")["default/a"]["metadata"]["uid"]
    assert (held["metadata"]["ownerReferences"][0]["uid"], held["status"]["reservedFor"][0]["uid"]) == (
        uid,
        uid,
    )


def test_generated_names_are_numbered() -> None:
    nameless = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}, "spec": {}} for _ in range(2)
    ]

    assert list(given(*nameless).raw("Pod")) == ["default/a-00000", "default/a-00001"]


def test_a_later_object_stands_for_an_earlier_one_and_keeps_who_it_is_and_its_status() -> None:
    live = claim("c") | {"status": {"reservedFor": []}}
    live["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "7"}
    applied = claim("c")
    applied["metadata"]["labels"] = {"a": "b"}

    found = given(live, applied)
    (kept,) = found.raw("ResourceClaim").values()
    found.cluster()

    assert "Given more than once, and taken as given last: ResourceClaim default/c" in found.notes
    assert kept["metadata"] | {"labels": {}} == live["metadata"] | {"labels": {}}
    assert kept["metadata"]["labels"] == {"a": "b"}
    assert kept["status"] == {"reservedFor": []}


def test_a_pod_that_is_given_again_stays_on_its_node() -> None:
    (kept,) = given(pod("a", nodeName="n1"), pod("a", priority=3)).raw("Pod").values()

    assert (kept["spec"]["nodeName"], kept["spec"]["priority"]) == ("n1", 3)


def test_a_claim_that_cannot_be_decoded_holds_its_devices_all_the_same() -> None:
    found = Given()
    status = {"allocation": {"devices": {"results": [result("gpu", "gpu.test", "n1", "gpu-0")]}}}
    future = {"metadata": {"name": "c", "namespace": "default"}, "spec": 7, "status": status}

    found.hold_unreadable(future)

    assert [device_id.device for device_id in found.cluster().allocated_state().devices] == ["gpu-0"]


def test_requests_are_the_limits_where_none_are_given() -> None:
    one = pod("a")
    one["spec"]["containers"][0]["resources"] = {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1"},
    }
    found = given(one)

    (kept,) = found.cluster().pods.values()

    requests = kept.spec.containers[0].resources.requests
    assert {name: str(amount) for name, amount in requests.items()} == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": "a"}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": "high"}}, "spec.priority"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "x"}}}, "status.allocatable[...]"),
        ({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "value": "1"}, "value"),
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_is_told_with_its_path_and_left_out(obj: Obj, path: str) -> None:
    found = Given()

    with pytest.raises(InvalidObject) as caught:
        found.take(obj)

    assert caught.value.path == path
    assert not found.raw(obj["kind"])


def test_nulls_are_as_if_they_were_not_there() -> None:
    empty = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": None},
        "spec": {"containers": None},
    }
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": None}

    cluster = given(empty, bare).cluster()

    assert (list(cluster.pods), list(cluster.nodes)) == (["default/a"], ["n"])


# --- nodes


def test_nodes_come_of_slices_where_none_is_given() -> None:
    local = resource_slice("a", "gpu.test", devices(1), node="n2")
    each = [device("x", nodeName="n1"), device("y", allNodes=True)]
    shared = resource_slice("b", "gpu.test", each, perDeviceNodeSelection=True)
    greedy = pod("p", requests={"cpu": "1000", "example.com/thing": "9"})
    found = given(local, shared, greedy)

    nodes = found.cluster().nodes

    assert list(nodes) == ["n1", "n2"]
    assert nodes["n1"].metadata.labels == {"kubernetes.io/hostname": "n1"}
    assert {"pods", "cpu", "example.com/thing"} <= nodes["n1"].status.allocatable.keys()
    assert [note for note in found.notes if "n1, n2" in note]


def test_without_any_node_it_says_what_to_do() -> None:
    found = given(resource_slice("a", "gpu.test", devices(1)))

    assert not found.cluster().nodes
    assert "Add the nodes" in found.notes[0]


def test_a_node_without_status_is_ready_and_has_room_and_one_with_capacity_has_that() -> None:
    plain: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain"}}
    sized = plain | {"metadata": {"name": "sized"}, "status": {"capacity": {"cpu": "4"}}}
    down = node("down", ready=False)
    found = given(plain, sized, down)

    nodes = found.cluster().nodes

    assert [nodes[name].status.conditions[0].status for name in ("plain", "sized", "down")] == [
        "True",
        "True",
        "False",
    ]
    assert [str(amount) for amount in nodes["sized"].status.allocatable.values()] == ["4"]
    assert [note for note in found.notes if note.endswith("Node plain")]


def test_nodes_that_only_slices_name_are_told_where_nodes_are_given() -> None:
    found = given(node("n1"), resource_slice("a", "gpu.test", devices(1), node="n2"))

    assert list(found.cluster().nodes) == ["n1"]
    assert [note for note in found.notes if "n2" in note]


# --- pods of other objects

CLAIMING: Obj = {
    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    "containers": [{"name": "main"}],
}


@pytest.mark.parametrize(
    ("raw", "path", "names"),
    [
        ({"spec": {"replicas": 2, "template": {"spec": CLAIMING}}}, ("spec", "template", "spec"), ["w-0", "w-1"]),
        ({"spec": {"replicas": 0, "template": {"spec": CLAIMING}}}, ("spec", "template", "spec"), []),
        ({"spec": {"parallelism": 2, "template": {"spec": CLAIMING}}}, ("spec", "template", "spec"), ["w-0", "w-1"]),
        ({"spec": {"template": {"spec": CLAIMING}}}, ("spec", "template", "spec"), ["w-0"]),
        (
            {"spec": {"jobTemplate": {"spec": {"parallelism": 2, "template": {"spec": CLAIMING}}}}},
            ("spec", "jobTemplate", "spec", "template", "spec"),
            ["w-0", "w-1"],
        ),
        (
            {"spec": {"roles": {"Worker": {"replicas": 2, "template": {"spec": CLAIMING}}}}},
            ("spec", "roles", "Worker", "template", "spec"),
            ["w-worker-0", "w-worker-1"],
        ),
        ({"template": {"spec": CLAIMING}}, ("template", "spec"), ["w-0"]),
    ],
)  # fmt: skip
def test_pods_that_an_object_makes_are_named_after_it(
    raw: Obj, path: tuple[str, ...], names: list[str]
) -> None:
    found = pods_of({"metadata": {"name": "w", "namespace": "team"}, **raw}, [path])

    assert [one["metadata"]["name"] for one in found] == names
    assert all(one["metadata"]["namespace"] == "team" and one["spec"] == CLAIMING for one in found)


def test_labels_of_the_template_are_the_pods() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": CLAIMING}

    (found,) = pods_of(
        {"metadata": {"name": "w"}, "spec": {"template": template}}, [("spec", "template", "spec")]
    )

    assert found["metadata"] == {"labels": {"a": "b"}, "name": "w-0"}


def test_a_figure_that_is_too_large_takes_no_memory() -> None:
    raw = {"metadata": {"name": "w"}, "spec": {"replicas": 10**9, "template": {"spec": CLAIMING}}}

    assert len(pods_of(raw, [("spec", "template", "spec")])) == 1000


def test_a_daemon_set_has_a_pod_on_each_node_that_it_fits_and_each_goes_there() -> None:
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    cordoned = node("n3", labels={"zone": "a"})
    cordoned["spec"]["unschedulable"] = True
    cordoned["spec"]["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    nodes = [
        node("n1", labels={"zone": "a"}),
        node("n2", labels={"zone": "b"}),
        node("n4", labels={"zone": "a"}, taints=taints),
    ]
    spec = {**CLAIMING, "nodeSelector": {"zone": "a"}}
    found = given(*nodes, cordoned)
    raw = {"metadata": {"name": "w", "namespace": "team"}, "spec": {"template": {"spec": spec}}}

    found.take_daemons(raw)
    pods = found.cluster().pods

    assert list(pods) == ["team/w-n1", "team/w-n3"]
    affinity = pods["team/w-n1"].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms[0].match_fields[0].values == ("n1",)
    assert [note for note in found.notes if note.startswith("DaemonSet team/w counts as 2 pod(s)")]


def test_a_daemon_set_that_makes_no_pods_is_told_with_its_path() -> None:
    raw = {"metadata": {"name": "w"}, "spec": {"template": {"spec": {**CLAIMING, "priority": "high"}}}}

    with pytest.raises(InvalidObject) as caught:
        Given().take_daemons(raw)

    assert caught.value.path == "spec.template.spec.priority"
