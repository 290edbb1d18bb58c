"""How objects replace each other: watch events, lists and answers to writes overtake each other (architecture section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.cluster import Change, Cluster
from dra_operator.model import KINDS, from_object

from .build import device_class

if TYPE_CHECKING:
    from dra_operator.model import DeviceClass

KIND = "DeviceClass"


class Watched(Cluster):
    """A cluster that keeps what its listeners hear, newest last, as (old version, new version)."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Change] = []
        self.on_change(self.heard.append)

    def told(self) -> list[tuple[str | None, str | None]]:
        """What has been heard since the last call."""
        told = [(_label(change.old), _label(change.new)) for change in self.heard]
        self.heard.clear()
        return told


def _label(obj: object) -> str | None:
    return None if obj is None else f"{obj.metadata.uid}@{obj.metadata.resource_version}"  # type: ignore[attr-defined]  # Value has no metadata


@pytest.fixture
def cluster() -> Watched:
    return Watched()


def test_an_added_object_is_there_and_told(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 5))

    assert dict(cluster.classes) == {"a": device_class("a", 5)}
    assert cluster.told() == [(None, "uid-a@5")]


def test_a_listener_sees_the_new_state_already() -> None:
    cluster = Cluster()
    seen: list[list[str]] = []
    cluster.on_change(lambda _: seen.append(sorted(cluster.classes)))

    cluster.apply("ADDED", device_class("a"))
    cluster.apply("DELETED", device_class("a", 2))

    assert seen == [["a"], []]


@pytest.mark.parametrize("version", [4, 5])
def test_an_older_or_the_same_version_changes_nothing(cluster: Watched, version: int) -> None:
    cluster.apply("ADDED", device_class("a", 5))
    cluster.told()

    cluster.apply("MODIFIED", device_class("a", version))

    assert cluster.classes["a"] == device_class("a", 5)
    assert cluster.told() == []


def test_versions_are_compared_as_integers(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 9))
    cluster.apply("MODIFIED", device_class("a", 10))

    assert cluster.classes["a"] == device_class("a", 10)


def test_without_versions_any_difference_counts(cluster: Watched) -> None:
    plain = from_object(KINDS[KIND], {"metadata": {"name": "a", "uid": "1"}})
    other = from_object(KINDS[KIND], {"metadata": {"name": "a", "uid": "1", "labels": {"x": "y"}}})

    for obj in (plain, plain, other):
        cluster.apply("MODIFIED", obj)

    assert cluster.classes["a"] == other
    assert len(cluster.heard) == 2


def test_a_deleted_object_is_gone_and_told(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 5))
    cluster.apply("DELETED", device_class("a", 6))

    assert dict(cluster.classes) == {}
    assert cluster.told() == [(None, "uid-a@5"), ("uid-a@5", None)]
    assert cluster.is_gone(KIND, "uid-a")


def test_a_deletion_of_an_unknown_uid_leaves_the_namesake(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 5, uid="new"))
    cluster.told()

    cluster.apply("DELETED", device_class("a", 4, uid="old"))

    assert cluster.classes["a"].metadata.uid == "new"
    assert cluster.told() == []


def test_another_uid_under_the_same_name_is_a_deletion_and_an_addition(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 5, uid="old"))
    cluster.told()

    cluster.apply("MODIFIED", device_class("a", 8, uid="new"))

    assert cluster.told() == [("old@5", None), (None, "new@8")]


def test_late_events_of_a_former_uid_leave_its_successor(cluster: Watched) -> None:
    """The answer to our create comes before the watch has told of its predecessor's end."""
    cluster.apply("ADDED", device_class("a", 5, uid="old"))
    cluster.assume(device_class("a", 8, uid="new"))
    cluster.told()

    cluster.apply("MODIFIED", device_class("a", 6, uid="old"))
    cluster.apply("DELETED", device_class("a", 7, uid="old"))

    assert cluster.classes["a"].metadata.uid == "new"
    assert cluster.told() == []


def test_a_former_uid_does_not_come_back_when_its_successor_is_gone(cluster: Watched) -> None:
    """Its deletion was never told; the successor is the proof of it."""
    cluster.apply("ADDED", device_class("a", 5, uid="old"))
    cluster.apply("ADDED", device_class("a", 8, uid="new"))
    cluster.apply("DELETED", device_class("a", 9, uid="new"))

    cluster.apply("MODIFIED", device_class("a", 6, uid="old"))

    assert dict(cluster.classes) == {}


