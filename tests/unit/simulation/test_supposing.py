"""What if: suppositions in, what would come of them out. A cluster that is in use is the outcome of a simulation before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.errors import InvalidInput
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.simulation import Given, Supposing, simulate
from dra_operator.testing.builders import (
    Obj,
    claim,
    devices,
    node,
    pod,
    request,
    resource_slice,
    template,
)
from tests.unit.simulation.test_simulate import CLASS, DRIVER, GPU, Run, gpus, user

if TYPE_CHECKING:
    from dra_operator.simulation import Report

WORLD = (CLASS, node("n1"), gpus("n1"), template("t", GPU))


def owned(obj: Obj, kind: str = "ReplicaSet") -> Obj:
    """Of a controller, as pods that are made anew have one."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "rs", "uid": "rs-uid", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def in_use(*objects: Obj) -> Given:
    """The objects with what a first simulation gives to the pods among them."""
    run = Run(*objects)
    assert run.broken == []
    given = Given()
    for kind in (
        "Node",
        "DeviceClass",
        "ResourceSlice",
        "ResourceClaimTemplate",
        "ResourceClaim",
        "Pod",
        "CSINode",
    ):
        for raw in run.given.raw(kind).values():
            given.take(raw)
    return given


def outcome(report: Report) -> dict[str, str]:
    """Name → node, or the verdict."""
    return {one.name: one.node or one.verdict for one in report.outcomes}


# --- nodes


def test_one_more_node_has_slices_pools_and_devices_of_its_own() -> None:
    given = in_use(*WORLD, *(user(name, of="t") for name in ("a", "b")))
    for name in ("c", "d", "e"):
        given.take(user(name, of="t"))
    supposing = Supposing(given)
    shape = supposing.shape("n1")
    assert shape is not None
    assert supposing.shape("n9") is None

    supposing.add_nodes(shape, 1)
    report = simulate(given)

    assert outcome(report) == {"c": "n1-new-1", "d": "n1-new-1", "e": "not now"}
    assert given.raw("Node")["n1-new-1"]["metadata"]["labels"]["kubernetes.io/hostname"] == "n1-new-1"
    (sentence,) = supposing.sentences
    assert sentence == (
        "1 more node(s) like n1, ready and with no pods: n1-new-1; their pools are gpu.test/n1-new-1"
    )


def test_a_new_node_is_ready_and_not_cordoned_whatever_the_other_is() -> None:
    keys = ("mine", "node.kubernetes.io/unschedulable")
    old = node("n1", ready=False, taints=[{"key": key, "effect": "NoSchedule"} for key in keys])
    old["spec"]["unschedulable"] = True
    tolerant = user("p", of="t", tolerations=[{"key": "mine", "operator": "Exists"}])
    given = in_use(CLASS, old, gpus("n1"), template("t", GPU))
    given.take(tolerant)
    given.take(user("q", of="t"))
    supposing = Supposing(given)
    shape = supposing.shape("n1")
    assert shape is not None

    supposing.add_nodes(shape, 2)

    found = outcome(simulate(given))
    assert found["p"].startswith("n1-new-")
    assert not found["q"].startswith("n1")


def test_of_a_pool_the_newest_generation_on_the_node_is_copied_whole() -> None:
    newer = resource_slice(
        "n1-b", DRIVER, devices(3, prefix="new"), node="n1", pool="n1", generation=2, resourceSliceCount=2
    )
    elsewhere = resource_slice(
        "n2-b", DRIVER, devices(1), node="n2", pool="n1", generation=2, resourceSliceCount=2
    )
    given = in_use(CLASS, node("n1"), node("n2"), gpus("n1"), newer, elsewhere, template("t", GPU))
    given.take(user("p", of="t"))
    supposing = Supposing(given)
    shape = supposing.shape("n1")
    assert shape is not None

    supposing.add_nodes(shape, 1)

    copied = [raw for raw in given.raw("ResourceSlice").values() if raw["spec"].get("nodeName") == "n1-new-1"]
    assert [one["spec"]["pool"] for one in copied] == [
        {"name": "n1-new-1", "generation": 2, "resourceSliceCount": 1}
    ]
    assert [one["name"] for one in copied[0]["spec"]["devices"]] == ["new-0", "new-1", "new-2"]


