"""A stream feed keeps its sink equal to the server, whatever the server does (kopf.md, section 6.3)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from dra_operator.cluster import Change, Cluster
from dra_operator.errors import ApiNotServed, ApiWentBack, InvalidObject
from dra_operator.kube import KINDS, Api, FeedOptions, RawMeta, StreamFeed

from .scripted import Hands, Remembering, Reply, Scripted, Stream, bookmark, line, named, page, pod, status

if TYPE_CHECKING:
    from .conftest import Start

PODS = "/api/v1/pods"
GONE = line("ERROR", status(410, "Expired", "too old resource version"))


class Changes(Remembering):
    """What the model tells its listeners."""

    def note(self, what: str, change: Change) -> None:
        obj = change.new or change.old
        assert obj is not None
        self._note(what, named(obj))


def feed_of(api: Api, sink: Remembering, hands: Hands, **options: object) -> StreamFeed:
    return StreamFeed(api, KINDS["Pod"], sink, FeedOptions(**options), hands.timing())  # type: ignore[arg-type]  # test


async def test_list_then_watch_from_its_version(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5, pod("a", 3), pod("b", 4))))
    server.on("WATCH", PODS, Stream((line("ADDED", pod("c", 6)), line("DELETED", pod("a", 7)))))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    await sink.until(lambda: ("DELETED", "a") in sink.log)

    assert sink.versions() == {"b": "4", "c": "6"}
    assert feed.synced.is_set()
    watch = server.requests("WATCH")[0].query
    assert (watch["resourceVersion"], watch["allowWatchBookmarks"], watch["timeoutSeconds"]) == (
        "5",
        "true",
        "600",
    )


async def test_list_comes_in_pages(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5, pod("a", 3), token="more")), Reply(page(5, pod("b", 4))))
    start(feed_of(api, sink, hands, page=1).run())
    await server.until("WATCH", 1)

    assert sink.log == [("REPLACE", "Pod@5")]
    assert sink.versions() == {"a": "3", "b": "4"}
    assert [seen.query for seen in server.requests("GET")] == [
        {"limit": "1"},
        {"limit": "1", "continue": "more"},
    ]


async def test_list_that_expires_between_pages_starts_over_and_in_the_end_comes_whole(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    expired = Reply(status(410, "Expired", "the provided continue parameter is too old"), 410)
    first = Reply(page(5, pod("a", 3), token="more"))
    server.on("GET", PODS, first, expired, first, expired, Reply(page(9, pod("a", 3), pod("b", 4))))
    start(feed_of(api, sink, hands, page=1).run())
    await server.until("WATCH", 1)

    assert sink.versions() == {"a": "3", "b": "4"}
    assert server.requests("GET")[-1].query == {}


async def test_cut_connection_goes_on_from_the_last_version_without_a_new_list(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    server.on(
        "WATCH",
        PODS,
        Stream((line("ADDED", pod("a", 6)), b'{"type":"ADDED","object":{"metadata":{"na'), then="cut"),
        Stream((line("ADDED", pod("b", 7)),)),
    )
    feed = feed_of(api, sink, hands)
    start(feed.run())
    await sink.until(lambda: ("ADDED", "b") in sink.log)

    assert [seen.query["resourceVersion"] for seen in server.requests("WATCH")] == ["5", "6"]
    assert len(server.requests("GET")) == 1
    assert feed.restarts == {"unavailable": 1}


async def test_bookmark_moves_the_position(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    server.on("WATCH", PODS, Stream((bookmark(50),), then="end"))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    watches = await server.until("WATCH", 2)

    assert [seen.query["resourceVersion"] for seen in watches] == ["5", "50"]
    assert hands.slept == []  # the server only ended a watch that worked
    assert feed.restarts == {"ended": 1}


async def test_event_may_come_in_pieces_and_be_huge(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    whole = line("ADDED", pod("a", 6, nodeName="n" * 1_500_000))
    server.on("GET", PODS, Reply(page(5)))
    server.on("WATCH", PODS, Stream((whole[:100], whole[100:700_000], whole[700_000:])))
    start(feed_of(api, sink, hands).run())
    await sink.until(lambda: ("ADDED", "a") in sink.log)

    assert sink.versions() == {"a": "6"}


async def test_delete_in_a_watch_gap_reaches_the_model(
    server: Scripted, api: Api, hands: Hands, start: Start
) -> None:
    """Kopf never tells of these (kopf.md, section 4); an allocator would leak devices."""
    cluster, changes = Cluster(), Changes()
    cluster.on_change(lambda change: changes.note("DELETED" if change.new is None else "SEEN", change))
    server.on("GET", PODS, Reply(page(5, pod("a", 3), pod("b", 4))), Reply(page(9, pod("b", 4), pod("c", 8))))
    server.on("WATCH", PODS, Stream((GONE,)))

    class Model(Remembering):
        replace = cluster.replace
        apply = cluster.apply

    start(feed_of(api, Model(), hands).run())
    await changes.until(lambda: ("SEEN", "c") in changes.log)

    assert changes.log == [("SEEN", "a"), ("SEEN", "b"), ("DELETED", "a"), ("SEEN", "c")]
    assert set(cluster.pods) == {"ns/b", "ns/c"}


async def test_storm_of_410_is_met_with_growing_pauses_and_survived(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    storm = 8
    server.on("GET", PODS, *[Reply(page(n, pod("a", n))) for n in range(1, storm + 2)])
    server.on("WATCH", PODS, *[Stream((GONE,))] * storm, Stream((line("ADDED", pod("z", 99)),)))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    await sink.until(lambda: ("ADDED", "z") in sink.log)

    assert hands.slept == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert feed.restarts == {"expired": storm}
    assert sink.versions() == {"a": "9", "z": "99"}


async def test_410_as_http_status_lists_again(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    """Kopf exits here (kopf.md, section 4)."""
    server.on("GET", PODS, Reply(page(5)), Reply(page(9)))
    server.on("WATCH", PODS, Reply(status(410, "Expired", "too old"), 410))
    start(feed_of(api, sink, hands).run())
    await server.until("WATCH", 2)

    assert sink.log == [("REPLACE", "Pod@5"), ("REPLACE", "Pod@9")]


async def test_other_errors_in_the_stream_keep_the_position(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    """Kopf exits here, too."""
    server.on("GET", PODS, Reply(page(5)))
    slow = line("ERROR", status(429, "TooManyRequests", "slow down", retryAfterSeconds=7))
    broken = line("ERROR", status(500, "InternalError", "etcdserver: leader changed"))
    server.on("WATCH", PODS, Stream((slow,)), Stream((broken,)), Stream((bookmark(6),)))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    watches = await server.until("WATCH", 3)

    assert [seen.query["resourceVersion"] for seen in watches] == ["5", "5", "5"]
    assert len(server.requests("GET")) == 1
    assert hands.slept == [7 + 0.8, 1.6]


async def test_position_is_given_up_after_failures_in_a_row(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)), Reply(page(9)))
    server.on("WATCH", PODS, *[Reply(status(500, "InternalError"), 500)] * 3)
    start(feed_of(api, sink, hands, relist_after=2).run())
    watches = await server.until("WATCH", 4)

    assert [seen.query["resourceVersion"] for seen in watches] == ["5", "5", "5", "9"]


async def test_throttled_list_waits_as_long_as_the_server_says(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    slow_down = Reply(status(429, "TooManyRequests", "slow down"), 429, {"Retry-After": "11"})
    server.on("GET", PODS, slow_down, Reply(page(5)))
    start(feed_of(api, sink, hands).run())
    await server.until("WATCH", 1)

    assert hands.slept == [11 + 0.8]


async def test_missing_rights_are_asked_for_again_and_again(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    forbidden = Reply(status(403, "Forbidden", "pods is forbidden"), 403)
    server.on("GET", PODS, *[forbidden] * 4, Reply(page(5)))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    await server.until("WATCH", 1)

    assert feed.restarts == {"refused": 4}


async def test_silent_watch_is_dead(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    server.on("WATCH", PODS, Stream((line("ADDED", pod("a", 6)),)), Stream((line("ADDED", pod("b", 7)),)))
    feed = feed_of(api, sink, hands, inactivity=0.05)
    start(feed.run())
    await sink.until(lambda: ("ADDED", "b") in sink.log)

    assert [seen.query["resourceVersion"] for seen in server.requests("WATCH")][:2] == ["5", "6"]


async def test_a_quiet_kind_is_in_no_trouble_once_the_server_has_taken_the_next_watch(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    """Also of a server that sends neither events nor bookmarks: the words of the dead watch are over."""
    server.on("GET", PODS, Reply(page(5)))
    feed = feed_of(api, sink, hands, inactivity=0.5)
    told: list[str] = []
    hands.on_sleep = lambda: told.append(feed.trouble)
    start(feed.run())
    async with asyncio.timeout(60):
        while not told or feed.trouble:  # noqa: ASYNC110 - nobody tells of it; it ends with the next dead watch, in half a second
            await asyncio.sleep(0)

    assert told[0].startswith(f"GET {PODS}: ")
    assert [seen.query["resourceVersion"] for seen in server.requests("WATCH")] == ["5", "5"]


async def test_server_that_ends_watches_at_once_is_not_asked_in_a_hot_loop(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    server.on("WATCH", PODS, *[Stream((), then="end")] * 3)
    start(feed_of(api, sink, hands).run())
    await server.until("WATCH", 4)

    assert hands.slept == [0.8, 1.6, 3.2]
    assert len(server.requests("GET")) == 1


async def test_unreadable_object_is_reported_and_its_last_good_version_stays(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    bad_in_watch = {**pod("a", 6), "spec": {"nodeName": 7}}
    bad_in_list = {**pod("a", 8), "spec": {"nodeName": 7}}
    server.on("GET", PODS, Reply(page(5, pod("a", 3), pod("b", 4))), Reply(page(9, bad_in_list)))
    server.on(
        "WATCH", PODS, Stream((line("MODIFIED", bad_in_watch), GONE)), Stream((line("DELETED", bad_in_list),))
    )
    start(feed_of(api, sink, hands).run())
    await sink.until(lambda: len(sink.log) == 5)

    assert sink.log == [
        ("REPLACE", "Pod@5"),
        ("REJECT", "a"),
        ("REJECT", "a"),
        ("REPLACE", "Pod@9"),
        ("DELETED", "a"),
    ]
    assert sink.objects == {}
    assert sink.rejected[0] == ("a", "Pod: Pod ns/a: spec.nodeName: Expected `str`, got `int`")


async def test_unreadable_line_does_not_end_the_feed(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    server.on("WATCH", PODS, Stream((b"<html>\n",)), Stream((line("ADDED", pod("a", 6)),)))
    start(feed_of(api, sink, hands).run())
    await sink.until(lambda: ("ADDED", "a") in sink.log)

    assert sink.versions() == {"a": "6"}


async def test_age_is_the_time_since_the_server_was_heard(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    server.on("GET", PODS, Reply(page(5)))
    feed = feed_of(api, sink, hands)
    start(feed.run())
    await server.until("WATCH", 1)
    hands.at += 42

    assert feed.age == 42


async def test_the_servers_words_are_kept_until_it_is_heard_again(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    forbidden = Reply(status(403, "Forbidden", "pods is forbidden"), 403)
    server.on("GET", PODS, forbidden, Reply(page(5)))
    feed = feed_of(api, sink, hands)
    told: list[str] = []
    hands.on_sleep = lambda: told.append(feed.trouble)
    start(feed.run())
    await server.until("WATCH", 1)

    assert told == ["pods is forbidden"]
    assert feed.trouble == ""


async def test_a_pause_that_the_server_asked_for_is_no_sign_of_death(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    slow_down = Reply(status(429, "TooManyRequests", "slow down"), 429, {"Retry-After": "3600"})
    server.on("GET", PODS, slow_down, Reply(page(5)))
    feed = feed_of(api, sink, hands)
    left: list[float] = []
    hands.on_sleep = lambda: left.append(feed.alive_at - hands.at)
    start(feed.run())
    await server.until("WATCH", 1)

    assert left == [3600.8]


async def test_each_page_is_a_sign_of_life(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    first = Reply(page(5, pod("a", 3), token="more"))
    server.on("GET", PODS, first)  # the second page is never answered
    feed = feed_of(api, sink, hands, page=1)
    hands.at += 100
    start(feed.run())
    await server.until("GET", 2)

    assert (feed.age, feed.alive_at, feed.synced.is_set()) == (0, hands.at, False)


async def test_restarts_are_told(
    server: Scripted, api: Api, sink: Remembering, hands: Hands, start: Start
) -> None:
    told: list[tuple[str, str]] = []
    server.on("GET", PODS, Reply(page(5)), Reply(page(6)))
    server.on("WATCH", PODS, Stream((GONE,)))
    options = FeedOptions(selector={"fieldSelector": "spec.nodeName="})
    feed = StreamFeed(
        api, KINDS["Pod"], sink, options, hands.timing(), lambda kind, why: told.append((kind, why))
    )
    start(feed.run())
    watches = await server.until("WATCH", 2)

    assert told == [("Pod", "expired")]
    assert {seen.query["fieldSelector"] for seen in watches} == {"spec.nodeName="}


def test_metadata_of_rejected_objects_tells_who_they_are() -> None:
    assert (RawMeta("a", "ns").key, RawMeta("n1").key) == ("ns/a", "n1")
    assert str(InvalidObject("Pod ns/a", "spec", "bad")) == "Pod ns/a: spec: bad"


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and beginning of what was logged above DEBUG."""
    found = [record for record in caplog.records if record.levelno > logging.DEBUG]
    return [(record.levelname, record.getMessage().partition(" (")[0]) for record in found]


