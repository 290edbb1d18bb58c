"""/readyz says what is waited for, /healthz what a restart would mend, /metrics how things are; nothing else than the truth."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dra_operator import handlers
from dra_operator.app.vitals import STUCK_SECONDS
from dra_operator.controllers.clock import SystemClock
from dra_operator.controllers.echoes import OVERDUE_SECONDS
from dra_operator.kube import KINDS, REAL
from dra_operator.metrics import RECONCILE_ERRORS, TABLE, Kind
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, unavailable

from .lag import Lag
from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import PATIENCE, World, world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"))
STOCK = ("claims", "binding", "kubelet")
ENOUGH = 10**6
"""Times that a fault strikes: always."""

SILENT_AT_REST = {
    "rejected_objects",
    "reconcile_errors",
    "claims_generated",
    "binding_conditions_wait_duration_seconds",
    "shared_capacity",
    "shared_capacity_used",
    "shared_counters",
    "shared_counters_used",
}
"""Rows whose series appear only with what a good day does not bring (or another mode does)."""


async def get(here: World, path: str) -> tuple[int, str]:
    assert here.operator is not None
    url = f"http://127.0.0.1:{here.operator.endpoints.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def readiness(here: World) -> tuple[int, dict[str, Any]]:
    status, text = await get(here, "/readyz")
    return status, json.loads(text)


async def until(here: World, path: str, holds: Callable[[int, dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask until the answer is right; HTTP tells of no changes."""
    assert here.operator is not None
    found: tuple[int, dict[str, Any]] = (0, {})
    try:
        async with asyncio.timeout(PATIENCE):
            while not here.operator.endpoints.port or not holds(*found):
                await asyncio.sleep(0.02)
                if here.operator.endpoints.port:
                    status, text = await get(here, path)
                    found = status, json.loads(text)
    except TimeoutError:
        raise AssertionError(f"last answer: {found}") from None
    return found[1]


class Jump:
    """Lets the operator believe that time has passed."""

    seconds = 0.0

    def monotonic(self, *_: object) -> float:
        """The machine's time, and what was jumped over."""
        return time.monotonic() + self.seconds


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jump]:
    """For both clocks, that of the controllers and that of the feeds."""
    made = Jump()
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: made.monotonic())
    object.__setattr__(REAL, "monotonic", made.monotonic)  # frozen, and the default of everything in `kube`
    yield made
    object.__setattr__(REAL, "monotonic", time.monotonic)


# --------------------------------------------------------------------------- /readyz


async def test_ready_tells_of_each_kind_the_controllers_and_the_policies() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        status, body = await readiness(here)
        assert (status, *list(body.items())[:2]) == (200, ("status", "ok"), ("reason", ""))
        assert set(body["kinds"]) == {kind.name for kind in KINDS.values() if kind.feed != "none"}
        assert all(found["synced"] for found in body["kinds"].values())
        assert {
            name: found["objects"]
            for name, found in body["kinds"].items()
            if name in {"Node", "ResourceClaim"}
        } == {
            "Node": 1,
            "ResourceClaim": 1,
        }
        assert {found["feed"] for found in body["kinds"].values()} == {"stream", "kopf"}
        assert {"allocation", "policies", "sweeper"} <= set(body["controllers"])
        assert body["policies"] == {"taintRulesServed": True, "count": 1, "notEnforced": {}}


async def test_without_taint_rules_the_remedy_is_told_and_the_policy_named() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        await here.start(without="DeviceTaintRule")
        await here.until(lambda: here.condition("Enforced") == ("False", "TaintRulesNotServed"))
        body = await until(here, "/readyz", lambda _, body: bool(body.get("policies", {}).get("notEnforced")))
        assert body["policies"] == {
            "taintRulesServed": False,
            "count": 1,
            "notEnforced": {"gpus": "TaintRulesNotServed"},
        }
        assert body["notServed"] == {"DeviceTaintRule": KINDS["DeviceTaintRule"].remedy}
        assert body["offByDefault"] == {}  # the embedded server is a 1.37