def test_pods_of_daemon_sets_come_with_a_node_and_take_their_room() -> None:
    small = node("n1", allocatable={"cpu": "2", "pods": "10"})
    daemon = owned(pod("agent", requests={"cpu": "1"}, nodeName="n1"), "DaemonSet")
    given = in_use(CLASS, small, gpus("n1"), template("t", GPU), daemon)
    for name in ("a", "b", "c"):
        given.take(user(name, of="t", requests={"cpu": "1"}))
    supposing = Supposing(given)
    shape = supposing.shape("n1")
    assert shape is not None

    supposing.add_nodes(shape, 1)

    assert sorted(outcome(simulate(given)).values()) == ["n1", "n1-new-1", "not now"]
    assert "1 pod(s) of DaemonSets" in supposing.sentences[0]


def test_pods_of_a_drained_node_are_made_anew_elsewhere_with_claims_of_their_own() -> None:
    world = (*WORLD, node("n2"), gpus("n2"))
    given = in_use(*world, owned(user("a", of="t", nodeSelector={})), owned(user("b", of="t")))
    before = dict(given.raw("Pod"))
    nodes = {raw["metadata"]["name"]: raw["spec"]["nodeName"] for raw in before.values()}
    gone = next(name for name, where in nodes.items() if where == "n1")
    supposing = Supposing(given)

    supposing.drain("n1")
    report = simulate(given)

    assert outcome(report) == {gone: "n2"}
    assert (
        given.raw("Pod")[f"default/{gone}"]["metadata"]["uid"] != before[f"default/{gone}"]["metadata"]["uid"]
    )
    assert supposing.sentences == [f"node n1 is drained: 1 pod(s) are made anew: {gone}"]


def test_the_pin_of_the_operator_goes_with_the_pod_and_what_its_template_requires_stays() -> None:
    pin = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    world = (CLASS, node("n1", labels={"zone": "a"}), gpus("n1"), template("t", GPU))
    others = (node("n2", labels={"zone": "b"}), gpus("n2"), node("n3", labels={"zone": "a"}), gpus("n3"))

    def held(name: str, *terms: Obj) -> Obj:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return owned(user(name, of="t", affinity={"nodeAffinity": required}))

    pods = held("p", {"matchFields": [pin]}), held("q", {"matchFields": [pin], "matchExpressions": [zone]})
    given = in_use(*world, *pods)
    for obj in others:
        given.take(obj)

    Supposing(given).drain("n1")
    found = outcome(simulate(given))

    assert found["q"] == "n3"
    assert found["p"] in {"n2", "n3"}


def test_pods_of_daemon_sets_and_static_ones_stay_and_those_of_nobody_end_for_good() -> None:
    pods = [
        owned(user("daemon", of="t"), "DaemonSet"),
        owned(pod("static", nodeName="n1"), "Node"),
        user("bare", of="t"),
    ]
    given = in_use(*WORLD, *pods)
    supposing = Supposing(given)

    supposing.drain("n1")

    assert set(given.raw("Pod")) == {"default/daemon", "default/static"}
    assert len(given.raw("ResourceClaim")) == 1
    assert supposing.sentences == [
        "node n1 is drained: 1 pod(s) without a controller end for good: bare; 2 stay(s), of DaemonSets or static"
    ]


def test_a_shared_claim_keeps_its_devices_until_its_last_pod_goes() -> None:
    shared = claim("shared", GPU)
    given = in_use(*WORLD, shared, user("a", claim_name="shared"), user("b", claim_name="shared"))
    assert len(given.raw("ResourceClaim")["default/shared"]["status"]["reservedFor"]) == 2
    given.raw("Pod")["default/b"]["spec"]["nodeName"] = "elsewhere"

    Supposing(given).drain("n1")
    one = given.raw("ResourceClaim")["default/shared"]["status"]
    assert [found["name"] for found in one["reservedFor"]] == ["b"]
    assert "allocation" in one

    given.raw("Pod")["default/b"]["spec"]["nodeName"] = "n1"
    Supposing(given).drain("n1")
    assert given.raw("ResourceClaim")["default/shared"]["status"] == {}


# --- devices and claims


def test_a_device_that_is_gone_is_given_to_nobody_and_stays_with_who_has_it() -> None:
    given = in_use(*WORLD, user("a", of="t"))
    given.take(user("b", of="t"))
    supposing = Supposing(given)

    supposing.remove(f"{DRIVER}/n1/gpu-1")
    supposing.remove(f"{DRIVER}/n1/gpu-0")

    assert outcome(simulate(given)) == {"b": "never"}
    assert supposing.sentences == [
        "device gpu.test/n1/gpu-1 is gone",
        "device gpu.test/n1/gpu-0 is gone; default/a-c-00000 goes on holding it",
    ]


