"""The sync guard knows when Kopf-fed kinds are complete, and finds the deletes that Kopf missed (architecture, section 5)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from dra_operator.cluster import Cluster
from dra_operator.errors import ApiNotServed, ApiUnavailable, ApiWentBack, InvalidObject
from dra_operator.kube import KINDS, Api, RawMeta, SyncGuard, fed_by
from dra_operator.kube.sync import GAP_SECONDS
from dra_operator.model import ObjectMeta, ResourceClaim

from .scripted import Hands, Reply, Scripted, page, status

if TYPE_CHECKING:
    from .conftest import Start

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/resourceclaims"
TEMPLATES = f"{GROUP}/resourceclaimtemplates"
NOT_FOUND = Reply(status(404, "NotFound", "the server could not find the requested resource"), 404)


class Model(Cluster):
    """The cluster model with a place for what cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.rejected: list[str] = []

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta, _raw: bytes = b"", /) -> None:
        self.rejected.append(f"{kind} {metadata.name} {error.path}")


@pytest.fixture
def model() -> Model:
    return Model()


def guard_of(api: Api, model: Model, hands: Hands, *kinds: str) -> SyncGuard:
    rows = [KINDS[kind] for kind in kinds]
    return SyncGuard(api, rows, model, lambda _: model.claims.values(), 300, hands.timing())


def claim(name: str, version: int) -> dict[str, object]:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {}}


def known(name: str, version: int) -> ResourceClaim:
    return ResourceClaim(
        ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", resource_version=str(version))
    )


async def test_synced_only_when_every_kind_has_been_listed(
    server: Scripted, api: Api, model: Model, hands: Hands, start: Start
) -> None:
    unavailable = Reply(status(503, "ServiceUnavailable", "starting"), 503)
    server.on("GET", CLAIMS, unavailable, unavailable, Reply(page(5, claim("a", 3))))
    server.on("GET", TEMPLATES, Reply(page(5)))
    sweeps = guard_of(api, model, hands, "ResourceClaim", "ResourceClaimTemplate")
    before = [event.is_set() for event in sweeps.synced.values()]
    start(sweeps.run())
    async with asyncio.timeout(10):
        await sweeps.until_synced()

    assert before == [False, False]
    assert set(model.claims) == {"ns/a"}
    assert model.is_synced("ResourceClaim", "ResourceClaimTemplate")