async def test_missing_rights_are_the_reason_with_the_remedy() -> None:
    forbidden = StatusError(403, "Forbidden", 'resourceclaims is forbidden: User "x" cannot list resource')
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        here.server.faults.add(
            Fault(forbidden, verbs=frozenset({"list"}), resource="resourceclaims", times=ENOUGH)
        )
        await here.begin()
        body = await until(
            here, "/readyz", lambda status, body: status == 503 and bool(body["reason"].startswith("rights"))
        )
        assert "cannot list resourceclaims" in body["reason"]
        assert "manifests/base/rbac.yaml" in body["reason"]
        assert (await get(here, "/healthz"))[0] == 200


async def test_refused_credentials_are_the_reason_until_they_are_accepted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All requests get 401, those of Kopf as well; nothing but the API server's answers brings the operator back."""
    monkeypatch.setattr(handlers, "LOGIN_PAUSE", 0.01)
    async with world(*STOCK, objects=CLUSTER) as here:
        assert here.operator is not None
        await here.settle()
        caplog.clear()
        here.server.faults.add(Fault(StatusError(401, "Unauthorized", "Unauthorized"), times=ENOUGH))
        here.server.create(pod("web", by_template("gpu")))
        here.server.end_watches()
        body = await until(here, "/readyz", lambda status, _: status == HTTPStatus.SERVICE_UNAVAILABLE)
        assert "Unauthorized; the credentials are not accepted: check" in body["reason"]
        assert "dra_operator_ready 0" in (await get(here, "/metrics"))[1]
        assert (await get(here, "/healthz"))[0] == HTTPStatus.OK
        told = [record for record in caplog.records if "let us in" in record.getMessage()]
        assert [record.levelname for record in told] == ["ERROR"]

        here.server.faults.clear()
        await until(here, "/readyz", lambda status, _: status == HTTPStatus.OK)
        await here.until(lambda: here.node_of("web"))
        ours = [record for record in caplog.records if record.name.startswith("dra_operator")]
        loud = [record.getMessage() for record in ours if record.levelno >= logging.WARNING]
        assert loud == [told[0].getMessage()]


async def test_a_watch_that_is_refused_now_and_then_takes_no_other_watch_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a token expires while all watches end: each of the kinds that Kopf brings is heard of afterwards, in the same process."""
    monkeypatch.setattr(handlers, "LOGIN_PAUSE", 0.01)
    async with world(*STOCK, objects=CLUSTER) as here:
        for number, kind in enumerate(("deviceclasses", "resourceclaims", "allocationpolicies") * 2):
            refused = Fault(
                StatusError(401, "Unauthorized", "Unauthorized"),
                verbs=frozenset({"watch"}),
                resource=kind,
                times=2,
            )
            here.server.faults.add(refused)
            here.server.end_watches()
            here.add(pod(f"p{number}", by_template("gpu")))
            await here.until(partial(here.node_of, f"p{number}"))
            await here.finish(f"p{number}")


async def test_writes_that_fail_for_the_credentials_back_off_without_a_word_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The watches that are open go on, as those of a real server do: work comes in, and none of it can be written."""
    async with world(*STOCK, objects=CLUSTER) as here:
        assert here.operator is not None
        await here.settle()
        caplog.clear()
        refused = Fault(
            StatusError(401, "Unauthorized", "Unauthorized"),
            verbs=frozenset({"patch", "create", "get"}),
            times=ENOUGH,
        )
        here.server.faults.add(refused)
        here.add(pod("a", by_template("gpu")), pod("b", by_template("gpu")), slice_("n2", 3))
        errors = here.operator.metrics

        def is_tried_often(*_: object) -> bool:
            passes = {
                name: errors.value(RECONCILE_ERRORS, name, "ApiUnauthorized")
                for name in ("allocation", "policies")
            }
            return passes["allocation"] > 4 and passes["policies"] > 1

        await until(here, "/readyz", is_tried_often)
        assert [record.levelname for record in caplog.records if record.levelno >= logging.WARNING] == [
            "ERROR"
        ]