def test_a_taint_keeps_off_who_does_not_tolerate_it() -> None:
    given = in_use(*WORLD)
    tolerant = request("gpu", "gpu", tolerations=[{"key": "hot", "operator": "Exists"}])
    for obj in (template("cool", tolerant), user("p", of="t"), user("q", of="cool"), user("r", of="t")):
        given.take(obj)

    Supposing(given).taint(f"{DRIVER}/n1/gpu-0=hot=yes:NoSchedule")

    got = {
        one.name: [str(found.device_id) for found in allocated.devices.results]
        for one in simulate(given).outcomes
        for allocated in [one.claims[0].status.allocation]
        if allocated is not None
    }
    assert got == {"p": ["gpu.test/n1/gpu-1"], "q": ["gpu.test/n1/gpu-0"]}


def test_a_taint_that_evicts_makes_pods_anew_and_who_tolerates_it_stays() -> None:
    forever = request("gpu", "gpu", tolerations=[{"key": "hot", "operator": "Exists", "effect": "NoExecute"}])
    given = in_use(*WORLD, template("cool", forever), owned(user("a", of="t")), owned(user("b", of="cool")))
    supposing = Supposing(given)

    supposing.taint(f"{DRIVER}/n1/*=hot:NoExecute")

    assert outcome(simulate(given)) == {"a": "not now"}
    assert supposing.sentences == ["gpu.test/n1/* has the taint hot:NoExecute; 1 pod(s) are made anew: a"]


def test_a_claim_that_is_freed_lets_its_pods_end_and_others_have_its_devices() -> None:
    given = in_use(*WORLD, claim("mine", request("gpu", "gpu", count=2)), user("a", claim_name="mine"))
    given.take(user("waits", of="t"))
    supposing = Supposing(given)

    supposing.free("mine")

    assert outcome(simulate(given)) == {"waits": "n1"}
    (sentence,) = supposing.sentences
    assert sentence == (
        "ResourceClaim default/mine is released: gpu.test/n1/gpu-0, gpu.test/n1/gpu-1 come(s) free; "
        "the pod(s) that use it are gone: a"
    )


def test_a_claim_that_others_wait_for_is_there_for_them_after_it_was_freed() -> None:
    given = in_use(*WORLD, claim("mine", GPU), user("a", claim_name="mine"))
    given.take(user("next", claim_name="mine"))

    Supposing(given).free("default/mine")

    assert outcome(simulate(given)) == {"next": "n1"}


# --- what cannot be supposed


@pytest.mark.parametrize(
    ("verb", "text", "words"),
    [
        ("drain", "n2", "--drain n2: there is no node of that name; there are n1"),
        ("drain", "gpu-node-I", "--drain gpu-node-I: there is no node of that name"),
        ("remove", "gpu.test/n1", "write the device as driver/pool/device"),
        (
            "remove",
            "gpu.test/n1/gpu-7",
            "no ResourceSlice has device gpu.test/n1/gpu-7; there are gpu.test/n1/gpu-0",
        ),
        ("taint", "gpu.test/n1/gpu-0", "write the taint as key[=value]:effect"),
        ("taint", "gpu.test/n1/gpu-0=a:NoSuch", "NoSchedule, NoExecute or None"),
        ("taint", "gpu.test/n1/gpu-7=a:NoSchedule", "no ResourceSlice has device"),
        ("free", "none", "--free none: there is no ResourceClaim default/none"),
        ("free", "idle", "ResourceClaim default/idle holds no devices: there is nothing to free"),
    ],
)
def test_what_cannot_be_supposed_names_the_object_and_the_remedy(verb: str, text: str, words: str) -> None:
    given = in_use(*WORLD)
    given.take(claim("idle", GPU))
    supposing = Supposing(given)
    before = {
        kind: dict(given.raw(kind)) for kind in ("Node", "ResourceSlice", "ResourceClaim", "DeviceTaintRule")
    }

    with pytest.raises(InvalidInput) as failed:
        getattr(supposing, verb)(text)

    assert words in str(failed.value)
    assert supposing.sentences == []
    assert {kind: dict(given.raw(kind)) for kind in before} == before


def test_taints_where_they_are_off_are_no_supposition() -> None:
    off: dict[str, Any] = {name: getattr(DEFAULT_1_37, name) for name in Features.__struct_fields__}
    given = Given(features=Features(**{**off, "device_taints": False}))
    for obj in WORLD:
        given.take(obj)

    with pytest.raises(InvalidInput, match="device taints are off"):
        Supposing(given).taint(f"{DRIVER}/n1/gpu-0=a:NoSchedule")
