"""Feeds, writer, events and discovery against the embedded API server: what they add up to."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.errors import ApiAlreadyExists, ApiConflict, ApiNotFound, ApiNotServed, ApiUnavailable
from dra_operator.kube import (
    KINDS,
    STRATEGIC,
    Api,
    EventWriter,
    Reader,
    Reference,
    StreamFeed,
    SyncGuard,
    Timing,
    Writer,
    discover,
    guard,
)
from dra_operator.model import Pod, ResourceClaim
from dra_operator.testing.fakeapi import FakeApi
from dra_operator.testing.fakeapi.faults import Fault, throttled, unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .conftest import Start

SOON = Timing(uniform=lambda low, high: min(high, max(low, 0.01)))
"""Back-off without the wait."""

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
CLAIM_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


class Sink(Cluster):
    """The model; whoever waits for it is woken by its changes."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()
        self.on_change(lambda _: self._news.set())

    def reject(self, kind: str, error: Exception, metadata: object, _raw: bytes = b"", /) -> None:
        raise AssertionError((kind, error, metadata))

    async def until_equal(self, kind: str, wanted: dict[str, str]) -> None:
        async with asyncio.timeout(10):
            while self.versions(kind) != wanted:
                self._news.clear()
                await self._news.wait()

    def versions(self, kind: str) -> dict[str, str]:
        objects: dict[str, Any] = {"Pod": self.pods, "ResourceClaim": self.claims}[kind]  # type: ignore[assignment]  # both are
        return {key: obj.metadata.resource_version for key, obj in objects.items()}


@pytest.fixture
async def fake() -> AsyncIterator[FakeApi]:
    async with FakeApi() as started:
        started.create(CLASS)
        yield started


@pytest.fixture
async def api(fake: FakeApi) -> AsyncIterator[Api]:
    async with Api.at(fake.url) as connected:
        yield connected


@pytest.fixture
def writer(api: Api) -> Writer:
    return Writer(api, timing=SOON)


def pod(name: str) -> dict[str, Any]:
    spec = {"schedulingGates": [{"name": "g"}], "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": spec}


async def claim(writer: Writer, name: str = "c") -> ResourceClaim:
    created = await writer.create(
        "ResourceClaim", "default", {"metadata": {"name": name}, "spec": CLAIM_SPEC}
    )
    assert isinstance(created, ResourceClaim)
    return created


def stored(fake: FakeApi, plural: str, group: str = "") -> dict[str, str]:
    metas = [obj["metadata"] for obj in fake.objects(plural, group)]
    return {f"{meta['namespace']}/{meta['name']}": meta["resourceVersion"] for meta in metas}


async def churn(fake: FakeApi, writer: Writer, dice: random.Random) -> None:
    """Create, change and delete pods while watches end, expire and are refused."""
    alive: dict[str, Pod] = {}
    for number in range(120):
        if alive and dice.random() < 0.4:
            gone = alive.pop(dice.choice(sorted(alive)))
            await writer.delete("Pod", "default", gone.metadata.name, uid=gone.uid)
        else:
            created = await writer.create("Pod", "default", pod(f"p{number}"))
            assert isinstance(created, Pod)
            alive[created.metadata.name] = created
        trouble = dice.randrange(12)
        if trouble == 0:
            fake.end_watches()
        elif trouble == 1:
            fake.compact()
            fake.end_watches()
        elif trouble == 2:
            fake.faults.add(
                Fault(dice.choice([unavailable(), throttled(0)]), frozenset({"watch", "list"}), "pods")
            )


@pytest.mark.parametrize("seed", range(3))
async def test_feed_equals_the_server_after_whatever_happened(
    fake: FakeApi, api: Api, writer: Writer, start: Start, seed: int
) -> None:
    sink = Sink()
    feed = StreamFeed(api, KINDS["Pod"], sink, timing=SOON)
    start(feed.run())
    await churn(fake, writer, random.Random(seed))
    fake.faults.clear()
    await sink.until_equal("Pod", stored(fake, "pods"))

    assert sink.versions("Pod") == stored(fake, "pods") != {}
    assert feed.restarts.total() > 0