async def test_a_watch_that_breaks_or_expires_once_is_no_news(
    server: Scripted,
    api: Api,
    sink: Remembering,
    hands: Hands,
    start: Start,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "dra_operator")
    server.on("GET", PODS, Reply(page(5)), Reply(page(9)))
    broken = line("ERROR", status(500, "InternalError", "etcdserver: leader changed"))
    streams = [
        Stream((bookmark(6), broken)),
        Stream((bookmark(7), GONE)),
        Stream((bookmark(10),), then="end"),
    ]
    server.on("WATCH", PODS, *streams)
    start(feed_of(api, sink, hands).run())
    await server.until("WATCH", 4)

    assert lines(caplog) == []


async def test_an_outage_is_one_line_at_its_beginning_and_one_at_its_end(
    server: Scripted,
    api: Api,
    sink: Remembering,
    hands: Hands,
    start: Start,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "dra_operator")
    down = Reply(status(503, "ServiceUnavailable", "starting"), 503)
    server.on("GET", PODS, Reply(page(5)), *[down] * 4, Reply(page(9)))
    server.on("WATCH", PODS, *[down] * 4, Stream((line("ADDED", pod("a", 10)),)))
    start(feed_of(api, sink, hands, relist_after=3).run())
    await sink.until(lambda: ("ADDED", "a") in sink.log)

    assert lines(caplog) == [
        ("WARNING", "watch of pods: starting"),
        ("INFO", "watch of pods: the server is heard again"),
    ]


