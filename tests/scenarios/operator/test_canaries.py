"""What is secret stays so: words put into every place that may hold a secret come out nowhere, at the most talkative level.

Places: opaque parameters of drivers (in claims, templates, classes, allocations), values of annotations and environment variables, the
operator's own token, what a login program says besides it, and the words of a server that repeats all of that. What comes out: log,
events, conditions, /metrics, /readyz, /healthz.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault
from tests.e2e.harness.cluster import free_port

from .objects import (
    DRIVER,
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
from .smuggle import smuggle
from .test_process import process
from .world import World

if TYPE_CHECKING:
    from pathlib import Path

    from .objects import Obj

STOCK = ("claims", "binding", "kubelet")
TOKEN = "canary-token-0f-the-0perator"
PARAMETER, ANNOTATION, VARIABLE, ASIDE = (
    "canary-in-parameters",
    "canary-in-an-annotation",
    "canary-in-a-variable",
    "canary-beside-the-token",
)
CANARIES = (TOKEN, PARAMETER, ANNOTATION, VARIABLE, ASIDE)
ECHO = f"Authorization: Bearer {TOKEN} was refused, body {{'parameters': {{'key': '{PARAMETER}'}}}}"
INVALID = f'spec.devices.config[0].opaque.parameters: Invalid value: {{"key":"{PARAMETER}"}}: the driver does not want it'

REFUSALS = (
    (400, ECHO, "patch", "resourceclaims"),
    (422, INVALID, "patch", "resourceclaims/status"),
    (403, ECHO, "patch", "pods"),
    (500, ECHO, "list", "pods"),
    (401, ECHO, "create", "events"),
)


def opaque(**more: Any) -> list[Obj]:
    return [{**more, "opaque": {"driver": DRIVER, "parameters": {"key": PARAMETER}}}]


def with_secrets(made: Obj) -> Obj:
    """The object with a word in an annotation."""
    made["metadata"]["annotations"] = {"example.com/password": ANNOTATION}
    return made


def asking(**more: Any) -> Obj:
    wanted = requests(**more)
    wanted["devices"]["config"] = opaque(requests=["gpu"])
    return wanted


def consumer(name: str, *entries: Obj, **spec: Any) -> Obj:
    made = with_secrets(pod(name, *entries, **spec))
    made["spec"]["containers"][0] |= {
        "env": [{"name": "PASSWORD", "value": VARIABLE}],
        "args": [f"--password={VARIABLE}"],
    }
    return made


def cluster() -> tuple[Obj, ...]:
    of_class = device_class()
    of_class["spec"]["config"] = opaque()
    return (
        with_secrets(node("n1")),
        with_secrets(slice_("n1", 3)),
        with_secrets(of_class),
        with_secrets(policy()),
        with_secrets(template("gpu", asking())),
        with_secrets(template("all", asking(count=9))),
        with_secrets(claim("mine", asking())),
        with_secrets(claim("broken", asking())),
    )


def login(here: World, folder: Path) -> Path:
    """A kubeconfig whose program prints the token, and says more than that."""
    program = folder / "login.py"
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": TOKEN, "remark": ASIDE},
    }
    program.write_text(f"import sys; sys.stderr.write({ASIDE!r}); print({json.dumps(answer)!r})")
    path = here.server.write_kubeconfig(folder / "login.kubeconfig")
    config = yaml.safe_load(path.read_text())
    plugin = {
        "apiVersion": answer["apiVersion"],
        "command": sys.executable,
        "args": [str(program)],
        "interactiveMode": "Never",
    }
    config["users"][0]["user"] = {"exec": plugin}
    path.write_text(yaml.safe_dump(config))
    return path


def loose(texts: dict[str, str]) -> list[str]:
    """Which canary got out where."""
    return [f"{canary} in {where}" for where, text in texts.items() for canary in CANARIES if canary in text]


def told(here: World) -> dict[str, str]:
    """Events and conditions."""
    pods = [obj.get("status", {}) for obj in here.pods.values()]
    policies = [obj.get("status", {}) for obj in here.server.objects("allocationpolicies", "dra-operator.io")]
    events = [{key: text for key, text in event.items() if key != "metadata"} for event in here.events]
    return {"events": json.dumps(events), "conditions": json.dumps([*pods, *policies])}


async def pages(port: int) -> dict[str, str]:
    """What the endpoints answer."""
    found = {}
    for page in ("metrics", "readyz", "healthz"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /{page} HTTP/1.0\r\n\r\n".encode())
        found[page] = (await reader.read()).decode()
        writer.close()
    return found


async def test_no_secret_comes_out_in_the_life_of_a_process(tmp_path: Path) -> None:
    """Served and waiting pods, an object that cannot be read, refusals of each kind that repeat what was sent, an orderly end."""
    port = free_port()
    flags = ("--log-format", "json", "--log-level", "debug", "--http-port", str(port))
    async with World(*STOCK) as here:
        here.add(*cluster())
        odd = with_secrets(claim("odd", asking()))
        odd["spec"]["devices"]["config"][0]["opaque"]["driver"] = {"not": PARAMETER}
        smuggle(here, odd)
        config = login(here, tmp_path)
        async with process(here, tmp_path, *flags, "--kubeconfig", str(config)) as operator:
            await operator.logged('"message": "synced with Kubernetes')
            for code, words, verb, resource in REFUSALS:
                error = StatusError(code, "Refused", words)
                here.server.faults.add(Fault(error, frozenset({verb}), resource, user_agent="dra-operator"))
            here.add(consumer("web", by_template("gpu")), consumer("big", by_template("all")))
            here.add(consumer("own", by_name("mine")), consumer("lost", by_name("odd")))
            here.server.compact()
            here.server.end_watches()
            await here.until(lambda: here.node_of("web") and here.node_of("own"))
            await here.until(lambda: here.messages("AllocationFailed", "big"))
            texts = {**await pages(port), **told(here)}
            assert await operator.end(signal.SIGTERM) == 0
        texts["log"] = operator.log
        held = json.dumps([obj["status"] for obj in here.claims.values() if obj.get("status")])
    assert PARAMETER in held, "the drivers get their parameters"
    assert "was refused" in texts["log"], "the server's words are told, for what they are worth"
    assert loose(texts) == []


@pytest.mark.parametrize(
    "answer",
    [f'{{"status": {{"token": "{TOKEN}"', f'{{"kind": "ExecCredential", "token": "{TOKEN}"}}', TOKEN],
    ids=["cut", "misplaced", "bare"],
)
async def test_a_login_program_that_answers_wrongly_is_told_without_its_answer(
    tmp_path: Path, answer: str
) -> None:
    async with World() as here:
        config = login(here, tmp_path)
        (tmp_path / "login.py").write_text(f"print({answer!r})")
        async with process(here, tmp_path, "--log-level", "debug", "--kubeconfig", str(config)) as operator:
            assert await operator.ended() != 0
    assert "exec" in operator.log
    assert loose({"log": operator.log}) == []


async def test_a_bug_shows_where_it_is_and_not_what_was_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims with their parameters are in the frames that the traceback names."""
    (tmp_path / "sitecustomize.py").write_text(
        "from dra_operator.controllers.commit import Committer\n"
        "async def bug(self, *given, **named):\n"
        "    held = (given, named)\n"
        "    raise KeyError(len(held))\n"
        "Committer.allocate = bug\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with World(*STOCK) as here:
        here.add(*cluster())
        config = login(here, tmp_path)
        flags = ("--log-level", "debug", "--kubeconfig", str(config))
        async with process(here, tmp_path, *flags) as operator:
            await operator.logged("synced with Kubernetes")
            here.add(consumer("web", by_name("mine")))
            await operator.logged("KeyError")
            await operator.end(signal.SIGTERM)
        texts = {**told(here), "log": operator.log}
    assert "Traceback" in texts["log"]
    assert loose(texts) == []