async def test_guard_lists_in_pages_and_finds_missed_deletes(fake: FakeApi, api: Api, writer: Writer) -> None:
    sink = Sink()
    sweeps = SyncGuard(api, [KINDS["ResourceClaim"]], sink, lambda _: ())
    claims = [await claim(writer, f"c{number}") for number in range(3)]
    await sweeps.sweep(KINDS["ResourceClaim"])
    await writer.delete("ResourceClaim", "default", "c1", uid=claims[1].metadata.uid)
    await sweeps.sweep(KINDS["ResourceClaim"])

    assert sink.versions("ResourceClaim") == stored(fake, "resourceclaims", "resource.k8s.io")
    assert set(sink.claims) == {"default/c0", "default/c2"}


async def test_stale_patch_is_a_conflict_and_changes_nothing(writer: Writer, api: Api) -> None:
    old = await claim(writer)
    new = await writer.patch(
        "ResourceClaim", "default", "c", guard(old.metadata, {"metadata": {"labels": {"a": "1"}}})
    )
    for content_type in ("application/merge-patch+json", STRATEGIC):
        with pytest.raises(ApiConflict):
            await writer.patch(
                "ResourceClaim",
                "default",
                "c",
                guard(old.metadata, {"metadata": {"labels": {"a": "2"}}}),
                content_type=content_type,
            )

    assert await Reader(api).get("ResourceClaim", "default", "c") == new


async def test_write_meant_for_an_earlier_object_of_that_name_is_a_conflict(writer: Writer) -> None:
    """As a real server has it: 409 for a patch with the old version, 422 for one that only has the old uid."""
    old = await claim(writer)
    await writer.delete("ResourceClaim", "default", "c", uid=old.metadata.uid)
    new = await claim(writer)
    mixed = {"metadata": {"uid": old.metadata.uid, "resourceVersion": new.metadata.resource_version}}
    for body in (guard(old.metadata, {}), mixed):
        with pytest.raises(ApiConflict):
            await writer.patch("ResourceClaim", "default", "c", body)
    with pytest.raises(ApiConflict):
        await writer.delete("ResourceClaim", "default", "c", uid=old.metadata.uid)


async def test_create_of_what_exists(writer: Writer) -> None:
    await claim(writer)
    with pytest.raises(ApiAlreadyExists):
        await claim(writer)


async def test_throttled_write_is_repeated_a_failed_one_is_not(fake: FakeApi, writer: Writer) -> None:
    fake.faults.add(Fault(throttled(0), frozenset({"create"}), "resourceclaims", times=2))
    await claim(writer, "patient")
    fake.faults.add(Fault(unavailable(), frozenset({"create"}), "resourceclaims"))
    with pytest.raises(ApiUnavailable):
        await claim(writer, "unlucky")

    assert [obj["metadata"]["name"] for obj in fake.objects("resourceclaims", "resource.k8s.io")] == [
        "patient"
    ]


async def test_lost_answer_is_unavailable_although_the_write_has_happened(
    fake: FakeApi, writer: Writer, api: Api
) -> None:
    fake.faults.add(Fault(verbs=frozenset({"create"}), resource="resourceclaims", lose_answer=True))
    with pytest.raises(ApiUnavailable):
        await claim(writer)

    assert isinstance(await Reader(api).get("ResourceClaim", "default", "c"), ResourceClaim)


async def test_events_are_counted_up_on_the_server(fake: FakeApi, writer: Writer) -> None:
    now = [0.0]
    events = EventWriter(writer, "me", Timing(monotonic=lambda: now[0]))
    about = Reference.to("ResourceClaim", (await claim(writer)).metadata)
    for moment in (0.0, 10.0, 400.0):
        now[0] = moment
        events.emit(about, "Warning", "Unallocatable", "no free device")
        await events.flush()

    found = fake.objects("events")
    assert [(event["reason"], event["count"], event["involvedObject"]["name"]) for event in found] == [
        ("Unallocatable", 3, "c")
    ]
    assert not +events.lost


async def test_discovery_of_the_embedded_server(api: Api) -> None:
    with pytest.raises(ApiNotServed, match="AllocationPolicy: install the custom resource definition"):
        await discover(api)
    served = await discover(api, [kind for kind in KINDS.values() if kind.name != "AllocationPolicy"])

    assert served.missing == ()


async def test_reader_knows_what_is_gone(api: Api) -> None:
    with pytest.raises(ApiNotFound):
        await Reader(api).get("Pod", "default", "nobody")
