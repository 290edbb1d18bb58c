"""Watches: resuming, selections, bookmarks, initial events, 410."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.client import CLAIM, CONFIG, IDLE, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj, Watch

_ONLY = {"labelSelector": "mine"}
"""Not the ConfigMap `kube-root-ca.crt`, which a controller puts into every new namespace."""

_MINE = {"mine": "yes"}


def _shown(event: Obj) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def _take(watch: Watch, count: int) -> list[tuple[str, str]]:
    return [_shown(await watch.next()) for _ in range(count)]


async def test_watch_from_a_list_sees_every_later_change(api: Client) -> None:
    version = (await api.get(CONFIG)).version
    (await api.create(CONFIG, config(labels=_MINE))).ok()
    watch = await api.watch(CONFIG, resourceVersion=version, **_ONLY)
    (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    (await api.delete(f"{CONFIG}/c")).ok()
    assert await _take(watch, 3) == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "c")]


async def test_watch_resumes_after_the_version_that_it_names(api: Client) -> None:
    first = (await api.create(CONFIG, config(labels=_MINE))).ok()
    second = (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    (await api.merge(f"{CONFIG}/c", {"data": {"a": "2"}})).ok()
    watch = await api.watch(CONFIG, resourceVersion=first.version, **_ONLY)
    event = await watch.next()
    assert event["object"]["metadata"]["resourceVersion"] == second.version


async def test_watch_without_a_version_starts_with_what_is_there(api: Client) -> None:
    (await api.create(CONFIG, config(labels=_MINE))).ok()
    for query in ({}, {"resourceVersion": "0"}):
        watch = await api.watch(CONFIG, **query, **_ONLY)
        assert await _take(watch, 1) == [("ADDED", "c")]


async def test_deleted_event_carries_the_last_state_and_a_new_version(api: Client) -> None:
    created = (await api.create(CONFIG, config(data={"a": "1"}, labels=_MINE))).ok()
    watch = await api.watch(CONFIG, resourceVersion=created.version, **_ONLY)
    (await api.delete(f"{CONFIG}/c")).ok()
    event = await watch.next()
    assert _shown(event) == ("DELETED", "c")
    assert event["object"]["data"] == {"a": "1"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(created.version)


async def test_deleting_a_held_object_shows_the_mark_then_the_end(api: Client) -> None:
    created = (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    watch = await api.watch(CLAIM, resourceVersion=created.version)
    (await api.delete(f"{CLAIM}/claim")).ok()
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"finalizers": None}})).ok()
    assert await _take(watch, 2) == [("MODIFIED", "claim"), ("DELETED", "claim")]


async def test_leaving_a_selection_is_a_deletion_and_entering_an_addition(api: Client) -> None:
    created = (await api.create(CONFIG, config(labels=_MINE))).ok()
    watch = await api.watch(CONFIG, resourceVersion=created.version, **_ONLY)
    (await api.merge(f"{CONFIG}/c", {"metadata": {"labels": {"mine": None}}})).ok()
    (await api.merge(f"{CONFIG}/c", {"metadata": {"labels": {"mine": "again"}}})).ok()
    assert await _take(watch, 2) == [("DELETED", "c"), ("ADDED", "c")]


async def test_field_selector_follows_the_field(api: Client) -> None:
    version = (await api.get(POD)).version
    watch = await api.watch(POD, resourceVersion=version, fieldSelector="spec.nodeName=n1")
    (await api.create(POD, pod("p"))).ok()
    bind = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"},
    }
    (await api.create(f"{POD}/p/binding", bind)).ok()
    assert await _take(watch, 1) == [("ADDED", "p")]


async def test_watch_of_one_object_by_name(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    (await api.create(CONFIG, config("other"))).ok()
    watch = await api.watch(CONFIG, resourceVersion=created.version, fieldSelector="metadata.name=c")
    (await api.delete(f"{CONFIG}/c")).ok()
    assert await _take(watch, 1) == [("DELETED", "c")]


async def test_initial_events_end_with_an_annotated_bookmark(api: Client) -> None:
    (await api.create(CONFIG, config(labels=_MINE))).ok()
    watch = await api.watch(
        CONFIG,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        **_ONLY,
    )
    assert await _take(watch, 1) == [("ADDED", "c")]
    bookmark = await watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    (await api.create(CONFIG, config("later", labels=_MINE))).ok()
    assert await _take(watch, 1) == [("ADDED", "later")]


async def test_initial_events_without_a_version_match_are_invalid(api: Client) -> None:
    refused = await api.get(CONFIG, watch="1", sendInitialEvents="true", allowWatchBookmarks="true")
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_idle_watch_ends_at_its_timeout_with_a_fresh_bookmark(api: Client) -> None:
    """The change that is not selected is the newest of its kind; kube-apiserver sends the bookmark two seconds before the end."""
    version = (await api.get(CONFIG)).version
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": IDLE, **_ONLY}
    watch = await api.watch(CONFIG, resourceVersion=version, **query)
    newer = (await api.create(CONFIG, config("unselected"))).ok()
    events = await watch.rest()
    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert int(events[-1]["object"]["metadata"]["resourceVersion"]) >= int(newer.version) > int(version)


async def test_watch_ends_at_its_timeout(api: Client) -> None:
    version = (await api.get(CONFIG)).version
    watch = await api.watch(CONFIG, resourceVersion=version, timeoutSeconds="1", **_ONLY)
    assert await watch.rest() == []


async def test_version_that_is_no_number_is_refused(api: Client) -> None:
    refused = await api.get(CONFIG, watch="1", resourceVersion="abc")
    assert refused.code == 500
    assert 'resourceVersion: Invalid value: "abc"' in refused.body["message"]


async def test_watches_of_other_namespaces_hear_nothing(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    path = "/api/v1/namespaces/kube-system/configmaps"
    watch = await api.watch(path, resourceVersion=created.version, timeoutSeconds="1", labelSelector="mine")
    (await api.create(CONFIG, config("second", labels=_MINE))).ok()
    assert await watch.rest() == []
