"""The server around its objects: faults, history, streams, program."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml

from dra_operator.testing import builders as b
from dra_operator.testing.fakeapi import Call, FakeApi, Fault, StatusError, gone, throttled, unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

Obj = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


@pytest.fixture
async def session(api: FakeApi) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(api.url) as client:
        yield client


async def test_throttling_says_when_to_come_back(api: FakeApi, session: aiohttp.ClientSession) -> None:
    fault = api.faults.add(Fault(throttled(3), verbs=frozenset({"list"}), resource="pods"))
    async with session.get(PODS) as refused:
        assert (refused.status, refused.headers["Retry-After"]) == (429, "3")
        assert (await refused.json())["details"] == {"retryAfterSeconds": 3}
    async with session.get(PODS) as served:
        assert served.status == 200
    assert [call.verb for call in fault.hits] == ["list"]


async def test_fault_hits_as_often_as_told(api: FakeApi, session: aiohttp.ClientSession) -> None:
    api.faults.add(Fault(unavailable(), times=2))
    codes = []
    for _ in range(3):
        async with session.get(PODS) as answer:
            codes.append(answer.status)
    assert codes == [503, 503, 200]


async def test_scripted_410_of_a_watch_is_an_answer(api: FakeApi, session: aiohttp.ClientSession) -> None:
    api.faults.add(Fault(gone(), verbs=frozenset({"watch"})))
    async with session.get(PODS, params={"watch": "1"}) as answer:
        assert answer.status == 410


async def test_cut_connection_has_no_answer_and_no_effect(
    api: FakeApi, session: aiohttp.ClientSession
) -> None:
    api.faults.add(Fault(cut=True))
    with pytest.raises(aiohttp.ClientError):
        await session.post(PODS, json=b.pod("p"))
    assert api.objects("pods") == []


async def test_lost_answer_has_its_effect(api: FakeApi, session: aiohttp.ClientSession) -> None:
    """What makes creates need find-before-create."""
    api.faults.add(Fault(lose_answer=True, verbs=frozenset({"create"})))
    with pytest.raises(aiohttp.ClientError):
        await session.post(PODS, json=b.pod("p"))
    assert [pod["metadata"]["name"] for pod in api.objects("pods")] == ["p"]


async def test_calls_are_logged_with_their_codes(api: FakeApi, session: aiohttp.ClientSession) -> None:
    headers = {"User-Agent": "test"}
    async with session.get(f"{PODS}/nope", headers=headers), session.get(PODS, headers=headers):
        pass
    expected = Call("get", "pods", "", "default", "nope", "", "test")
    assert api.calls == [(expected, 404), (Call("list", "pods", "", "default", user_agent="test"), 200)]


async def test_compaction_sends_resuming_watches_and_old_pages_away(
    api: FakeApi, session: aiohttp.ClientSession
) -> None:
    for name in ("a", "b", "c"):
        api.create(b.pod(name))
    async with session.get(PODS, params={"limit": "1"}) as first:
        metadata = (await first.json())["metadata"]
    api.compact()
    api.create(b.pod("d"))
    query = {"watch": "1", "resourceVersion": str(int(metadata["resourceVersion"]) - 1)}
    async with session.get(PODS, params=query) as stream:
        event = json.loads(await stream.content.readline())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    async with session.get(PODS, params={"limit": "1", "continue": metadata["continue"]}) as page:
        assert page.status == 410


async def test_watch_that_fell_behind_just_ends() -> None:
    """Real control plane, gotcha 1: no error event."""
    async with FakeApi(history=2) as api, aiohttp.ClientSession(api.url) as session:
        version = str(api.store.version)
        async with session.get(PODS, params={"watch": "1", "resourceVersion": version}) as stream:
            for number in range(20):
                api.create(b.pod(f"p{number}"))
            assert await stream.content.read() == b""


async def test_ended_watches_end_without_a_word(api: FakeApi, session: aiohttp.ClientSession) -> None:
    async with session.get(PODS, params={"watch": "1"}) as stream:
        api.create(b.pod("p"))
        assert json.loads(await stream.content.readline())["type"] == "ADDED"
        api.end_watches()
        assert await stream.content.read() == b""


async def test_idle_watches_get_bookmarks_with_the_newest_version() -> None:
    async with FakeApi(bookmark_seconds=0.02) as api, aiohttp.ClientSession(api.url) as session:
        query = {"watch": "1", "resourceVersion": str(api.store.version), "allowWatchBookmarks": "true"}
        async with session.get(PODS, params=query) as stream:
            api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
            async with asyncio.timeout(10):
                while True:
                    event = json.loads(await stream.content.readline())
                    assert event["type"] == "BOOKMARK"
                    if event["object"]["metadata"]["resourceVersion"] == str(api.store.version):
                        break


async def test_failing_controller_is_not_silent() -> None:
    class BrokenError(Exception):
        pass

    def broken() -> None:
        raise BrokenError

    api = FakeApi()
    await api.start()
    api._later(broken)
    await asyncio.sleep(0)
    with pytest.raises(BrokenError):
        await api.__aexit__(None, None, None)


async def test_in_process_writes_keep_the_rules(api: FakeApi) -> None:
    api.create(b.claim("c", b.request("gpu", "gpu")))
    with pytest.raises(StatusError, match=r'resourceclaims\.resource\.k8s\.io "c" already exists'):
        api.create(b.claim("c", b.request("gpu", "gpu")))
    with pytest.raises(StatusError, match="Required value"):
        api.create(b.claim("d", {"name": "gpu"}))


@pytest.mark.parametrize(
    "body",
    [
        b.node("n"),
        b.namespace("on", enabled=True),
        b.device_class("gpu", "true", driver="gpu.example.com"),
        b.claim("c", b.request("gpu", "gpu", "true", count=2), match=["gpu.example.com/numa"]),
        b.claim(
            "f", b.first_available("gpu", b.alternative("big", "gpu"), b.alternative("small", "gpu", count=2))
        ),
        b.template("t", b.request("gpu", "gpu", allocationMode="All")),
        b.resource_slice(
            "s", "gpu.example.com", b.devices(2, attributes={"model": "x", "v": "v:1.0.0", "n": 1, "b": True})
        ),
        b.resource_slice("o", "gpu.example.com", [b.device("d", capacity={"memory": "80Gi"})], node="n"),
        b.pod("p", b.pod_claim("gpu", template="t"), gates=[b.GATE], requests={"cpu": "1"}),
        b.taint_rule("r", key="dra-operator.io/owned", driver="gpu.example.com"),
    ],
    ids=lambda body: f"{body['kind']}-{body['metadata']['name']}",
)
async def test_what_the_builders_build_is_accepted(api: FakeApi, body: Obj) -> None:
    created = api.create(body)
    assert created["metadata"]["name"] == body["metadata"]["name"]


async def test_program_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig.yaml"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "dra_operator.testing.fakeapi", "--kubeconfig", str(kubeconfig), "--standins", "kubelet"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        url = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        assert line.decode() == f"fakeapi: serving on {url}\n"
        async with aiohttp.ClientSession(url) as session, session.get("/readyz") as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_program_refuses_an_unknown_stand_in() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "dra_operator.testing.fakeapi", "--standins", "nobody"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert "unknown stand-in 'nobody'; known are claims, binding, kubelet, gate" in said.decode()