def test_an_assumed_write_stands_until_something_newer_comes(cluster: Watched) -> None:
    """By cp S-3: the answer wins over older echoes; its own echo is no news."""
    cluster.apply("ADDED", device_class("a", 5))
    cluster.assume(device_class("a", 7))
    cluster.told()

    cluster.apply("MODIFIED", device_class("a", 6))
    cluster.apply("MODIFIED", device_class("a", 7))
    assert cluster.told() == []

    cluster.apply("MODIFIED", device_class("a", 8))
    assert cluster.told() == [("uid-a@7", "uid-a@8")]


def test_an_answer_that_comes_after_the_end_of_the_object_does_not_bring_it_back(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 5))
    cluster.apply("DELETED", device_class("a", 9))

    cluster.assume(device_class("a", 7))

    assert dict(cluster.classes) == {}


def test_an_answer_to_a_create_that_comes_after_the_end_does_not_bring_it_back(cluster: Watched) -> None:
    cluster.apply("DELETED", device_class("a", 9))

    cluster.assume(device_class("a", 7))

    assert dict(cluster.classes) == {}


def test_a_list_adds_changes_and_deletes(cluster: Watched) -> None:
    for name in ("gone", "kept", "changed"):
        cluster.apply("ADDED", device_class(name, 1))
    cluster.told()

    listed = [device_class("kept", 1), device_class("changed", 5), device_class("new", 6)]
    cluster.replace(KIND, listed, "7")

    assert {key: obj.metadata.resource_version for key, obj in cluster.classes.items()} == {
        "kept": "1",
        "changed": "5",
        "new": "6",
    }
    assert cluster.told() == [("uid-gone@1", None), ("uid-changed@1", "uid-changed@5"), (None, "uid-new@6")]
    assert cluster.is_synced(KIND)


def test_a_list_does_not_take_away_what_is_newer_than_it(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("changed", 1))
    cluster.assume(device_class("changed", 9))
    cluster.assume(device_class("created", 8))

    cluster.replace(KIND, [device_class("changed", 1)], "7")

    assert sorted(obj.metadata.resource_version for obj in cluster.classes.values()) == ["8", "9"]


def test_a_list_does_not_bring_back_what_was_deleted_after_it(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 1))
    cluster.apply("DELETED", device_class("a", 9))

    cluster.replace(KIND, [device_class("a", 1)], "7")

    assert dict(cluster.classes) == {}


def test_what_a_list_lacked_does_not_come_back_by_a_late_event(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 1))
    cluster.replace(KIND, [], "7")

    cluster.apply("MODIFIED", device_class("a", 5))

    assert dict(cluster.classes) == {}


def test_a_list_with_another_uid_of_that_name_deletes_and_adds(cluster: Watched) -> None:
    cluster.apply("ADDED", device_class("a", 1, uid="old"))
    cluster.told()

    cluster.replace(KIND, [device_class("a", 5, uid="new")], "7")

    assert cluster.told() == [("old@1", None), (None, "new@5")]


def test_kinds_are_synced_one_by_one(cluster: Watched) -> None:
    cluster.mark_synced("Pod")

    assert cluster.is_synced("Pod")
    assert not cluster.is_synced("Pod", "Node")
    assert not cluster.is_synced()
    for kind in KINDS:
        cluster.mark_synced(kind)
    assert cluster.is_synced()


def test_each_kind_is_kept_apart(cluster: Watched) -> None:
    for kind, wanted in KINDS.items():
        obj = from_object(
            wanted, {"metadata": {"name": "same", "uid": f"uid-{kind}", "resourceVersion": "1"}}
        )
        cluster.apply("ADDED", obj)

    views = (
        cluster.volume_claims,
        cluster.volumes,
        cluster.storage_classes,
        cluster.csi_nodes,
        cluster.csi_drivers,
        cluster.claims,
        cluster.pods,
        cluster.pod_groups,
        cluster.namespaces,
        cluster.nodes,
        cluster.classes,
        cluster.templates,
        cluster.taint_rules,
        cluster.policies,
        cluster.published,
    )
    indexed = (tuple(cluster.storage.capacities_near("", {})), cluster.storage.attachments(""))
    found = [view["same"] for view in views] + [items[0] for items in indexed]
    assert sorted(type(item).__name__ for item in found) == sorted(KINDS)


def test_the_mappings_are_read_only(cluster: Watched) -> None:
    classes: object = cluster.classes
    with pytest.raises(TypeError):
        _assign(classes, device_class("a"))


def _assign(mapping: object, value: DeviceClass) -> None:
    mapping["a"] = value  # type: ignore[index]  # that is the point of the test
