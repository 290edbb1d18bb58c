"""Slices as the allocator reads them: by node, by pool, with the taints of rules (alloc I-2, P-9, section 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from dra_operator.cluster import Cluster
from dra_operator.model import DeviceTaint, PoolId

from .build import DRIVER, device_id, slice_, taint_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import ResourceSlice, Value


def cluster_of(*objects: Value) -> Cluster:
    cluster = Cluster()
    for obj in objects:
        cluster.apply("ADDED", obj)
    return cluster


def names(slices: Iterable[ResourceSlice]) -> list[str]:
    return [item.metadata.name for item in slices]


def taints(cluster: Cluster) -> dict[str, list[str]]:
    """Taint keys by `slice/device`, untainted devices left out."""
    found = {
        f"{item.metadata.name}/{device.name}": [taint.key for taint in device.taints]
        for item in cluster.slices.all()
        for device in item.spec.devices
    }
    return {key: keys for key, keys in found.items() if keys}


def test_slices_are_found_by_node_and_pool_and_sorted_by_name() -> None:
    cluster = cluster_of(
        slice_("s3", node="n1"), slice_("s1", node="n1"), slice_("s2", node="n2"), slice_("s4", pool="fabric")
    )

    assert names(cluster.slices.on_node("n1")) == ["s1", "s3"]
    assert names(cluster.slices.on_node("n3")) == []
    assert names(cluster.slices.shared()) == ["s4"]
    assert names(cluster.slices.of_pool(PoolId(DRIVER, "n1"))) == ["s1", "s3"]
    assert cluster.slices.pools() == [PoolId(DRIVER, "fabric"), PoolId(DRIVER, "n1"), PoolId(DRIVER, "n2")]
    assert cluster.slices.node_names() == ["n1", "n2"]


def test_a_slice_that_names_an_empty_node_is_shared() -> None:
    """By alloc I-2: no or empty nodeName."""
    plain = slice_("s", pool="fabric")
    empty = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, node_name=""))

    cluster = cluster_of(empty)

    assert names(cluster.slices.shared()) == ["s"]
    assert names(cluster.slices.on_node("")) == []


def test_a_slice_that_moves_to_another_pool_leaves_the_first() -> None:
    cluster = cluster_of(slice_("s", node="n1", pool="old"))

    cluster.apply("MODIFIED", slice_("s", node="n1", pool="new", version=2))

    assert cluster.slices.pools() == [PoolId(DRIVER, "new")]
    assert names(cluster.slices.of_pool(PoolId(DRIVER, "old"))) == []


def test_a_deleted_slice_is_in_no_index() -> None:
    cluster = cluster_of(slice_("s", node="n1"))

    cluster.apply("DELETED", slice_("s", node="n1", version=2))

    assert (cluster.slices.all(), cluster.slices.pools(), cluster.slices.node_names()) == ((), [], [])


@pytest.mark.parametrize("rule_first", [True, False])
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"driver": DRIVER}, {"s1/a": ["t"], "s1/b": ["t"], "s2/a": ["t"]}),
        ({"pool": "n1"}, {"s1/a": ["t"], "s1/b": ["t"], "s3/a": ["t"]}),
        ({"driver": DRIVER, "pool": "n1"}, {"s1/a": ["t"], "s1/b": ["t"]}),
        ({"driver": DRIVER, "pool": "n1", "device": "b"}, {"s1/b": ["t"]}),
        ({"device": "b"}, {"s1/b": ["t"]}),
        ({"driver": "nic.example.com", "device": "b"}, {}),
        ({}, {"s1/a": ["t"], "s1/b": ["t"], "s2/a": ["t"], "s3/a": ["t"]}),
        (None, {}),
    ],
)
def test_a_rule_taints_what_it_selects(
    selector: dict[str, str] | None, expected: dict[str, list[str]], *, rule_first: bool
) -> None:
    """By alloc U-2, U-3: unset fields match all, an absent selector matches nothing; in whatever order objects come."""
    rule = taint_rule("t", selector)
    slices = (
        slice_("s1", ["a", "b"], node="n1"),
        slice_("s2", ["a"], node="n2"),
        slice_("s3", ["a"], node="n1", driver="nic.example.com"),
    )

    cluster = cluster_of(rule, *slices) if rule_first else cluster_of(*slices, rule)

    assert taints(cluster) == expected


def test_taints_of_rules_come_after_the_drivers_own_and_add_up_by_rule_name() -> None:
    """By alloc U-1, U-4."""
    plain = slice_("s", ["a"], node="n1")
    own = msgspec.structs.replace(plain.spec.devices[0], taints=(DeviceTaint(key="own", effect="NoExecute"),))
    published = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, devices=(own,)))

    cluster = cluster_of(
        taint_rule("r2", {}), published, taint_rule("r1", {"driver": DRIVER}), taint_rule("r3", {})
    )

    assert taints(cluster) == {"s/a": ["own", "r1", "r2", "r3"]}
    assert cluster.published["s"] == published


def test_slices_without_a_rule_are_the_published_objects_themselves() -> None:
    """By alloc U-1: the source is not copied without need."""
    published = slice_("s", node="n1")

    cluster = cluster_of(published, taint_rule("r", {"pool": "elsewhere"}))

    assert cluster.slices.on_node("n1")[0] is published


def test_a_changed_rule_moves_its_taints() -> None:
    """By alloc U-6: the union of old and new matches is looked at anew."""
    cluster = cluster_of(
        slice_("s1", ["a"], node="n1"), slice_("s2", ["a"], node="n2"), taint_rule("r", {"pool": "n1"})
    )

    cluster.apply("MODIFIED", taint_rule("r", {"pool": "n2"}, 2))

    assert taints(cluster) == {"s2/a": ["r"]}


def test_a_rule_that_goes_takes_its_taints_along() -> None:
    cluster = cluster_of(slice_("s1", ["a"], node="n1"), taint_rule("r", {}))

    cluster.apply("DELETED", taint_rule("r", {}, 2))

    assert taints(cluster) == {}
    assert cluster.slices.on_node("n1")[0] is cluster.published["s1"]


def test_a_rule_with_nothing_but_a_new_status_leaves_the_slices_as_they_are() -> None:
    """Readers cache by slice object; an eviction count must not make them forget."""
    cluster = cluster_of(slice_("s1", ["a"], node="n1"), taint_rule("r", {}))
    before = cluster.slices.on_node("n1")[0]

    cluster.apply("MODIFIED", taint_rule("r", {}, 2))

    assert cluster.slices.on_node("n1")[0] is before
    cluster.apply("DELETED", taint_rule("r", {}, 3))
    assert taints(cluster) == {}


def test_old_generations_are_tainted_as_well() -> None:
    """By alloc U-5."""
    cluster = cluster_of(
        slice_("s1", ["a"], node="n1", generation=1),
        slice_("s2", ["a"], node="n1", generation=2),
        taint_rule("r", {"pool": "n1"}),
    )

    assert taints(cluster) == {"s1/a": ["r"], "s2/a": ["r"]}


def test_a_device_is_found_in_its_newest_generation() -> None:
    cluster = cluster_of(
        slice_("s1", ["a", "old"], node="n1", generation=1), slice_("s2", ["a"], node="n1", generation=2)
    )

    found = [cluster.slices.find(device_id(text)) for text in ("n1/a", "n1/old", "n1/none")]

    assert [pair and (pair[0].metadata.name, pair[1].name) for pair in found] == [
        ("s2", "a"),
        ("s1", "old"),
        None,
    ]


def test_a_view_shows_wanted_pools_only() -> None:
    cluster = cluster_of(
        slice_("s1", node="n1", pool="ours"),
        slice_("s2", node="n1", pool="theirs"),
        slice_("s3", pool="fabric"),
        slice_("s4", node="n2", pool="theirs2"),
    )

    view = cluster.slices.view(lambda pool_id: pool_id.pool in {"ours", "fabric"})

    assert names(view.on_node("n1")) == ["s1"]
    assert names(view.shared()) == ["s3"]
    assert names(view.of_pool(PoolId(DRIVER, "ours"))) == ["s1"]
    assert names(view.of_pool(PoolId(DRIVER, "theirs"))) == []
    assert names(view.all()) == ["s1", "s3"]
    assert view.pools() == [PoolId(DRIVER, "fabric"), PoolId(DRIVER, "ours")]
    assert view.node_names() == ["n1"]