async def test_a_status_that_may_not_be_written_is_one_line_and_backs_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Most looks at the policy only put the next write off: they must not make an old failure a new one."""
    async with world(*STOCK, objects=CLUSTER) as here:
        assert here.operator is not None
        await here.settle()
        caplog.clear()
        forbidden = StatusError(403, "Forbidden", "cannot patch resource")
        here.server.faults.add(
            Fault(forbidden, verbs=frozenset({"patch"}), resource="allocationpolicies/status", times=ENOUGH)
        )
        here.add(slice_("n2", 3))
        errors = here.operator.metrics
        await until(
            here, "/readyz", lambda *_: errors.value(RECONCILE_ERRORS, "policies", "ApiForbidden") > 2
        )
        assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_forbidden_write_is_named_and_others_go_on() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        forbidden = StatusError(403, "Forbidden", 'pods "web" is forbidden: User "x" cannot patch resource')
        here.server.faults.add(Fault(forbidden, verbs=frozenset({"patch"}), resource="pods", times=ENOUGH))
        here.add(pod("web", by_template("gpu")))
        body = await until(here, "/readyz", lambda _, body: bool(body.get("refusedWrites")))
        assert body["status"] == "ok"
        assert list(body["refusedWrites"]) == ["patch pods"]
        assert "manifests/base/rbac.yaml" in body["refusedWrites"]["patch pods"]

        here.server.faults.clear()
        await here.until(lambda: here.node_of("web"))
        await until(here, "/readyz", lambda _, body: body.get("refusedWrites") == {})


async def test_what_cannot_be_listed_is_the_reason_in_the_servers_words() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        here.server.faults.add(
            Fault(unavailable(), verbs=frozenset({"list"}), resource="nodes", times=ENOUGH)
        )
        await here.begin()
        body = await until(
            here, "/readyz", lambda _, body: body.get("unsynced") == ["Node"] and "unable" in body["reason"]
        )
        assert body["reason"].startswith("waiting for the first list of Node (")
        assert body["kinds"]["Node"]["synced"] is False
        assert "trouble" in body["kinds"]["Node"]
        assert body["controllers"] == {}


async def test_an_outage_after_the_start_leaves_it_ready_and_healthy_and_is_told() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Fault(cut=True, times=ENOUGH))
        here.server.end_watches()
        body = await until(here, "/readyz", lambda _, body: "trouble" in body.get("kinds", {}).get("Pod", {}))
        assert (body["status"], body["reason"]) == ("ok", "")
        assert (await get(here, "/healthz"))[0] == 200
        here.server.faults.clear()
        await until(here, "/readyz", lambda _, body: "trouble" not in body["kinds"]["Pod"] if body else False)
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))


# --------------------------------------------------------------------------- /healthz


async def test_an_outage_of_hours_is_no_illness(jump: Jump) -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        here.server.faults.add(Fault(cut=True, times=ENOUGH))
        here.server.end_watches()
        await until(here, "/readyz", lambda _, body: "trouble" in body.get("kinds", {}).get("Pod", {}))
        assert here.operator is not None
        jump.seconds = 4 * 3600
        for feed in here.operator._feeds:  # they have gone on trying all the time
            feed.alive_at += jump.seconds
        for kind in here.operator._guard.alive_at:
            here.operator._guard.alive_at[kind] += jump.seconds
        assert (await get(here, "/healthz"))[0] == 200


async def test_a_feed_that_hangs_is_an_illness(jump: Jump) -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        jump.seconds = STUCK_SECONDS + 60
        status, text = await get(here, "/healthz")
        assert status == HTTPStatus.INTERNAL_SERVER_ERROR
        body = json.loads(text)
        assert body["status"] == "unhealthy"
        assert re.search(r"the feed of \w+ has done nothing for 3\d\d s", body["reason"])


async def test_a_watch_of_kopf_that_brings_nothing_is_an_illness_until_it_does(
    jump: Jump, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = Lag(monkeypatch, "ResourceClaim")
    async with world(*STOCK, objects=CLUSTER) as here:
        operator = here.operator
        assert operator is not None
        lag.holds = True
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert (await get(here, "/healthz"))[0] == 200
        await operator._guard.sweep(KINDS["ResourceClaim"])  # the server answers lists
        for feed in operator._feeds:
            feed.alive_at += 2 * OVERDUE_SECONDS
        for kind in operator._guard.alive_at:
            operator._guard.alive_at[kind] += 2 * OVERDUE_SECONDS
        jump.seconds = OVERDUE_SECONDS + 60
        status, text = await get(here, "/healthz")
        assert status == 500
        assert json.loads(text)["reason"].startswith(
            "the watch of ResourceClaim has not brought a change of 36"
        )
        lag.holds = False
        await here.patch("claim", "mine", {"metadata": {"labels": {"a": "b"}}})
        await until(here, "/healthz", lambda status, _: status == 200)


# --------------------------------------------------------------------------- /metrics


async def scrape(here: World) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by name of the sample and values of the labels, which are in the order of their names."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families((await get(here, "/metrics"))[1]):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


async def test_every_row_of_the_table_is_filled_by_a_working_operator() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")), pod("own", by_name("mine")))
        await here.until(lambda: here.node_of("web") and here.node_of("own"))
        here.add(pod("late", by_template("gpu")))
        await here.until(lambda: here.messages("AllocationFailed", "late"))
        await here.settle()
        found = await scrape(here)
        empty = {
            row.name
            for row in TABLE
            if not row.only  # test_figures.py has those of a setting
            if not found.get(row.full_name + ("_count" if row.kind is Kind.HISTOGRAM else ""))
        }
        assert empty - {"event_loop_delay_seconds"} <= SILENT_AT_REST  # measured once a second
        assert found["dra_operator_waiting_pods"] == {("AllocationFailed",): 1}
        assert found["dra_operator_waiting_claims"] == {("AllocationFailed",): 1}
        assert found["dra_operator_devices"]["gpu.example.com", "true", "allocated"] == 2
        assert found["dra_operator_claims"]["pending",] == 1
        assert found["dra_operator_model_objects"]["Pod",] == 3
        assert found["dra_operator_ready"] == {(): 1}
        assert found["dra_operator_placement_duration_seconds_count"]["plan",] == 2
        assert found["dra_operator_placement_search_steps_sum"][()] > 0
        assert found["dra_operator_events_total"]["written",] >= 1
        assert found["dra_operator_settings_info"] == {("false", "cooperate"): 1}


async def test_the_lag_of_both_kinds_of_feeds_is_known() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        lag = (await scrape(here))["dra_operator_feed_lag_seconds_count"]
        assert {"ResourceClaim", "AllocationPolicy"} <= {kind for (kind,), number in lag.items() if number}


async def test_requests_are_measured_by_verb_and_resource_and_nothing_else_becomes_a_label() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        measured = (await scrape(here))["dra_operator_api_request_duration_seconds_count"]
        assert {
            ("pods", "list"),
            ("pods", "patch"),
            ("resourceclaims/status", "patch"),
            ("events", "create"),
        } <= set(measured)
        plurals = {kind.plural for kind in KINDS.values()} | {"other"}
        assert {resource.split("/")[0] for resource, _ in measured} <= plurals


async def test_a_watch_that_was_given_up_is_counted_by_reason() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Fault(unavailable(), verbs=frozenset({"watch"}), resource="nodes"))
        here.server.end_watches()
        await until(here, "/readyz", lambda _, body: bool(body) and body["kinds"]["Node"]["restarts"] > 0)
        restarts = (await scrape(here))["dra_operator_watch_restarts_total"]
        assert restarts["Node", "unavailable"] >= 1
        assert restarts["Node", "refused"] == 0
