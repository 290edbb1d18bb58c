"""Events: one for the same words, bounded in every way, never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from dra_operator.kube import Api, EventWriter, Reference, Writer
from dra_operator.kube.eventlog import Clock, EventLog, Record
from dra_operator.model import ObjectMeta

from .scripted import Hands, Reply, Scripted, status

if TYPE_CHECKING:
    from .conftest import Start

EVENTS = "/api/v1/namespaces/ns/events"
POD = Reference.to("Pod", ObjectMeta(name="p", namespace="ns", uid="u1", resource_version="7"))


@pytest.fixture
def events(api: Api, hands: Hands) -> EventWriter:
    return EventWriter(Writer(api, timing=hands.timing()), "host-1", hands.timing())


def accept(server: Scripted, count: int = 1, path: str = EVENTS) -> None:
    server.on("POST", path, *[Reply({}, 201)] * count)


async def test_event_as_kubectl_describe_shows_it(server: Scripted, events: EventWriter) -> None:
    accept(server)
    events.emit(POD, "Warning", "Unallocatable", "no free device; wait")
    await events.flush()

    body = server.seen[0].body
    name = body["metadata"].pop("name")
    assert name.startswith("p.")
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "p",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "Unallocatable",
        "message": "no free device; wait",
        "source": {"component": "dra-operator"},
        "reportingComponent": "dra-operator",
        "reportingInstance": "host-1",
        "firstTimestamp": "2026-11-01T12:16:40Z",
        "lastTimestamp": "2026-11-01T12:16:40Z",
        "count": 1,
    }


async def test_events_of_cluster_scoped_objects_are_in_default(server: Scripted, events: EventWriter) -> None:
    path = "/api/v1/namespaces/default/events"
    accept(server, 1, path)
    events.emit(Reference("AllocationPolicy", "", "gpus", "u9"), "Normal", "Settled", "owned")
    await events.flush()

    assert server.seen[0].body["involvedObject"]["apiVersion"] == "dra-operator.io/v1alpha1"


async def test_same_words_again_raise_the_count_but_not_at_once(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    accept(server)
    for _ in range(5):
        events.emit(POD, "Warning", "Unallocatable", "no free device")
        await events.flush()
    hands.at += 300
    created = server.seen[0].body["metadata"]["name"]
    server.on("PATCH", f"{EVENTS}/{created}", Reply({}))
    events.emit(POD, "Warning", "Unallocatable", "no free device")
    await events.flush()

    assert [seen.method for seen in server.seen] == ["POST", "PATCH"]
    assert server.seen[1].body == {"count": 6, "lastTimestamp": "2026-11-01T12:21:40Z"}


async def test_other_words_for_the_same_reason_take_the_place_of_the_old_ones(
    server: Scripted, events: EventWriter
) -> None:
    """What is no longer true is not read beside what is."""
    accept(server)
    events.emit(POD, "Warning", "InvalidClaim", "33 devices are too many")
    await events.flush()
    created = server.seen[0].body["metadata"]["name"]
    server.on("PATCH", f"{EVENTS}/{created}", Reply({}))
    events.emit(POD, "Warning", "InvalidClaim", "the constraint is empty")
    await events.flush()

    assert server.seen[1].body == {
        "count": 1,
        "message": "the constraint is empty",
        "firstTimestamp": "2026-11-01T12:16:40Z",
        "lastTimestamp": "2026-11-01T12:16:40Z",
    }


@pytest.mark.parametrize("said", [["x"], ["x", "y"]], ids=["first write", "later write"])
async def test_words_that_come_while_others_are_being_written_are_written_next(
    server: Scripted, events: EventWriter, said: list[str]
) -> None:
    """Also if they are those of the time before: the server must not be left with words between."""
    accept(server)
    for message in said[:-1]:
        events.emit(POD, "Warning", "AllocationFailed", message)
        await events.flush()
    record = Record(POD, "Warning", "AllocationFailed")
    server.on("PATCH", f"{EVENTS}/{record.name}", *[Reply({})] * 2)
    events.emit(POD, "Warning", "AllocationFailed", said[-1])
    writing = asyncio.create_task(events.flush())
    await server.until("PATCH" if said[1:] else "POST", 1)
    last = "x" if said[1:] else "z"
    events.emit(POD, "Warning", "AllocationFailed", last)
    await writing

    assert [seen.body["message"] for seen in server.seen] == [*said, last]


async def test_other_figures_are_written_a_little_later_with_the_count(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    accept(server)
    for number in range(3):
        events.emit(POD, "Warning", "Unallocatable", f"{number} devices are free")
        await events.flush()
    created = server.seen[0].body["metadata"]["name"]
    server.on("PATCH", f"{EVENTS}/{created}", Reply({}))
    before = len(server.seen)
    hands.at += 30
    await events.flush()

    assert before == 1
    assert (server.seen[1].body["message"], server.seen[1].body["count"]) == ("2 devices are free", 3)


async def test_another_operator_goes_on_with_the_event_that_it_finds(
    server: Scripted, api: Api, hands: Hands
) -> None:
    """After a restart: one event, whose count goes on."""
    there = {"message": "no free device", "count": 7, "firstTimestamp": "2026-11-01T11:00:00Z"}
    server.on("POST", EVENTS, Reply(status(409, "AlreadyExists", "exists"), 409))
    events = EventWriter(Writer(api, timing=hands.timing()), "host-2", hands.timing())
    events.emit(POD, "Warning", "Unallocatable", "no free device")
    name = Record(POD, "Warning", "Unallocatable").name
    server.on("PATCH", f"{EVENTS}/{name}", Reply(there), Reply({}))
    await events.flush()

    assert [seen.method for seen in server.seen] == ["POST", "PATCH", "PATCH"]
    assert server.seen[0].body["metadata"]["name"] == name
    assert server.seen[2].body == {"count": 8, "lastTimestamp": "2026-11-01T12:16:40Z"}


async def test_what_is_over_before_it_was_written_is_never_written(
    server: Scripted, events: EventWriter
) -> None:
    events.emit(POD, "Warning", "Unallocatable", "no free device")

    assert not events.over(POD)

    await events.flush()

    assert server.seen == []


async def test_good_news_are_worth_an_event_only_after_a_warning_and_only_once(
    server: Scripted, events: EventWriter
) -> None:
    accept(server, 2)
    events.emit(POD, "Normal", "OtherGates", "waits for a gate")
    await events.flush()
    after_normal = events.over(POD)
    events.emit(POD, "Warning", "Unallocatable", "no free device")
    await events.flush()

    assert (after_normal, events.over(POD), events.over(POD)) == (False, True, False)


async def test_what_was_over_and_is_so_again_is_read_after_the_good_news(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    accept(server, 2)
    events.emit(POD, "Warning", "Unallocatable", "no free device")
    await events.flush()
    hands.at += 60
    assert events.over(POD)
    events.emit(POD, "Normal", "Mended", "all is well")
    await events.flush()
    server.on("PATCH", f"{EVENTS}/{server.seen[0].body['metadata']['name']}", Reply({}))
    hands.at += 60

    events.emit(POD, "Warning", "Unallocatable", "no free device")
    await events.flush()

    assert [seen.method for seen in server.seen] == ["POST", "POST", "PATCH"]
    assert server.seen[2].body["lastTimestamp"] > server.seen[1].body["lastTimestamp"]


def test_the_same_words_about_ten_thousand_pods_that_wait_are_no_news() -> None:
    log, now = EventLog(), Clock(1.0, datetime(2026, 11, 1, tzinfo=UTC))
    words = "Unallocatable", "no free device"
    pods = [Reference("Pod", "ns", f"p{number}", f"u{number}") for number in range(10_000)]

    assert {log.say(about, "Warning", words, now).wait for about in pods} == {0.0}
    assert {log.say(about, "Warning", words, now).wait for about in pods} == {None}


async def test_event_that_the_server_has_forgotten_is_created_anew(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    accept(server, 2)
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.flush()
    hands.at += 4000
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.flush()

    assert [seen.method for seen in server.seen] == ["POST", "PATCH", "POST"]
    assert server.seen[2].body["count"] == 2


async def test_failure_is_counted_and_the_next_one_tries_again(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    server.on("POST", EVENTS, Reply(status(403, "Forbidden", "events is forbidden"), 403), Reply({}, 201))
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.flush()
    hands.at += 30
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.flush()

    assert +events.lost == {"failed": 1}
    assert [seen.method for seen in server.seen] == ["POST", "POST"]


async def test_server_that_does_not_answer_is_asked_a_few_times(
    server: Scripted, events: EventWriter
) -> None:
    """The second attempt finds that the first one got through."""
    starting = Reply(status(503, "ServiceUnavailable", "starting"), 503)
    server.on("POST", EVENTS, starting, Reply(status(409, "AlreadyExists", "exists"), 409), *[starting] * 4)
    server.on("PATCH", f"{EVENTS}/{Record(POD, 'Normal', 'Allocated').name}", Reply({}), Reply({}))
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.flush()
    after_one = dict(+events.lost)
    events.emit(POD, "Normal", "Released", "gpu-1")
    await events.flush()

    assert [seen.method for seen in server.seen] == [*["POST"] * 2, *["PATCH"] * 2, *["POST"] * 4]
    assert (after_one, +events.lost) == ({}, {"failed": 1})


async def test_changing_words_do_not_become_a_flood(
    server: Scripted, events: EventWriter, hands: Hands
) -> None:
    """So many at once, then one a minute, and that with the newest words."""
    accept(server)
    server.on("PATCH", f"{EVENTS}/{Record(POD, 'Warning', 'Unallocatable').name}", *[Reply({})] * 50)
    for number in range(40):
        events.emit(POD, "Warning", "Unallocatable", "x" * (number + 1))
        await events.flush()
    flood = len(server.seen)
    for _ in range(3):
        hands.at += 60
        await events.flush()

    assert flood == 12
    assert len(server.seen) == 13
    assert server.seen[-1].body["message"] == "x" * 40
    assert +events.lost == {"spam": 1}


async def test_background_task_writes_and_can_be_waited_for(
    server: Scripted, events: EventWriter, start: Start
) -> None:
    accept(server, 2)
    start(events.run())
    events.emit(POD, "Normal", "Allocated", "gpu-0")
    await events.drain()
    events.emit(POD, "Normal", "Released", "placed")
    await events.drain()

    assert [seen.body["reason"] for seen in server.seen] == ["Allocated", "Released"]


async def test_endless_messages_are_cut(server: Scripted, events: EventWriter) -> None:
    accept(server)
    events.emit(POD, "Normal", "Allocated", "x" * 5000)
    await events.flush()

    assert len(server.seen[0].body["message"]) == 1024


async def test_only_a_refusal_is_worth_a_line_and_only_once(
    server: Scripted, events: EventWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage is told by the feeds, and a namespace that goes takes no events."""
    caplog.set_level(logging.INFO, "dra_operator")
    going = "unable to create new content in namespace ns because it is being terminated"
    answers = [
        *[Reply(status(503, "ServiceUnavailable", "starting"), 503)] * 4,
        Reply(status(403, "Forbidden", going), 403),
        Reply(status(403, "Forbidden", "no right"), 403),
        Reply(status(403, "Forbidden", "no right, either"), 403),
    ]
    server.on("POST", EVENTS, *answers)
    for reason in ("Allocated", "Released", "Settling", "NotGated"):
        events.emit(POD, "Normal", reason, "words")
        await events.flush()

    assert +events.lost == {"failed": 4}
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", "event Settling on Pod p not written: no right")
    ]
