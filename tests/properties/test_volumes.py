"""Volumes and the room of drivers, on random clusters that change: what is found by shelves against a look at everything.

The reference goes through all volumes and figures for each node, in the words of kube-scheduler's documentation.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.cluster import Cluster, selector_of
from dra_operator.model import (
    CSIDriver,
    CSIStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    from_object,
)
from dra_operator.placement.volumematch import Stock, has_room, match, reaches

Obj = dict[str, Any]

CLASSES = ("local", "local", "disks")
NODES = tuple(
    from_object(Node, {"metadata": {"name": name, "labels": labels}})
    for name, labels in (
        ("n1", {"zone": "a", "host": "n1"}),
        ("n2", {"zone": "b", "host": "n2"}),
        ("n3", {"zone": "b"}),
        ("n4", {}),
    )
)
CLAIMS = (("one", "1Gi"), ("two", "2Gi"))

needs = st.one_of(
    st.builds(
        lambda operator, values: {"key": "zone", "operator": operator, "values": values},
        st.sampled_from(("In", "In", "NotIn")),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        lambda name: {"key": "host", "operator": "In", "values": [name]}, st.sampled_from(("n1", "n2"))
    ),
    st.just({"key": "host", "operator": "Exists"}),
)
terms = st.lists(
    st.builds(lambda found: {"matchExpressions": found}, st.lists(needs, max_size=2)), min_size=1, max_size=2
)
references = st.sampled_from(
    (
        {"namespace": "ns", "name": "one"},
        {"namespace": "ns", "name": "one", "uid": "another"},
        {"namespace": "ns", "name": "two", "uid": "uid-two"},
        {"namespace": "elsewhere", "name": "one"},
    )
)
topologies = st.one_of(
    st.none(),
    st.just({}),
    st.builds(lambda zone: {"matchLabels": {"zone": zone}}, st.sampled_from("abc")),
    st.builds(lambda need: {"matchExpressions": [need]}, needs),
)
volumes = st.builds(
    lambda class_, size, phase, affinity, reference: {
        "spec": {
            "storageClassName": class_,
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": affinity}}} if affinity else {}),
            **({"claimRef": reference} if reference else {}),
        },
        "status": {"phase": phase},
    },
    st.sampled_from(CLASSES),
    st.sampled_from(("1Gi", "1Gi", "2Gi", "3Gi")),
    st.sampled_from(("Available", "Available", "Available", "Bound")),
    st.one_of(st.none(), terms, terms),
    st.one_of(st.none(), st.none(), references),
)
figures = st.builds(
    lambda class_, size, topology: {
        "storageClassName": class_,
        "capacity": size,
        **({} if topology is None else {"nodeTopology": topology}),
    },
    st.sampled_from(CLASSES),
    st.sampled_from(("1Gi", "2Gi")),
    topologies,
)
changes = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", "c", "d")), st.one_of(st.none(), volumes), st.one_of(st.none(), figures)
    ),
    max_size=12,
)


def wanted(name: str, size: str) -> PersistentVolumeClaim:
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
    body = {**spec, "resources": {"requests": {"storage": size}}}
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return from_object(PersistentVolumeClaim, {"metadata": metadata, "spec": body})


def plainly(
    claims: tuple[PersistentVolumeClaim, ...], node: Node, cluster: Cluster, taken: frozenset[str]
) -> list[str]:
    """Names of what each claim gets, the smallest first; empty for none."""
    names: list[str] = []
    for claim in claims:
        gone = taken | set(names)
        fits = []
        for _, volume in sorted(cluster.volumes.items()):
            reference = volume.spec.claim_ref
            mine = reference is None or (
                (reference.namespace, reference.name) == ("ns", claim.metadata.name)
                and reference.uid in {"", claim.metadata.uid}
            )
            if (
                volume.class_name == "local"
                and volume.size >= claim.size
                and mine
                and volume.name not in gone
            ):
                fits.append(volume)
        kept = [volume for volume in fits if volume.spec.claim_ref is not None][:1]
        free = [
            volume for volume in fits if volume.status.phase == "Available" and volume.spec.claim_ref is None
        ]
        reached = [volume for volume in kept or free if reaches(volume, node)]
        names.append(min(reached, key=lambda volume: volume.size).name if reached else "")
    return names


@settings(max_examples=300, deadline=None)
@given(changes, st.sampled_from((frozenset[str](), frozenset({"a"}))))
def test_shelves_hide_nothing(found: list[tuple[str, Obj | None, Obj | None]], taken: frozenset[str]) -> None:
    cluster = Cluster()
    claims = tuple(wanted(name, size) for name, size in CLAIMS)
    driver = {"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": True}}
    class_ = {"metadata": {"name": "local"}, "provisioner": "csi.test"}
    local = from_object(StorageClass, class_)
    cluster.replace("CSIDriver", [from_object(CSIDriver, driver)])
    held: dict[str, PersistentVolume] = {}
    told: dict[str, CSIStorageCapacity] = {}
    for name, volume, figure in found:
        metadata = {"metadata": {"name": name, "uid": name}}
        held.pop(name, None)
        told.pop(name, None)
        if volume is not None:
            held[name] = from_object(PersistentVolume, {**metadata, **volume})
        if figure is not None:
            told[name] = from_object(CSIStorageCapacity, {**metadata, **figure})
        cluster.replace("PersistentVolume", held.values())
        cluster.replace("CSIStorageCapacity", told.values())
        stock = Stock(cluster)
        for node in NODES:
            chosen, _ = match(claims, node, stock, taken)
            assert [item.name for item in chosen] == [
                name for name in plainly(claims, node, cluster, taken) if name
            ]
            for claim in claims:
                rooms = [
                    item
                    for item in told.values()
                    if item.storage_class_name == "local"
                    and item.node_topology is not None
                    and selector_of(item.node_topology).matches(node.metadata.labels)
                ]
                enough = any(item.limit is not None and item.limit >= claim.size for item in rooms)
                assert has_room(claim, local, node, cluster) == enough