async def test_a_refusal_is_told_at_once_and_once(
    server: Scripted,
    api: Api,
    sink: Remembering,
    hands: Hands,
    start: Start,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "dra_operator")
    server.on("GET", PODS, *[Reply(status(403, "Forbidden", "no"), 403)] * 4, Reply(page(5)))
    server.on("WATCH", PODS, Stream((bookmark(6), line("ADDED", pod("a", 7)))))
    start(feed_of(api, sink, hands).run())
    await sink.until(lambda: ("ADDED", "a") in sink.log)

    assert [level for level, _ in lines(caplog)] == ["WARNING", "INFO"]


def served(plural: str) -> Reply:
    return Reply({"resources": [{"name": plural}]})


async def test_a_kind_that_is_served_no_more_ends_the_feed_in_words(
    server: Scripted, api: Api, sink: Remembering, hands: Hands
) -> None:
    """Its last state would stay in the model for ever, and nobody would know."""
    server.on("GET", PODS, Reply(page(5, pod("a", 1))))
    server.on("WATCH", PODS, Reply(status(404, "NotFound", "the server could not find it"), 404))
    server.on("GET", "/api/v1", served("nodes"))
    server.on("GET", "/version", Reply({"gitVersion": "v1.37.2"}))
    with pytest.raises(ApiNotServed, match=r"no longer serves v1 Pod: .* start anew"):
        async with asyncio.timeout(10):
            await StreamFeed(api, KINDS["Pod"], sink, timing=hands.timing()).run()