async def test_delete_that_kopf_missed_is_found(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    model.apply("ADDED", known("a", 3))
    model.apply("ADDED", known("b", 4))
    server.on("GET", CLAIMS, Reply(page(9, claim("b", 4))))
    await guard_of(api, model, hands, "ResourceClaim").sweep(KINDS["ResourceClaim"])

    assert set(model.claims) == {"ns/b"}


async def test_what_kopf_has_seen_later_than_the_list_stays(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    model.apply("ADDED", known("new", 12))
    model.apply("MODIFIED", known("changed", 11))
    model.apply("ADDED", known("gone", 3))
    model.apply("DELETED", known("gone", 13))
    server.on("GET", CLAIMS, Reply(page(9, claim("changed", 4), claim("gone", 3))))
    await guard_of(api, model, hands, "ResourceClaim").sweep(KINDS["ResourceClaim"])

    versions = {key: obj.metadata.resource_version for key, obj in model.claims.items()}
    assert versions == {"ns/new": "12", "ns/changed": "11"}


async def test_unreadable_object_is_told_and_its_last_good_version_stays(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    model.apply("ADDED", known("a", 3))
    server.on("GET", CLAIMS, Reply(page(9, {**claim("a", 8), "spec": 7}, {**claim("b", 8), "spec": 7})))
    await guard_of(api, model, hands, "ResourceClaim").sweep(KINDS["ResourceClaim"])

    assert set(model.claims) == {"ns/a"}
    assert model.rejected == ["ResourceClaim a spec", "ResourceClaim b spec"]


async def test_failed_sweep_leaves_the_model_alone(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    model.apply("ADDED", known("a", 3))
    server.on("GET", CLAIMS, Reply(page(9, token="more")), Reply(status(500, "InternalError", "boom"), 500))
    with pytest.raises(ApiUnavailable):
        await guard_of(api, model, hands, "ResourceClaim").sweep(KINDS["ResourceClaim"])

    assert set(model.claims) == {"ns/a"}


@pytest.mark.parametrize(
    "unclear",
    [
        pytest.param(Reply(status(503, "ServiceUnavailable", "starting"), 503), id="no-answer"),
        pytest.param(Reply(status(429, "TooManyRequests", "slow down"), 429), id="throttled"),
        pytest.param(Reply(status(403, "Forbidden", "not now"), 403), id="forbidden"),
        pytest.param(Reply(b"<html>"), id="a-proxy"),
    ],
)
async def test_a_list_that_is_not_found_while_the_server_does_not_say_what_it_serves_is_tried_again(
    server: Scripted, api: Api, model: Model, hands: Hands, start: Start, unclear: Reply
) -> None:
    server.on("GET", CLAIMS, NOT_FOUND, NOT_FOUND, Reply(page(5, claim("a", 3))))
    server.on("GET", GROUP, unclear, unclear)
    sweeps = guard_of(api, model, hands, "ResourceClaim")
    start(sweeps.run())
    async with asyncio.timeout(10):
        await sweeps.until_synced()

    assert set(model.claims) == {"ns/a"}
    assert hands.slept[:2] == [pytest.approx(0.8), pytest.approx(1.6)]


async def test_a_needed_kind_that_is_served_no_more_ends_the_guard(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    server.on("GET", CLAIMS, NOT_FOUND)
    server.on(
        "GET",
        GROUP,
        Reply({"resources": [{"name": "resourceclaimtemplates", "kind": "ResourceClaimTemplate"}]}),
    )
    server.on("GET", "/version", Reply({"gitVersion": "v1.37.0"}))
    with pytest.raises(ExceptionGroup) as ended:
        await guard_of(api, model, hands, "ResourceClaim").run()

    assert ended.group_contains(ApiNotServed, match="ResourceClaim")


async def test_sweeps_are_repeated_at_first_sooner(
    server: Scripted, api: Api, model: Model, hands: Hands, start: Start
) -> None:
    """Nobody tells of what is deleted between our first list and Kopf's."""
    server.on("GET", CLAIMS, *[Reply(page(9))] * 5)
    start(guard_of(api, model, hands, "ResourceClaim").run())
    await server.until("GET", 5)

    assert hands.slept[:4] == [pytest.approx(wait * 1.1) for wait in (5, 30, 300, 300)]


class Patient(Hands):
    """Whoever wants to sleep for long never wakes."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if seconds > GAP_SECONDS:
            self.asleep.set()
            await asyncio.Event().wait()


async def test_after_kopf_has_listed_anew_a_sweep_follows_once_that_list_is_over(
    server: Scripted, api: Api, model: Model, start: Start
) -> None:
    """What was deleted while Kopf did not watch would hold its devices until the next sweep in turn, minutes later."""
    hands = Patient()
    server.on("GET", CLAIMS, Reply(page(9, claim("a", 3), claim("b", 4))), Reply(page(12, claim("a", 3))))
    guard = guard_of(api, model, hands, "ResourceClaim")
    coming = ["b", "c", "d", "e"]

    def bring() -> None:
        """An object of Kopf's list, which is slow."""
        if coming:
            coming.pop()
            guard.relisted("ResourceClaim")

    start(guard.run())
    async with asyncio.timeout(10):
        await hands.asleep.wait()
        hands.asleep.clear()
        hands.on_sleep = bring
        bring()
        await hands.asleep.wait()

    assert set(model.claims) == {"ns/a"}
    assert hands.slept.count(GAP_SECONDS) == 4
    assert sum(seen.path == CLAIMS for seen in server.seen) == 2


async def test_the_servers_words_are_kept_until_a_sweep_succeeds_and_pauses_are_no_sign_of_death(
    server: Scripted, api: Api, model: Model, hands: Hands, start: Start
) -> None:
    server.on("GET", CLAIMS, Reply(status(500, "InternalError", "boom"), 500), *[Reply(page(9))] * 2)
    guard = guard_of(api, model, hands, "ResourceClaim")
    seen: list[tuple[str, float]] = []
    hands.on_sleep = lambda: seen.append(
        (guard.troubles.get("ResourceClaim", ""), round(guard.alive_at["ResourceClaim"] - hands.at, 1))
    )
    start(guard.run())
    await server.until("GET", 3)

    assert seen[:2] == [("boom", 0.8), ("", 5.5)]


def test_every_kind_of_the_model_has_one_feed() -> None:
    assert [kind.name for kind in fed_by("stream")] == [
        "Pod",
        "Node",
        "Namespace",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "VolumeAttachment",
        "ResourceSlice",
        "PodGroup",
    ]
    assert [kind.name for kind in fed_by("kopf")] == [
        "ResourceClaim",
        "ResourceClaimTemplate",
        "DeviceClass",
        "DeviceTaintRule",
        "AllocationPolicy",
    ]


async def test_sweeps_that_fail_are_one_line_until_they_succeed(
    server: Scripted, api: Api, model: Model, hands: Hands, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dra_operator")
    server.on("GET", CLAIMS, *[Reply(status(503, "ServiceUnavailable", "starting"), 503)] * 3, Reply(page(5)))
    sweeps = guard_of(api, model, hands, "ResourceClaim")
    start(sweeps.run())
    async with asyncio.timeout(10):
        await sweeps.until_synced()

    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_a_server_that_was_restored_from_a_backup_ends_the_guard_and_leaves_the_model_alone(
    server: Scripted, api: Api, model: Model, hands: Hands
) -> None:
    server.on("GET", CLAIMS, Reply(page(900, claim("a", 850))), Reply(page(120, claim("b", 100))))
    guard = guard_of(api, model, hands, "ResourceClaim")
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(10):
            await guard.run()
    assert raised.group_contains(ApiWentBack, match="120, and 900 was seen")
    assert list(model.claims) == ["ns/a"]
