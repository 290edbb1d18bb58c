"""Bad weather means the same to a client whether the embedded server makes it or the proxy before another server does."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.errors import ApiConflict, ApiError, ApiGone, ApiThrottled, ApiUnauthorized, ApiUnavailable
from dra_operator.kube import Api
from dra_operator.testing.fakeapi import FakeApi
from dra_operator.testing.fakeapi.faults import ALWAYS, WEATHER, Call, Fault, Faults, Hold, Spoil, Then
from tests.e2e.harness.faultproxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PODS = "/api/v1/namespaces/default/pods"
SHORT = 0.3
"""Seconds after which a client gives up in these tests."""


@dataclass
class Place:
    """A server, the rules of its weather, and a client."""

    server: FakeApi
    faults: Faults
    api: Api

    def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.server.objects("pods")]

    async def create(self, name: str) -> int:
        return (await self.api.request("POST", PODS, body=pod(name), timeout=SHORT)).status

    def brew(self, name: str, **how: Any) -> Fault:
        fault = self.faults.add(WEATHER[name]())
        for key, value in how.items():
            setattr(fault, key, value)
        return fault


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@asynccontextmanager
async def embedded() -> AsyncIterator[Place]:
    async with FakeApi() as server, Api.at(server.url) as api:
        yield Place(server, server.faults, api)


@asynccontextmanager
async def proxied() -> AsyncIterator[Place]:
    async with FakeApi() as server:
        with FaultProxy(server.url) as proxy:
            async with Api.at(proxy.url) as api:
                yield Place(server, proxy.faults, api)


@pytest.fixture(params=[embedded, proxied])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    async with request.param() as made:
        yield made


async def read(place: Place, count: int, inactivity: float = 5.0) -> list[dict[str, Any]]:
    """The first events of a watch of pods from the beginning; fewer if it ends before."""
    events: list[dict[str, Any]] = []
    lines = place.api.stream(PODS, {"watch": "1", "resourceVersion": "0"}, inactivity=inactivity)
    async with aclosing(lines):
        async for line in lines:
            if line:
                events.append(json.loads(line))
            if len(events) == count:
                break
    return events


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["object"]["metadata"]["name"] for event in events]


async def test_without_rules_nothing_goes_wrong(place: Place) -> None:
    assert await place.create("a") == 201
    with pytest.raises(ApiError, match="already exists"):
        await place.create("a")
    listed = await place.api.request("GET", PODS, query={"fieldSelector": "metadata.name=a"})
    assert [item["metadata"]["name"] for item in json.loads(listed.body)["items"]] == ["a"]
    assert names(await read(place, 1)) == ["a"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("429", ApiThrottled),
        ("500", ApiUnavailable),
        ("503", ApiUnavailable),
        ("401", ApiUnauthorized),
        ("time-out", ApiUnavailable),
        ("reset before", ApiUnavailable),
    ],
)
async def test_what_did_not_reach_the_server_has_not_happened(
    place: Place, name: str, error: type[ApiError]
) -> None:
    fault = place.brew(name)
    with pytest.raises(error) as raised:
        await place.create("a")
    assert raised.value.retry_after == (1 if name == "429" else None)
    assert place.names() == []
    assert [call.resource for call in fault.hits] == ["pods"]
    assert await place.create("a") == 201


async def test_conflict(place: Place) -> None:
    await place.create("a")
    place.brew("409")
    with pytest.raises(ApiConflict):
        await place.api.request(
            "PATCH",
            f"{PODS}/a",
            body={"metadata": {"labels": {"a": "b"}}},
            content_type="application/merge-patch+json",
        )


@pytest.mark.parametrize("name", ["reset after", "lost answer", "stalled body"])
async def test_what_was_served_has_happened_though_the_client_does_not_hear_of_it(
    place: Place, name: str
) -> None:
    place.brew(name)
    with pytest.raises(ApiUnavailable):
        await place.create("a")
    assert place.names() == ["a"]


async def test_held_request_is_served_when_it_is_let_go_also_if_its_client_has_given_up(place: Place) -> None:
    hold = Hold()
    place.faults.add(Fault(verbs=frozenset({"create"}), hold=hold))
    with pytest.raises(ApiUnavailable, match="no answer within"):
        await place.create("late")
    assert hold.reached.is_set()
    assert place.names() == []
    assert await place.create("next") == 201

    served = asyncio.Event()
    place.server.store.listen_all(lambda *_: served.set())
    hold.released.set()
    async with asyncio.timeout(10):
        await served.wait()
    assert "late" in place.names()


async def test_held_request_is_answered_when_it_is_let_go_in_time(place: Place) -> None:
    fault = place.faults.add(Fault(verbs=frozenset({"create"}), hold=Hold()))
    creation = asyncio.create_task(place.api.request("POST", PODS, body=pod("a")))
    assert fault.hold is not None
    await fault.hold.reached.happened()
    fault.hold.released.set()
    assert (await creation).status == 201
    assert fault.codes == [201]


async def test_late_answers_come(place: Place) -> None:
    place.brew("slow", delay=0.05)
    assert await place.create("a") == 201


@pytest.mark.parametrize("name", ["watch cut", "half-open watch"])
async def test_broken_watch_is_told_after_its_last_event(place: Place, name: str) -> None:
    await place.create("a")
    then = Then.CUT if name == "watch cut" else Then.SILENCE
    place.brew(name, spoil=Spoil(0.2, then))
    with pytest.raises(ApiUnavailable):
        await read(place, 2, inactivity=1.0)
    assert names(await read(place, 1)) == ["a"]


async def test_watch_that_ends_in_order(place: Place) -> None:
    await place.create("a")
    place.brew("watch ended", spoil=Spoil(0.2, Then.END))
    assert names(await read(place, 2)) == ["a"]


async def test_watch_that_expires(place: Place) -> None:
    await place.create("a")
    place.brew("410 in watch", spoil=Spoil(0.2, Then.EXPIRE))
    *events, last = await read(place, 2)
    assert names(events) == ["a"]
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
    place.brew("410 on watch")
    with pytest.raises(ApiGone):
        await read(place, 1)


async def test_open_watches_are_broken_at_once_and_new_ones_work() -> None:
    async with FakeApi() as server:
        with FaultProxy(server.url) as proxy:
            async with Api.at(proxy.url) as api:
                place = Place(server, proxy.faults, api)
                await place.create("a")
                lines = api.stream(PODS, {"watch": "1", "resourceVersion": "0"}, inactivity=60)
                async with aclosing(lines):
                    while not await anext(lines):
                        pass
                    proxy.break_watches()
                    with pytest.raises(ApiUnavailable, match=r"reset|disconnected|closed"):
                        await anext(lines)
                assert names(await read(place, 1)) == ["a"]


async def test_events_that_come_again(place: Place) -> None:
    for name in "abc":
        await place.create(name)
    place.brew("repeated events")
    stream = asyncio.create_task(read(place, 5))
    assert "".join(names(await stream)) in ("abacb", "abcab"), (
        "the embedded server sends the first ones at once"
    )


async def test_every_weather_is_one_rule_that_spares_other_clients() -> None:
    for name, brew in WEATHER.items():
        fault = brew()
        fault.user_agent, fault.times = "dra-operator", ALWAYS
        verb = next(iter(fault.verbs), "get")
        assert fault.matches(Call(verb, "pods", user_agent="dra-operator/1")), name
        assert not fault.matches(Call(verb, "pods", user_agent="kubectl/1")), name


def test_chance_comes_from_the_seed_and_is_as_likely_as_told() -> None:
    def struck(seed: int) -> list[bool]:
        faults = Faults(seed=seed)
        faults.add(Fault(probability=0.25, times=ALWAYS))
        return [faults.hit(Call("get", "pods")) is not None for _ in range(1000)]

    assert struck(1) == struck(1) != struck(2)
    assert 180 < sum(struck(1)) < 320


def test_first_rule_that_hits_counts_and_a_later_one_can_be_put_before_it() -> None:
    faults = Faults()
    bad = faults.add(Fault(probability=1.0, times=ALWAYS))
    kept = faults.add(Fault(hold=Hold()), first=True)
    assert [faults.hit(Call("get", "pods")) for _ in range(3)] == [kept, bad, bad]


async def test_rule_that_is_taken_away_lets_go_what_it_holds(place: Place) -> None:
    fault = place.faults.add(Fault(verbs=frozenset({"create"}), hold=Hold()))
    creation = asyncio.create_task(place.api.request("POST", PODS, body=pod("a")))
    assert fault.hold is not None
    await fault.hold.reached.happened()
    place.faults.clear()
    assert (await creation).status == 201


def test_kubeconfig_leads_to_the_proxy_as_the_same_user(tmp_path: Path) -> None:
    original = tmp_path / "admin.kubeconfig"
    user = {"name": "u", "user": {"token": "t"}}
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "/ca"}}
    original.write_text(json.dumps({"clusters": [cluster], "users": [user]}))
    with FaultProxy("http://127.0.0.1:1") as proxy:
        copied = json.loads(proxy.kubeconfig(original).read_text())
    assert copied["clusters"] == [{"name": "c", "cluster": {"server": proxy.url}}]
    assert copied["users"] == [user]
