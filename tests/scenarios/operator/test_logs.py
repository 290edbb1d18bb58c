"""What the log tells: one line a happening, with its objects; nothing while nothing happens; and never a secret."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from dra_operator import __version__
from dra_operator.app.logs import is_news
from dra_operator.errors import InvalidObject
from dra_operator.kube.api import MERGE
from dra_operator.kube.listing import RawMeta
from dra_operator.logfields import Field, fields_of
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import unavailable

from .objects import (
    by_name,
    by_template,
    claim,
    device_class,
    node,
    pod,
    policy,
    requests,
    slice_,
    template,
)
from .test_process import process
from .world import Trap, World, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dra_operator.app.operator import Operator
    from dra_operator.testing.fakeapi.faults import Call

STOCK = ("claims", "binding", "kubelet")
CLUSTER = (
    node("n1"),
    slice_("n1", 2),
    node("n2"),
    slice_("n2", 2),
    device_class(),
    policy(),
    template(),
    template("all", requests(count=3)),
)
TOKEN = "s3cr3t-0paque-t0ken-of-the-operator"
TOUCHED = (("pod", "other"), ("pod", "big"), ("slice", "n1-gpu.example.com"))
ODD = RawMeta("odd", "default", "uid-odd", "7")
NOW = "2026-01-01T00:00:"


class Lines(logging.Handler):
    """Records as `set_up` lets them through, with their fields."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.addFilter(is_news)
        self.found: list[tuple[str, dict[str, Field]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append((f"{record.levelname} {record.getMessage()}", fields_of(record)))

    def of(self, text: str) -> list[dict[str, Field]]:
        """The fields of the lines that begin so."""
        return [fields for line, fields in self.found if line.startswith(text)]

    def texts(self) -> list[str]:
        return [line for line, _ in self.found]


@pytest.fixture(params=[logging.INFO])
def lines(request: pytest.FixtureRequest) -> Iterator[Lines]:
    """What the operator and its libraries log."""
    handler = Lines(request.param)
    loggers = {"dra_operator": request.param, "kopf": logging.WARNING, "asyncio": logging.WARNING}
    before = {name: logging.getLogger(name).level for name in loggers}
    for name, level in loggers.items():
        logging.getLogger(name).setLevel(level)
        logging.getLogger(name).addHandler(handler)
    yield handler
    for name in loggers:
        logging.getLogger(name).removeHandler(handler)
        logging.getLogger(name).setLevel(before[name])


async def test_a_pod_that_is_served_is_one_line_with_all_its_objects(lines: Lines) -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("data"))) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        await here.settle()
        lines.found.clear()
        here.add(pod("web", by_template("gpu"), by_name("data", "data")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        uid = here.pods["web"]["metadata"]["uid"]
        generated = next(name for name in here.claims if name != "data")
        assert len(lines.found) == 1, lines.found
        (found,) = lines.of("INFO pod has its devices")
        assert float(found.pop("seconds")) > 0
        attempt, number = str(found.pop("decision")).rsplit("-", 1)
        assert uid.startswith(attempt)
        assert int(number) >= 1
        assert found == {
            "controller": "allocation",
            "pod": "default/web",
            "claims": f"default/{generated}, default/data",
            "node": here.node_of("web"),
            "devices": 2,
        }


async def test_a_pod_that_waits_is_a_line_when_its_reason_changes(lines: Lines) -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        lines.found.clear()
        here.add(pod("big", by_template("all")))
        await here.until(lambda: here.messages("AllocationFailed", "big"))
        operator = here.operator
        assert operator is not None
        for _ in range(20):
            operator.brain.allocation.wake()
            await here.settle()
        assert [found["reason"] for found in lines.of("INFO pod waits: ")] == ["AllocationFailed"]
        here.add(slice_("n1", 1, driver="other.example.com"), template("none", requests(class_name="no")))
        await here.delete("template", "all")
        here.add(pod("lost", by_template("none")))
        await here.until(lambda: here.messages("DeviceClassMissing", "lost"))
        here.add(device_class("no", "nobody.example.com"))
        await here.until(lambda: here.messages("AllocationFailed", "lost"))
        told = [found["reason"] for found in lines.of("INFO pod waits: ") if found["pod"] == "default/lost"]
        assert told == ["DeviceClassMissing", "AllocationFailed"]


@pytest.mark.parametrize("lines", [logging.DEBUG], indirect=True)
async def test_at_debug_all_lines_of_an_attempt_have_one_decision(lines: Lines) -> None:
    """Also those of a conflict, of the writes, and of the loop that tries again."""
    async with world(*STOCK, objects=CLUSTER) as here:
        trap = here.trap("resourceclaims/status", error=StatusError(409, "Conflict", "stale"))
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert trap.hits
        attempts = {str(found["decision"]) for _, found in lines.found if "decision" in found}
        assert len(attempts) >= 1
        last = str(lines.of("INFO pod has its devices")[0]["decision"])
        of_last = [line for line, found in lines.found if found.get("decision") == last]
        for text in (
            "DEBUG the answer for the pod is allocate",
            "DEBUG looked for devices: plan",
            "DEBUG PATCH /api/v1/namespaces/default/pods/web: 200",
            "INFO pod has its devices",
            "DEBUG devices allocated: gpu.example.com/",
        ):
            assert [line for line in of_last if line.startswith(text)], (text, of_last)
        (searched,) = [found for found in lines.of("DEBUG looked for devices") if found["decision"] == last]
        assert searched.keys() >= {"pod", "node", "steps", "seconds", "controller"}


async def stir(here: World, operator: Operator, number: int) -> None:
    """What goes on in a cluster in which nothing happens: lists, watches that end, heartbeats, looks at everything."""
    for kind in operator._kopf_kinds:
        await operator._guard.sweep(kind)
    # The server lets nothing in that we cannot read; one that is newer than we know might.
    operator._guard._sink.reject("Pod", InvalidObject("Pod default/odd", "spec", "unknown"), ODD, b"")
    here.server.end_watches()
    beat = {
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": f"{NOW}{number:02}Z"}]
        }
    }
    await here.user.request("PATCH", "/api/v1/nodes/n1/status", body=beat, content_type=MERGE)
    for what, name in TOUCHED:
        await here.patch(what, name, {"metadata": {"annotations": {"touched": str(number)}}})
    await here.until(
        lambda: operator.cluster.pods["default/other"].metadata.annotations["touched"] == str(number)
    )
    operator.brain.allocation.wake()
    for controller in operator.brain.loops:
        for about, keys in (
            ("Pod", operator.cluster.pods),
            ("ResourceClaim", operator.cluster.claims),
            ("AllocationPolicy", operator.cluster.policies),
        ):
            for key in keys:
                controller.queue.add(f"{about} {key}" if controller.name == "sweeper" else key)
    await here.settle_but_timers()


async def test_nothing_is_logged_while_nothing_happens(lines: Lines) -> None:
    none = template("none", requests(class_name="no"))
    objects = (*CLUSTER, claim("mine"), none, policy("empty", "nobody.example.com"))
    waiting = (
        pod("big", by_template("all")),
        pod("lost", by_template("none")),
        pod("other", gates=("a/b",)),
    )
    async with world(*STOCK, objects=objects, sweep_seconds=0.1) as here:
        here.add(*waiting, pod("web", by_template("gpu")), pod("data", by_name("mine")))
        await here.until(lambda: here.node_of("web") and here.node_of("data"))
        await here.until(lambda: here.messages("AllocationFailed", "big"))
        await here.until(lambda: here.messages("DeviceClassMissing", "lost"))
        operator = here.operator
        assert operator is not None
        await stir(here, operator, 0)
        lines.found.clear()
        for number in range(1, 7):
            if number % 3 == 0:
                here.server.compact()  # watches get 410, and list again
            await stir(here, operator, number)
        assert lines.texts() == []
        restarts = sum((feed.restarts for feed in operator._feeds), Counter[str]())
        assert restarts["ended"] >= 6
        assert restarts["expired"] >= 1


class Refused(Trap):
    """Hits the operator only, not the test's own requests."""

    def matches(self, call: Call) -> bool:
        """Whether this request is hit."""
        return call.user_agent.startswith(("dra-operator", "kopf")) and super().matches(call)


def kubeconfig_with_token(here: World, folder: Path) -> Path:
    """As the server writes it, with our token as the user's."""
    path = here.server.write_kubeconfig(folder / "kubeconfig")
    content = yaml.safe_load(path.read_text())
    for user in content["users"]:
        user["user"] = {"token": TOKEN}
    path.write_text(yaml.safe_dump(content))
    return path


async def test_every_line_of_a_process_is_json_and_none_shows_the_token(tmp_path: Path) -> None:
    """Through a start, served and waiting pods, a refused token, an outage that Kopf complains of, a bug, and the end."""
    flags = ("--log-format", "json", "--log-level", "debug")
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        config = kubeconfig_with_token(here, tmp_path)
        async with process(here, tmp_path, *flags, "--kubeconfig", str(config)) as operator:
            await operator.logged('"message": "synced with Kubernetes')
            here.add(pod("web", by_template("gpu")), pod("big", by_template("all")))
            await operator.logged('"message": "pod has its devices"')
            for error in (StatusError(401, "Unauthorized", f"Bearer {TOKEN} is not known"), unavailable()):
                faults = [Refused("", verb, error=error, times=2) for verb in ("list", "watch", "patch")]
                for fault in faults:
                    here.server.faults.add(fault)
                here.server.end_watches()
                await here.trapped(faults[1])
            here.server.faults.clear()
            here.add(pod("last", by_template("gpu")))
            await here.until(lambda: here.node_of("last"))
            assert await operator.end(signal.SIGTERM) == 0
    entries = [json.loads(line) for line in operator.log.splitlines()]
    assert all({"time", "level", "message", "logger"} <= entry.keys() for entry in entries)
    assert TOKEN not in operator.log
    loggers = {entry["logger"].partition(".")[0] for entry in entries}
    assert loggers >= {"dra_operator", "kopf"}


async def test_settings_that_turn_out_to_be_wrong_are_an_error_line_and_status_2(tmp_path: Path) -> None:
    """Those that only show when they are used, such as a kubeconfig that is not there."""
    config = tmp_path / "config.yaml"
    config.write_text(f"kubeconfig: {tmp_path}/missing\nlogFormat: json\n")
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dra_operator", "run", "--config", str(config)),
        env={**os.environ, "DRA_OPERATOR_SETLE_SECONDS": "1"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, log = await started.communicate()
    first, stray, last = (json.loads(line) for line in log.splitlines())
    assert started.returncode == 2
    assert first["message"].startswith(
        f"dra-operator {__version__}; settings: kubeconfig is {tmp_path}/missing"
    )
    assert f"logFormat is json ({config})" in first["message"]
    assert stray["level"] == "warning"
    assert last["message"] == f"cannot run: kubeconfig: cannot use {tmp_path}/missing: there is no such file"
