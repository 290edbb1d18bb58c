"""The API server's weather, as the whole operator lives through it: it waits, it asks little, it forgets nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.app.preflight import until_discovered
from dra_operator.errors import ApiError, ApiNotServed, ApiUnauthorized
from dra_operator.kube.brake import SUSPICIOUS
from dra_operator.testing.fakeapi.faults import (
    ALWAYS,
    LISTS,
    READS,
    WATCHES,
    WEATHER,
    WRITES,
    Fault,
    Spoil,
    Then,
    unavailable,
)
from tests.scenarios.kube.scripted import Hands, Reply, Scripted, api_at, status

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import World

if TYPE_CHECKING:
    from dra_operator.app.operator import Operator
    from dra_operator.testing.fakeapi.faults import Call

PODS = 60
CLUSTER = (node("n1", cpu="64"), slice_("n1", PODS), device_class(), policy(), template())


class Outage(Fault):
    """The operator gets no answer; whoever waits in this test looks again at each of its requests."""

    def __init__(self, here: World) -> None:
        super().__init__(unavailable(), verbs=WRITES | READS, user_agent="dra-operator", times=ALWAYS)
        self.here = here

    def matches(self, call: Call) -> bool:
        struck = super().matches(call)
        if struck:
            self.here.stir()
        return struck


def brake_failures(operator: Operator) -> int:
    """How many times in a row the server has not answered, as the operator counts."""
    return operator._writer.brake.failures


def requests_for_keys(outage: Fault) -> int:
    """Requests that were not answered, but for those of the feeds: they are one a kind, and pause by themselves."""
    return sum(call.verb not in {"list", "watch"} for call in outage.hits)


async def test_after_an_outage_every_pod_gets_through_and_during_it_the_server_is_asked_by_one_at_a_time() -> (
    None
):
    """Sixty keys fail together. They must not ask sixty times as often as one does, and none may be lost."""
    async with World("claims", settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        operator = await here.start()
        await here.until(lambda: here.rules)
        await here.settle()
        outage = here.server.faults.add(Outage(here))
        here.add(*(pod(f"p{number:02}", by_template("gpu")) for number in range(PODS)))
        await here.until(lambda: brake_failures(operator) > SUSPICIOUS)
        asked = requests_for_keys(outage)
        await here.until(lambda: brake_failures(operator) >= SUSPICIOUS + 5)
        assert requests_for_keys(outage) - asked <= 10

        here.server.faults.remove(outage)
        await here.until(lambda: not any(here.is_gated(name) for name in here.pods))
        assert (len(here.devices()), here.held_twice()) == (PODS, [])


@pytest.mark.parametrize("name", ["watch cut", "410 in watch", "watch ended", "repeated events"])
async def test_whatever_becomes_of_watches_the_model_stays_true(name: str) -> None:
    """Every watch of the operator goes wrong, again and again, while pods come and go."""
    async with World("claims", "binding", "kubelet", settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        trouble = here.server.faults.add(WEATHER[name]())
        trouble.times, trouble.probability = ALWAYS, 0.5
        if trouble.spoil is not None and trouble.spoil.then is not None:
            trouble.spoil = Spoil(0.05, trouble.spoil.then)
        await here.start()
        for number in range(6):
            here.add(pod(f"p{number}", by_template("gpu")))
        await here.until(lambda: len(here.devices()) == 6)
        await here.until(lambda: not any(here.is_gated(f"p{number}") for number in range(6)))
        for number in range(3):
            await here.delete("pod", f"p{number}")
        await here.until(lambda: len(here.devices()) == 3)
        here.server.faults.clear()
        here.server.end_watches()
        here.add(pod("last", by_template("gpu")))
        await here.until(lambda: not here.is_gated("last"))
        assert (len(here.devices()), here.held_twice()) == (4, [])


async def test_claim_that_went_while_kopf_could_not_watch_frees_its_device_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kopf tells of no deletion that it missed; without the sweep that follows its list, the device would lie idle for minutes."""
    monkeypatch.setattr("dra_operator.kube.sync.EARLY_SWEEPS", ())
    async with World("claims", settle_seconds=0.0) as here:
        here.add(node("n1"), slice_("n1", 1), device_class(), policy(), template())
        await here.start()
        here.add(pod("first", by_template("gpu")))
        await here.until(lambda: here.devices() and not here.is_gated("first"))
        here.add(pod("second", by_template("gpu")))
        await here.settle()

        away = Fault(unavailable(), verbs=WATCHES | LISTS, resource="resourceclaims", user_agent="kopf")
        away.times = ALWAYS
        here.server.faults.add(away)
        here.server.end_watches()
        await here.until(lambda: away.hits)
        await here.delete("pod", "first")
        await here.until(lambda: not here.devices())
        here.server.compact()
        here.server.faults.remove(away)
        await here.until(lambda: not here.is_gated("second"))


def test_names_of_the_weather_are_those_of_watches() -> None:
    spoiled = {name for name, brew in WEATHER.items() if brew().spoil is not None}
    assert {WEATHER[name]().spoil.then for name in spoiled} >= set(Then)  # type: ignore[union-attr]  # each has one


# --- at the start

REFUSED = Reply(status(401, "Unauthorized", "Unauthorized"), 401)
STARTING = Reply(status(403, "Forbidden", 'User "system:anonymous" cannot get path "/api/v1"'), 403)


@pytest.mark.parametrize("first", [REFUSED, STARTING, Reply(status(503, "ServiceUnavailable"), 503)])
async def test_a_server_that_does_not_let_us_in_at_the_start_is_waited_for(first: Reply) -> None:
    hands = Hands()
    async with Scripted() as server, api_at(server, hands) as api:
        server.on("GET", "/api/v1", first, first, Reply({"resources": []}))
        server.on("GET", "/version", Reply({"gitVersion": "v1.37.2"}))
        with pytest.raises(ApiNotServed):  # it has answered; that it serves nothing is final
            await until_discovered(api)
        assert len(hands.slept) == 2
        assert sum(seen.path == "/api/v1" for seen in server.seen) == 3


async def test_a_server_that_never_lets_us_in_ends_the_start_with_its_words_before_the_probe_does() -> None:
    hands = Hands()
    async with Scripted() as server, api_at(server, hands) as api:
        server.on("GET", "/api/v1", *[REFUSED] * 100)
        began = hands.at
        with pytest.raises(ApiUnauthorized) as raised:
            await until_discovered(api)
        assert isinstance(raised.value, ApiError)
        assert 45 < hands.at - began < 60