@pytest.mark.parametrize("discovery", [served("pods"), Reply(status(503, "ServiceUnavailable"), 503)])
async def test_a_kind_that_is_not_found_for_a_moment_is_listed_again(
    server: Scripted, api: Api, sink: Remembering, start: Start, hands: Hands, discovery: Reply
) -> None:
    """A kube-apiserver that starts finds nothing, and says little more."""
    server.on("GET", PODS, Reply(status(404, "NotFound", "not yet"), 404), Reply(page(5, pod("a", 1))))
    server.on("GET", "/api/v1", discovery)
    server.on("GET", "/version", Reply({"gitVersion": "v1.37.2"}))
    start(StreamFeed(api, KINDS["Pod"], sink, timing=hands.timing()).run())
    await sink.until(lambda: "a" in sink.objects)


async def test_a_server_that_was_restored_from_a_backup_is_noticed_by_its_bookmarks_and_ends_the_feed(
    server: Scripted, api: Api, sink: Remembering, hands: Hands
) -> None:
    """Versions of before compare with nothing any more: the model would take new objects for old ones."""
    server.on("GET", PODS, Reply(page(900, pod("a", 850))), Reply(page(120, pod("a", 100))))
    server.on("WATCH", PODS, Stream((bookmark(115),)))
    with pytest.raises(ApiWentBack, match=r"resourceVersion 120, and 900 was seen .* backup\?"):
        async with asyncio.timeout(10):
            await StreamFeed(api, KINDS["Pod"], sink, timing=hands.timing()).run()
    assert sink.versions() == {"a": "850"}


async def test_a_replica_that_is_behind_for_a_moment_costs_a_list(
    server: Scripted, api: Api, sink: Remembering, start: Start, hands: Hands
) -> None:
    server.on("GET", PODS, Reply(page(900, pod("a", 850))), Reply(page(901, pod("a", 901))))
    server.on("WATCH", PODS, Stream((bookmark(899),)))
    start(StreamFeed(api, KINDS["Pod"], sink, timing=hands.timing()).run())
    await sink.until(lambda: sink.versions() == {"a": "901"})
