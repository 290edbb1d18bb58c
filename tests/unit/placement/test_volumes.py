"""Volumes choose the node, rule by rule (cp I-27); tests/e2e/test_feasible.py compares all of them with kube-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.explain import explain
from dra_operator.model import KINDS, from_object
from dra_operator.placement import Allocate, Cause, Plan, Refuse, Unplaced, Verdict, Wait
from dra_operator.placement import volumes as words
from dra_operator.placement.checks import NodeChecks
from dra_operator.placement.volumelimits import TOO_MANY

from .build import claim, cluster_of, gpu_class, meta, node, placer, pod, policy, running, slice_

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod, Value

Obj = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}


def of(kind: str, name: str, namespace: str = "", **body: Any) -> Value:
    return from_object(KINDS[kind], {"metadata": meta(name, namespace, **body.pop("metadata", {})), **body})


def storage_class(
    name: str = "disks", mode: str = "WaitForFirstConsumer", by: str = "csi.test", **body: Any
) -> Value:
    return of("StorageClass", name, provisioner=by, volumeBindingMode=mode, **body)


def local_class() -> Value:
    return storage_class("local", by="kubernetes.io/no-provisioner")


def volume_claim(
    name: str = "data", class_: str = "disks", size: str = "1Gi", metadata: Obj | None = None, **spec: Any
) -> Value:
    body = {"storageClassName": class_, "accessModes": ["ReadWriteOnce"], **spec}
    body["resources"] = {"requests": {"storage": size}}
    return of("PersistentVolumeClaim", name, "ns", spec=body, metadata=metadata or {})


def bound_claim(volume: str = "v", name: str = "data", **spec: Any) -> Value:
    return volume_claim(name, metadata=BOUND, volumeName=volume, **spec)


def volume(
    name: str = "v",
    *zones: str,
    size: str = "1Gi",
    labels: Obj | None = None,
    phase: str = "Available",
    **spec: Any,
) -> Value:
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        **spec,
    }
    if zones:
        need = {"key": ZONE, "operator": "In", "values": list(zones)}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [need]}]}}
    return of("PersistentVolume", name, spec=body, status={"phase": phase}, metadata={"labels": labels or {}})


def csi_node(name: str, **limits: int | None) -> Value:
    drivers = [
        {"name": f"{driver}.test", "allocatable": {"count": limit} if limit is not None else None}
        for driver, limit in limits.items()
    ]
    return of("CSINode", name, spec={"drivers": drivers})


def with_claims(*names: str) -> Obj:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}


def two_zones(*objects: Value) -> Cluster:
    """Node `a` in zone a, node `b` in zone b."""
    return cluster_of(node("a", {ZONE: "a"}), node("b", {ZONE: "b"}), *objects)


def told(cluster: Cluster, wanted: Pod | None = None) -> dict[str, str]:
    """Why which node cannot take the pod."""
    checks = NodeChecks(wanted or pod("p", **with_claims("data")), cluster)
    reasons = ((name, checks.reason(found)) for name, found in cluster.nodes.items())
    return {name: reason.text for name, reason in reasons if reason is not None}


# --------------------------------------------------------------------------- bound volumes


def test_a_bound_volume_is_reached_from_the_nodes_of_its_affinity() -> None:
    assert told(two_zones(volume("v", "b"), bound_claim())) == {"a": words.NOT_REACHED}


def test_affinity_of_a_volume_knows_labels_and_no_names() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    odd = volume(nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
    assert told(two_zones(odd, bound_claim())) == dict.fromkeys("ab", words.NOT_REACHED)


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({ZONE: "b"}, "a"),
        ({"failure-domain.beta.kubernetes.io/zone": "b__c"}, "a"),
        ({ZONE: "a__"}, ""),
        ({}, ""),
    ],
)
def test_labels_of_a_volume_name_its_zones(labels: Obj, refused: str) -> None:
    cluster = two_zones(volume(labels=labels), bound_claim(), node("nowhere"))
    assert told(cluster) == dict.fromkeys(refused, words.OTHER_ZONE)


def test_a_claim_that_one_pod_may_use_is_in_use_everywhere() -> None:
    cluster = two_zones(volume(), bound_claim(accessModes=["ReadWriteOncePod"]))
    assert told(cluster) == {}
    cluster.apply("ADDED", running("other", "a", **with_claims("data")))
    assert told(cluster) == dict.fromkeys("ab", words.IN_USE)
    assert told(cluster, cluster.pods["ns/other"]) == {}
    cluster.apply("DELETED", cluster.pods["ns/other"])
    assert told(cluster) == {}


GCE = {"gcePersistentDisk": {"pdName": "d"}}
RBD = {"rbd": {"monitors": ["m1", "m2"], "image": "i"}}
ISCSI = {"iscsi": {"iqn": "q"}}
EBS = {"awsElasticBlockStore": {"volumeID": "d"}}


def reading(disk: Obj) -> Obj:
    return {kind: {**source, "readOnly": True} for kind, source in disk.items()}


@pytest.mark.parametrize(
    ("there", "wanted", "conflict"),
    [
        (GCE, GCE, True),
        (GCE, reading(GCE), True),
        (reading(GCE), reading(GCE), False),
        (GCE, {"gcePersistentDisk": {"pdName": "other"}}, False),
        (EBS, EBS, True),
        (reading(EBS), reading(EBS), True),
        (ISCSI, ISCSI, True),
        (reading(ISCSI), reading(ISCSI), False),
        (RBD, {"rbd": {"monitors": ["m2"], "image": "i"}}, True),
        (RBD, {"rbd": {"monitors": ["m3"], "image": "i"}}, False),
        (RBD, {"rbd": {"monitors": ["m2"], "image": "i", "pool": "other"}}, False),
        (reading(RBD), reading(RBD), False),
        (GCE, EBS, False),
    ],
)
def test_pods_on_a_node_cannot_share_a_disk(there: Obj, wanted: Obj, *, conflict: bool) -> None:
    cluster = two_zones(running("other", "a", volumes=[{"name": "v", **there}]))
    asked = pod("p", volumes=[{"name": "v", **wanted}])
    assert told(cluster, asked) == ({"a": words.DISK_CONFLICT} if conflict else {})


# --------------------------------------------------------------------------- volumes that are still to be had


def test_a_class_provisions_where_its_topologies_say() -> None:
    term = {"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}
    cluster = two_zones(storage_class(allowedTopologies=[term]), volume_claim())
    assert told(cluster) == {"a": words.NO_VOLUME}
    assert told(two_zones(storage_class(), volume_claim())) == {}
    assert told(two_zones(storage_class(allowedTopologies=[{}]), volume_claim())) == dict.fromkeys(
        "ab", words.NO_VOLUME
    )


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ({}, {}),
        ({"size": "2Gi"}, {}),
        ({"labels": {"tier": "gold"}}, {"selector": {"matchLabels": {"tier": "gold"}}}),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}),
        ({"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}, {}),
        (
            {"claimRef": {"namespace": "ns", "name": "data"}, "phase": "Bound"},
            {"accessModes": ["ReadWriteMany"]},
        ),
    ],
)
def test_a_volume_that_was_made_by_hand_serves_the_nodes_that_reach_it(made: Obj, asked: Obj) -> None:
    cluster = two_zones(local_class(), volume("v", "b", **made), volume_claim(class_="local", **asked))
    assert told(cluster) == {"a": words.NO_VOLUME}


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ({"size": "500Mi"}, {}),
        ({"phase": "Released"}, {}),
        ({"storageClassName": "other"}, {}),
        ({"volumeMode": "Block"}, {}),
        ({"volumeAttributesClassName": "fast"}, {}),
        ({"claimRef": {"namespace": "ns", "name": "other"}}, {}),
        ({"claimRef": {"namespace": "ns", "name": "data", "uid": "another"}}, {}),
        ({"labels": {"tier": "tin"}}, {"selector": {"matchLabels": {"tier": "gold"}}}),
        ({}, {"accessModes": ["ReadWriteMany"]}),
    ],
)
def test_a_volume_that_does_not_fit_the_claim_serves_no_node(made: Obj, asked: Obj) -> None:
    cluster = two_zones(local_class(), volume("v", "b", **made), volume_claim(class_="local", **asked))
    assert told(cluster) == dict.fromkeys("ab", words.NO_VOLUME)


def test_a_volume_that_is_kept_for_the_claim_is_the_only_one() -> None:
    kept = volume("kept", "b", claimRef={"namespace": "ns", "name": "data"})
    cluster = two_zones(local_class(), volume("free", "a"), kept, volume_claim(class_="local"))
    assert told(cluster) == {"a": words.NO_VOLUME}


def test_claims_of_one_pod_share_no_volume_and_the_smallest_takes_the_smallest() -> None:
    claims = volume_claim("large", "local", "2Gi"), volume_claim("small", "local", "1Gi")
    asked = pod("p", **with_claims("large", "small"))
    enough = two_zones(local_class(), volume("v1", size="2Gi"), volume("v2"), *claims)
    short = two_zones(local_class(), volume("v1", size="2Gi"), *claims)
    assert told(enough, asked) == {}
    assert told(short, asked) == dict.fromkeys("ab", words.NO_VOLUME)


def test_a_claim_that_a_pod_names_twice_needs_two_volumes() -> None:
    """So kube-scheduler has it: pinned to a node with one, the pod would be stranded."""
    twice = [{"name": name, "persistentVolumeClaim": {"claimName": "data"}} for name in "xy"]
    asked = pod("p", volumes=twice)
    one = two_zones(local_class(), volume("v1", "a"), volume_claim(class_="local"))
    assert told(one, asked) == dict.fromkeys("ab", words.NO_VOLUME)
    one.apply("ADDED", volume("v2", "a"))
    assert told(one, asked) == {"b": words.NO_VOLUME}


def test_a_volume_of_a_pod_on_its_way_is_taken() -> None:
    """kube-scheduler binds it with that pod; until then it looks free, and a second pod would be stranded."""
    claims = volume_claim("data", "local"), volume_claim("first", "local")
    cluster = two_zones(local_class(), volume("v", "b"), *claims, pod("other", **with_claims("first")))
    assert told(cluster) == {"a": words.NO_VOLUME}
    cluster.place("uid-other", "b")
    assert told(cluster) == dict.fromkeys("ab", words.NO_VOLUME)
    cluster.unplace("uid-other")
    assert told(cluster) == {"a": words.NO_VOLUME}


def test_a_claim_of_a_pod_on_its_way_leads_to_the_node_of_that_pod() -> None:
    cluster = two_zones(storage_class(), volume_claim(), pod("other", **with_claims("data")))
    cluster.place("uid-other", "b")
    assert told(cluster) == {"a": words.NO_VOLUME}


def test_a_claim_that_is_being_provisioned_leads_to_its_node() -> None:
    selected = {"annotations": {"volume.kubernetes.io/selected-node": "b"}}
    assert told(two_zones(storage_class(), volume_claim(metadata=selected))) == {"a": words.NO_VOLUME}


@pytest.mark.parametrize(
    ("figure", "refused"),
    [
        ({"capacity": "1Gi"}, "a"),
        ({"capacity": "1023Mi"}, "ab"),
        ({"capacity": "8Gi", "maximumVolumeSize": "1Mi"}, "ab"),
        ({"capacity": "0", "maximumVolumeSize": "1Gi"}, "a"),
        ({"capacity": "8Gi", "storageClassName": "other"}, "ab"),
        ({"capacity": "8Gi", "nodeTopology": None}, "ab"),
        ({}, "ab"),
    ],
)
def test_a_driver_that_asks_for_it_has_room_where_it_says(figure: Obj, refused: str) -> None:
    body = {"storageClassName": "disks", "nodeTopology": {"matchLabels": {ZONE: "b"}}} | figure
    cluster = two_zones(storage_class(), volume_claim(), of("CSIStorageCapacity", "c", "kube-system", **body))
    assert told(cluster) == {}
    cluster.apply("ADDED", of("CSIDriver", "csi.test", spec={"storageCapacity": True}))
    assert told(cluster) == dict.fromkeys(refused, words.NO_SPACE)


# --------------------------------------------------------------------------- attach limits


def csi(handle: str) -> Obj:
    return {"csi": {"driver": "csi.test", "volumeHandle": handle}}


def limited(*more: Value) -> Cluster:
    """Node `a` takes two volumes; claims `one` to `three` are bound."""
    names = ("one", "two", "three")
    volumes = [volume(f"v-{name}", **csi(name)) for name in names]
    claims = [bound_claim(f"v-{name}", name) for name in names]
    return two_zones(csi_node("a", csi=2), csi_node("b", csi=None), *volumes, *claims, *more)


def test_a_node_takes_as_many_volumes_as_its_driver_says() -> None:
    cluster = limited(running("other", "a", **with_claims("one")))
    assert told(cluster, pod("p", **with_claims("two"))) == {}
    assert told(cluster, pod("p", **with_claims("one", "two"))) == {}
    assert told(cluster, pod("p", **with_claims("two", "three"))) == {"a": TOO_MANY}


def test_what_is_attached_counts_once_however_it_is_known() -> None:
    def attachment(name: str) -> Value:
        spec = {"attacher": "csi.test", "nodeName": "a", "source": {"persistentVolumeName": f"v-{name}"}}
        return of("VolumeAttachment", name, spec=spec)

    cluster = limited(running("other", "a", **with_claims("one")), attachment("one"))
    assert told(cluster, pod("p", **with_claims("two"))) == {}
    cluster.apply("ADDED", attachment("three"))
    assert told(cluster, pod("p", **with_claims("two"))) == {"a": TOO_MANY}


def test_a_volume_that_is_attached_and_used_by_no_pod_there_counts_again() -> None:
    spec = {"attacher": "csi.test", "nodeName": "a", "source": {"persistentVolumeName": "v-two"}}
    cluster = limited(running("other", "a", **with_claims("one")), of("VolumeAttachment", "two", spec=spec))
    assert told(cluster, pod("p", **with_claims("two"))) == {"a": TOO_MANY}


def test_a_volume_that_is_still_to_be_made_counts_for_the_provisioner() -> None:
    claims = [volume_claim(f"new-{number}") for number in range(3)]
    cluster = limited(storage_class(), *claims, pod("other", **with_claims("new-0", "new-1")))
    assert told(cluster, pod("p", **with_claims("new-2"))) == {}
    cluster.place("uid-other", "a")
    assert told(cluster, pod("p", **with_claims("new-2"))) == {"a": TOO_MANY}


def test_a_driver_that_asks_not_to_be_missed_has_to_run_there() -> None:
    cluster = two_zones(storage_class(), volume_claim(), csi_node("b", csi=None))
    assert told(cluster) == {}
    cluster.apply("ADDED", of("CSIDriver", "csi.test", spec={"preventPodSchedulingIfMissing": True}))
    assert told(cluster) == {"a": "csi.test CSI driver is not installed on the node"}


# --------------------------------------------------------------------------- the pod as a whole


def gated(*objects: Value) -> Cluster:
    return two_zones(gpu_class(), policy(), claim("c"), slice_("s", ["gpu"], on="a"), *objects)


EPHEMERAL: Obj = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]}


@pytest.mark.parametrize(
    ("objects", "reason", "text"),
    [
        ((), "VolumeClaimMissing", 'spec.volumes[0].persistentVolumeClaim.claimName: persistentvolumeclaim "data" not found'),
        ((bound_claim(),), "VolumeClaimNotReady", 'persistentvolume "v" not found'),
        ((volume_claim(),), "VolumeClaimNotReady", "is of StorageClass disks, which does not exist"),
        ((volume_claim(class_=""),), "VolumeClaimNotReady", "has no StorageClass"),
        (
            (storage_class(mode="Immediate"), volume_claim()),
            "VolumeClaimNotReady",
            "pod has unbound immediate PersistentVolumeClaims: ns/data of StorageClass disks waits for its volume",
        ),
        (
            (storage_class(), volume_claim(volumeName="v")),
            "VolumeClaimNotReady",
            "ns/data is kept for PersistentVolume v and not bound to it",
        ),
        (
            (volume_claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),),
            "VolumeClaimNotReady",
            'persistentvolumeclaim "data" is being deleted',
        ),
    ],
)  # fmt: skip
def test_a_volume_claim_that_is_not_ready_keeps_the_pod_waiting(
    objects: tuple[Value, ...], reason: str, text: str
) -> None:
    found = placer(gated(*objects)).classify(pod("p", "c", **with_claims("data")))
    assert isinstance(found, Wait)
    assert found.reason == reason
    assert text in found.message


def test_a_lost_volume_is_told_at_once() -> None:
    body = {"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}}
    lost = of("PersistentVolumeClaim", "data", "ns", metadata=BOUND, **body)
    found = placer(gated(lost)).classify(pod("p", "c", **with_claims("data")))
    assert isinstance(found, Wait)
    assert (found.reason, found.quiet) == ("VolumeClaimNotReady", False)
    assert 'bound to non-existent persistentvolume "v"' in found.message


def test_the_claim_of_an_ephemeral_volume_is_made_for_the_pod() -> None:
    cluster = gated(storage_class())
    asked = pod("p", "c", **EPHEMERAL)
    first = placer(cluster).classify(asked)
    cluster.apply("ADDED", volume_claim("p-scratch"))
    foreign = placer(cluster).classify(asked)
    cluster.apply("DELETED", cluster.volume_claims["ns/p-scratch"])
    own = volume_claim("p-scratch", metadata={**OWNED, "uid": "second"})
    cluster.apply("ADDED", own)

    assert isinstance(first, Wait)
    assert (first.reason, first.quiet, first.told_after) == ("VolumeClaimMissing", True, 60.0)
    assert (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
        in first.message
    )
    assert isinstance(foreign, Wait)
    assert "was not created for pod ns/p (pod is not owner)" in foreign.message
    assert isinstance(placer(cluster).classify(asked), Allocate)


def test_volumes_and_devices_apart_never_meet() -> None:
    outcome = placer(gated(volume("v", "b"), bound_claim())).decide(pod("p", "c", **with_claims("data")))
    assert isinstance(outcome, Unplaced)
    assert Cause.VOLUMES in {finding.cause for finding in outcome.findings}
    found = explain(outcome)
    assert found.verdict is Verdict.NEVER
    assert f"1 {words.NOT_REACHED}" in found.message


def test_devices_are_taken_where_the_volume_is() -> None:
    cluster = gated(volume("v", "b"), bound_claim(), slice_("s2", ["gpu"], on="b"))
    outcome = placer(cluster).decide(pod("p", "c", **with_claims("data")))
    assert isinstance(outcome, Plan)
    assert outcome.node == "b"


def test_a_pod_that_we_bind_gets_no_volume_bound() -> None:
    cluster = gated(storage_class(), volume_claim())
    spec: Obj = {"schedulerName": "dra-operator", **with_claims("data")}
    ours = pod("p", "c", gates=(), **spec)
    found = placer(cluster).classify(ours)
    assert isinstance(found, Refuse)
    assert found.reason == "VolumeClaimUnbound"
    assert "spec.volumes[0].persistentVolumeClaim.claimName: PersistentVolumeClaim ns/data" in found.message
    assert isinstance(placer(cluster).classify(pod("q", "c", **with_claims("data"))), Allocate)
