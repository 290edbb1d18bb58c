"""Positions that are gone: 410 of lists and watches, and how a client goes on; bookmarks that keep a position fresh."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.contract.client import CLAIM, CONFIG, IDLE, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj

GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


async def test_continue_token_expires_with_410_and_a_token_to_go_on_with(api: Client) -> None:
    """Both servers compact their history every few seconds here; a client lists again, or goes on without consistency."""
    for name in ("a", "b", "c"):
        (await api.create(CONFIG, config(name, labels={"mine": ""}))).ok()
    first = (await api.get(CONFIG, limit="1", labelSelector="mine")).ok()
    token = first.meta["continue"]
    async with asyncio.timeout(40):
        while True:
            (await api.merge(f"{CONFIG}/a", {"data": {"now": str(asyncio.get_running_loop().time())}})).ok()
            answer = await api.get(CONFIG, limit="1", labelSelector="mine", **{"continue": token})
            if answer.code != 200:
                break
            await asyncio.sleep(0.1)
    assert (answer.code, answer.reason, answer.body["message"]) == (410, "Expired", GONE)
    onward = answer.body["metadata"]["continue"]
    rest = (await api.get(CONFIG, labelSelector="mine", **{"continue": onward})).ok()
    assert [item["metadata"]["name"] for item in rest.body["items"]] == ["b", "c"]


async def test_watch_from_a_version_of_the_future_hears_nothing(api: Client) -> None:
    """A position of another server (or of a later state of this one) gives neither events nor an error: only time tells."""
    watch = await api.watch(CONFIG, resourceVersion="99999999", timeoutSeconds="2", labelSelector="mine")
    (await api.create(CONFIG, config(labels={"mine": ""}))).ok()
    assert await watch.rest() == []


async def test_watch_resumes_from_a_bookmark_without_loss(api: Client) -> None:
    version = (await api.get(CONFIG)).version
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": IDLE, "labelSelector": "mine"}
    watch = await api.watch(CONFIG, resourceVersion=version, **query)
    (await api.create(CONFIG, config("unselected"))).ok()
    bookmarks = [event for event in await watch.rest() if event["type"] == "BOOKMARK"]
    (await api.create(CONFIG, config("later", labels={"mine": ""}))).ok()
    position = bookmarks[-1]["object"]["metadata"]["resourceVersion"]
    resumed = await api.watch(CONFIG, resourceVersion=position, labelSelector="mine")
    event = await resumed.next()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "later")


async def test_bookmark_has_kind_and_version_and_is_no_object(api: Client) -> None:
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": IDLE, "labelSelector": "mine"}
    watch = await api.watch(CLAIM, resourceVersion=(await api.get(CLAIM)).version, **query)
    (await api.create(CLAIM, claim())).ok()
    bookmark = (await watch.rest())[-1]
    assert bookmark["type"] == "BOOKMARK"
    found = bookmark["object"]
    assert (found["kind"], found["apiVersion"]) == ("ResourceClaim", "resource.k8s.io/v1")
    assert int(found["metadata"]["resourceVersion"]) > 0
    assert not {"name", "namespace", "uid"} & found["metadata"].keys()


async def test_watch_without_bookmarks_gets_none(api: Client) -> None:
    watch = await api.watch(
        CONFIG, resourceVersion=(await api.get(CONFIG)).version, timeoutSeconds=IDLE, labelSelector="mine"
    )
    assert await watch.rest() == []


async def test_initial_events_of_nothing_are_just_the_bookmark(api: Client) -> None:
    watch = await api.watch(
        CONFIG,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        labelSelector="mine",
    )
    event = await watch.next()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > 0


async def test_initial_events_end_at_a_position_that_a_list_has_seen(api: Client) -> None:
    """Client-go's first watch: all that a list at that moment shows comes before the mark."""
    (await api.create(CONFIG, config(labels={"mine": ""}))).ok()
    version = (await api.get(CONFIG)).version
    watch = await api.watch(
        CONFIG,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        resourceVersion=version,
        allowWatchBookmarks="true",
        labelSelector="mine",
    )
    assert (await watch.next())["type"] == "ADDED"
    assert int((await watch.next())["object"]["metadata"]["resourceVersion"]) >= int(version)


