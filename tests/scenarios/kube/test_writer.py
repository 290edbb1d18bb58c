"""Writes name what they were computed from, are bounded, and are repeated only when the server did nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dra_operator.errors import (
    ApiAlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiThrottled,
    ApiUnavailable,
)
from dra_operator.kube import STRATEGIC, Api, Reader, Writer, guard, is_ambiguous, preconditions
from dra_operator.model import ObjectMeta, ResourceClaim

from .scripted import HANG, Hands, Reply, Scripted, Stream, page, status

CLAIM = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
META = ObjectMeta(name="c", namespace="ns", uid="u1", resource_version="7")
WRITTEN = {"metadata": {"name": "c", "namespace": "ns", "uid": "u1", "resourceVersion": "8"}}
SLOW_DOWN = Reply(status(429, "TooManyRequests", "slow down"), 429, {"Retry-After": "3"})


@pytest.fixture
def codes() -> list[tuple[str, str, str]]:
    return []


@pytest.fixture
def writer(api: Api, hands: Hands, codes: list[tuple[str, str, str]]) -> Writer:
    return Writer(api, 2, lambda *seen: codes.append(seen), hands.timing())


async def test_patch_carries_uid_version_and_field_manager(
    server: Scripted, writer: Writer, codes: list[tuple[str, str, str]]
) -> None:
    server.on("PATCH", f"{CLAIM}/status", Reply(WRITTEN))
    body = {**preconditions(META), "status": {"reservedFor": []}}
    written = await writer.patch("ResourceClaim", "ns", "c", body, subresource="status")

    assert written == ResourceClaim(ObjectMeta(name="c", namespace="ns", uid="u1", resource_version="8"))
    seen = server.seen[0]
    assert seen.body == {"metadata": {"uid": "u1", "resourceVersion": "7"}, "status": {"reservedFor": []}}
    assert seen.query == {"fieldManager": "dra-operator"}
    assert seen.headers["Content-Type"] == "application/merge-patch+json"
    assert codes == [("patch", "resourceclaims/status", "200")]


async def test_guard_keeps_other_metadata_of_the_patch(server: Scripted, writer: Writer) -> None:
    server.on("PATCH", CLAIM, Reply(WRITTEN))
    await writer.patch("ResourceClaim", "ns", "c", guard(META, {"metadata": {"finalizers": ["f"]}}))

    assert server.seen[0].body == {"metadata": {"finalizers": ["f"], "uid": "u1", "resourceVersion": "7"}}


@pytest.mark.parametrize(
    "body", [{"status": {}}, {"metadata": {"uid": "u1"}}, {"metadata": {"resourceVersion": "7"}}]
)
async def test_patch_without_preconditions_is_never_sent(
    server: Scripted, writer: Writer, body: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="must carry"):
        await writer.patch("Pod", "ns", "p", body, content_type=STRATEGIC)

    assert server.seen == []


REFUSALS = [
    (409, status(409, "Conflict", "the object has been modified"), ApiConflict),
    (409, status(409, "Conflict", "Precondition failed: UID in precondition: u1"), ApiConflict),
    (404, status(404, "NotFound", "not found"), ApiNotFound),
    (422, status(422, "Invalid", "field cannot be modified once set"), ApiInvalid),
    (500, status(500, "InternalError", "boom"), ApiUnavailable),
    (503, b"upstream connect error", ApiUnavailable),
]


@pytest.mark.parametrize(("code", "body", "error"), REFUSALS)
async def test_refused_patch_is_not_repeated(
    server: Scripted,
    writer: Writer,
    codes: list[tuple[str, str, str]],
    code: int,
    body: Any,
    error: type[Exception],
) -> None:
    """After a 5xx the write may have happened: only the caller can look."""
    server.on("PATCH", CLAIM, Reply(body, code))
    with pytest.raises(error):
        await writer.patch("ResourceClaim", "ns", "c", guard(META, {}))

    assert len(server.seen) == 1
    assert codes == [("patch", "resourceclaims", str(code))]


async def test_missing_binding_right_tells_what_to_grant(server: Scripted, writer: Writer) -> None:
    """Comes as 422, not 403 (cp V-78, real-control-plane 6c)."""
    text = (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing status.allocation or '
        'status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: forbidden'
    )
    server.on("PATCH", f"{CLAIM}/status", Reply(status(422, "Invalid", text), 422))
    with pytest.raises(ApiForbidden, match="grant it to the operator in a ClusterRole") as caught:
        await writer.patch("ResourceClaim", "ns", "c", guard(META, {}), subresource="status")

    assert caught.value.status == 422


async def test_throttled_write_is_repeated_after_the_time_that_the_server_names(
    server: Scripted, writer: Writer, hands: Hands, codes: list[tuple[str, str, str]]
) -> None:
    server.on("PATCH", CLAIM, SLOW_DOWN, Reply(WRITTEN))
    await writer.patch("ResourceClaim", "ns", "c", guard(META, {}))

    assert hands.slept == [pytest.approx(3 + 0.8)]
    assert [code for *_, code in codes] == ["429", "200"]


async def test_write_that_is_throttled_for_ever_fails_in_the_end(
    server: Scripted, writer: Writer, hands: Hands
) -> None:
    server.on("PATCH", CLAIM, *[SLOW_DOWN] * 6)
    with pytest.raises(ApiThrottled) as caught:
        await writer.patch("ResourceClaim", "ns", "c", guard(META, {}))

    assert caught.value.retry_after == 3
    assert len(server.seen) == 6
    assert len(hands.slept) == 5


async def test_connection_that_breaks_before_the_answer_is_unavailable_and_ambiguous(
    server: Scripted, writer: Writer, codes: list[tuple[str, str, str]]
) -> None:
    server.on("PATCH", CLAIM, Stream((b'{"meta',), then="cut"))
    with pytest.raises(ApiUnavailable) as caught:
        await writer.patch("ResourceClaim", "ns", "c", guard(META, {}))

    assert is_ambiguous(caught.value)
    assert codes == [("patch", "resourceclaims", "unavailable")]


async def test_create_fills_in_kind_and_version(server: Scripted, writer: Writer) -> None:
    server.on("POST", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims", Reply(WRITTEN, 201))
    created = await writer.create("ResourceClaim", "ns", {"metadata": {"generateName": "p-"}, "spec": {}})

    assert isinstance(created, ResourceClaim)
    assert server.seen[0].body == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"generateName": "p-"},
        "spec": {},
    }


async def test_create_of_what_exists_is_told_apart_from_a_conflict(server: Scripted, writer: Writer) -> None:
    exists = Reply(status(409, "AlreadyExists", '"c" already exists'), 409)
    server.on("POST", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims", exists)
    with pytest.raises(ApiAlreadyExists):
        await writer.create("ResourceClaim", "ns", {"metadata": {"name": "c"}})


async def test_apply_is_forced_and_complete(server: Scripted, writer: Writer) -> None:
    server.on(
        "PATCH", "/api/v1/namespaces/ns/pods/p/status", Reply({"metadata": {"name": "p", "namespace": "ns"}})
    )
    await writer.apply("Pod", "ns", "p", {"metadata": {"uid": "u2"}, "status": {}}, subresource="status")

    seen = server.seen[0]
    assert seen.query == {"fieldManager": "dra-operator", "force": "true"}
    assert seen.headers["Content-Type"] == "application/apply-patch+yaml"
    assert seen.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"uid": "u2", "name": "p"},
        "status": {},
    }


async def test_delete_is_of_that_object_only(server: Scripted, writer: Writer) -> None:
    server.on(
        "DELETE", CLAIM, Reply(status(200)), Reply(status(409, "Conflict", "Precondition failed: UID"), 409)
    )
    await writer.delete("ResourceClaim", "ns", "c", uid="u1", resource_version="7")
    with pytest.raises(ApiConflict):
        await writer.delete("ResourceClaim", "ns", "c", uid="other")

    assert [seen.body["preconditions"] for seen in server.seen] == [
        {"uid": "u1", "resourceVersion": "7"},
        {"uid": "other"},
    ]


async def test_writes_are_bounded_and_can_be_waited_for(server: Scripted, api: Api) -> None:
    server.on("PATCH", CLAIM, HANG, HANG, HANG)
    writer = Writer(api, 2)
    writes = [
        asyncio.create_task(writer.patch("ResourceClaim", "ns", "c", guard(META, {}))) for _ in range(3)
    ]
    await server.until("PATCH", 2)
    busy = (writer.in_flight, len(server.seen))
    for write in writes:
        write.cancel()
    await asyncio.gather(*writes, return_exceptions=True)
    await writer.drain()

    assert busy == (3, 2)
    assert writer.in_flight == 0


async def test_reader_reads_live(server: Scripted, api: Api) -> None:
    reader = Reader(api)
    collection = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
    server.on("GET", CLAIM, Reply(WRITTEN), Reply({**WRITTEN, "unknown": 1}))
    server.on("GET", collection, Reply(page(9, WRITTEN)))

    claim = ResourceClaim(ObjectMeta(name="c", namespace="ns", uid="u1", resource_version="8"))
    assert await reader.get("ResourceClaim", "ns", "c") == claim
    assert await reader.get_raw("ResourceClaim", "ns", "c") == {**WRITTEN, "unknown": 1}
    assert await reader.list("ResourceClaim", "ns") == [claim]
    with pytest.raises(ApiNotFound):
        await reader.get("ResourceClaim", "ns", "gone")