async def test_initial_events_without_bookmarks_have_no_mark(api: Client) -> None:
    (await api.create(CONFIG, config(labels={"mine": ""}))).ok()
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "timeoutSeconds": "1"}
    watch = await api.watch(CONFIG, **query, labelSelector="mine")
    assert [event["type"] for event in await watch.rest()] == ["ADDED"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Sometimes", "resourceVersion": "1"},
            'resourceVersionMatch: Unsupported value: "Sometimes": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
    ],
)
async def test_version_match_of_a_list_is_checked(api: Client, query: dict[str, str], said: str) -> None:
    refused = await api.get(CONFIG, **query)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.body["message"] == f'ListOptions.meta.k8s.io "" is invalid: {said}'


async def test_continue_with_a_version_is_refused(api: Client) -> None:
    for name in ("a", "b"):
        (await api.create(CONFIG, config(name))).ok()
    token = (await api.get(CONFIG, limit="1")).meta["continue"]
    refused = await api.get(CONFIG, limit="1", resourceVersion="5", **{"continue": token})
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.body["message"] == "specifying resource version is not allowed when using continue"


async def test_list_from_the_cache_is_not_older_than_asked(api: Client) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    found = (await api.get(CLAIM, resourceVersion=made.version, resourceVersionMatch="NotOlderThan")).ok()
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["claim"]
    assert int(found.version) >= int(made.version)


async def test_last_page_has_no_token_and_nothing_remains(api: Client) -> None:
    for name in ("a", "b", "c"):
        (await api.create(CLAIM, claim(name))).ok()
    first = (await api.get(CLAIM, limit="2")).ok()
    assert first.meta["remainingItemCount"] == 1
    last = (await api.get(CLAIM, limit="2", **{"continue": first.meta["continue"]})).ok()
    assert [item["metadata"]["name"] for item in last.body["items"]] == ["c"]
    assert "continue" not in last.meta
    assert "remainingItemCount" not in last.meta


async def test_selected_pages_do_not_count_what_remains(api: Client) -> None:
    for name in ("a", "b", "c"):
        (await api.create(CLAIM, claim(name, labels={"x": ""}))).ok()
    first = (await api.get(CLAIM, limit="2", labelSelector="x")).ok()
    assert first.meta["continue"]
    assert "remainingItemCount" not in first.meta


async def test_limit_that_is_no_number_is_a_bad_request(api: Client) -> None:
    refused = await api.get(CLAIM, limit="many")
    assert (refused.code, refused.reason) == (400, "BadRequest")


async def test_items_of_a_list_say_no_kind(api: Client) -> None:
    """Unlike events of a watch: a decoder must know the kind of a list's items from the list."""
    (await api.create(CLAIM, claim())).ok()
    (item,) = (await api.get(CLAIM)).body["items"]
    assert "kind" not in item
    watch = await api.watch(CLAIM)
    event: Obj = await watch.next()
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("ResourceClaim", "resource.k8s.io/v1")


async def test_two_watches_of_one_kind_both_see_everything(api: Client) -> None:
    version = (await api.get(POD)).version
    watches = [await api.watch(POD, resourceVersion=version) for _ in range(2)]
    (await api.create(POD, pod())).ok()
    (await api.merge(f"{POD}/p", {"metadata": {"labels": {"a": "b"}}})).ok()
    seen = [[(await watch.next())["type"] for _ in range(2)] for watch in watches]
    assert seen == [["ADDED", "MODIFIED"]] * 2


async def test_events_come_in_the_order_of_their_versions(api: Client) -> None:
    version = (await api.get(CONFIG)).version
    watch = await api.watch(CONFIG, resourceVersion=version, labelSelector="mine")
    await asyncio.gather(*(api.create(CONFIG, config(f"c{n}", labels={"mine": ""})) for n in range(20)))
    versions = [int((await watch.next())["object"]["metadata"]["resourceVersion"]) for _ in range(20)]
    assert versions == sorted(versions)
