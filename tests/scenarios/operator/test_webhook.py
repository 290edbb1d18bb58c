"""The gate's admission webhook, asked as an API server asks it: by HTTPS, with reviews that no user need have written.

The whole table of pods goes through it; what real API servers make of the answers is shown by `tests/e2e/test_gate_webhook.py`.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import re
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import jsonpatch
import pytest

from dra_operator.app import webhook
from dra_operator.errors import InvalidSettings
from dra_operator.metrics import ADMISSIONS
from dra_operator.settings import build
from tests.admission import CASES, outcome, pod
from tests.authority import Authority

from .test_shell import get
from .world import PATIENCE, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from dra_operator.app.webhook import GateServer

UID = "9f4f1d1e-0000-4000-8000-000000000001"
POD = pod(CASES[3])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def folder(tmp_path: Path, authority: Authority) -> Path:
    """A folder with a good certificate."""
    authority.sign(tmp_path / "webhook")
    return tmp_path / "webhook"


@pytest.fixture
async def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """An operator that serves the webhook, and looks at its certificate often."""
    monkeypatch.setattr(webhook, "LOOK_SECONDS", 0.02)
    async with World("gate", webhook_certificates=str(folder), webhook_port=0) as made:
        await made.start()
        await until_listening(made)
        yield made


def server(here: World) -> GateServer:
    assert here.operator is not None
    assert here.operator.webhook is not None
    return here.operator.webhook


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that no object of the API shows."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - files tell of no changes
            await asyncio.sleep(0.01)


async def until_listening(here: World) -> None:
    await until(lambda: server(here).is_listening)


def review(obj: Any, operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    """A question of an API server."""
    request = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": operation,
        "userInfo": {"username": "anna"},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **more,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


async def post(
    here: World, authority: Authority, body: bytes | dict[str, Any], path: str = "/gate"
) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    trust = ssl.create_default_context(cafile=authority.bundle)
    url = f"https://127.0.0.1:{server(here).port}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=io.BytesIO(data), ssl=trust) as answer,
    ):
        return answer.status, await answer.text()


async def ask(here: World, authority: Authority, obj: Any, path: str = "/gate", **more: Any) -> Any:
    """What the pod is after the answer."""
    status, text = await post(here, authority, review(obj, **more), path)
    answer = json.loads(text)
    assert (status, answer["kind"], answer["apiVersion"]) == (200, "AdmissionReview", "admission.k8s.io/v1")
    assert (answer["response"]["uid"], answer["response"]["allowed"]) == (UID, True)
    if "patch" not in answer["response"]:
        return obj
    assert answer["response"]["patchType"] == "JSONPatch"
    return jsonpatch.apply_patch(obj, json.loads(base64.b64decode(answer["response"]["patch"])))


def counted(here: World) -> dict[str, float]:
    assert here.operator is not None
    metrics = here.operator.metrics
    words = ("gated", "named", "untouched", "refused")
    return {word: metrics.value(ADMISSIONS, word) for word in words}


async def test_each_pod_gets_what_the_policy_gives_it(here: World, authority: Authority) -> None:
    expected = {(case.about, way): case.expected(way) for case in CASES for way in ("gate", "name")}
    found = {}
    for case in CASES:
        for way in ("gate", "name"):
            asked = pod(case)
            after = await ask(here, authority, asked, f"/{way}")
            found[case.about, way] = outcome(asked["spec"], after["spec"])
            assert {**after["spec"], "schedulingGates": 0, "schedulerName": 0} == {
                **asked["spec"],
                "schedulingGates": 0,
                "schedulerName": 0,
            }
            assert after["metadata"] == asked["metadata"]

    assert found == expected
    totals = counted(here)
    assert totals.pop("refused") == 0
    assert totals == {word: list(expected.values()).count(word) for word in totals}


async def test_only_new_pods_are_touched(here: World, authority: Authority) -> None:
    """Whatever the configuration asks about; the API server refuses new gates on pods that there are."""
    for operation in ("UPDATE", "DELETE", "CONNECT"):
        assert await ask(here, authority, POD, operation=operation) == POD
    assert await ask(here, authority, None, operation="DELETE") is None


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None, "spec": None},
        {"spec": {"resourceClaims": None, "volumes": None, "schedulingGates": None, "nodeName": None}},
        {"metadata": {"annotations": 7, "name": ["x"]}, "spec": {"containers": "none", "future": {"x": [1]}}},
        {"spec": {"resourceClaims": [], "volumes": [{"name": None}]}},
    ],
    ids=["empty", "nulls", "null lists", "other types where nobody looks", "null names"],
)
async def test_odd_pods_are_left_alone(here: World, authority: Authority, obj: Any) -> None:
    for path in ("/gate", "/name"):
        assert await ask(here, authority, obj, path) == obj


async def test_unknown_fields_and_null_lists_do_not_hide_claims(here: World, authority: Authority) -> None:
    odd = {**POD["spec"], "volumes": None, "schedulingGates": None, "future": {"deep": [{"x": None}]}}
    after = await ask(here, authority, {"spec": odd})

    assert after == {"spec": {**odd, "schedulingGates": [{"name": "dra-operator.io/allocate"}]}}


async def test_the_largest_pods_are_answered(here: World, authority: Authority) -> None:
    """Larger than a server takes by default, and than etcd does."""
    large = {**POD, "metadata": {"annotations": {"a": "<" * 6_000_000}}}

    assert outcome(POD["spec"], (await ask(here, authority, large))["spec"]) == "gated"


@pytest.mark.parametrize(
    ("body", "path", "status", "words"),
    [
        (b"", "/gate", 400, "AdmissionReview"),
        (b"\xff\xfe", "/gate", 400, "AdmissionReview"),
        (b"[1, 2", "/gate", 400, "AdmissionReview"),
        (b'{"request": 5, "x', "/gate", 400, "AdmissionReview"),
        (b"[" * 100_000, "/gate", 400, "AdmissionReview"),
        (b'{"request": {"uid": "1", "x": ' + b"[" * 100_000, "/gate", 400, "nested too deeply"),
        (review({"spec": {"resourceClaims": "all"}}), "/gate", 400, "request.object.spec.resourceClaims"),
        (review(POD, uid=None), "/gate", 400, "uid"),
        (
            review({}, resource={"group": "apps", "version": "v1", "resource": "deployments"}),
            "/gate",
            404,
            "only pods",
        ),
        (review(POD), "/", 404, ""),
        (review(POD), "/gates", 404, ""),
        (b" " * (webhook.LARGEST + 1), "/gate", 413, "bytes"),
    ],
)
async def test_what_is_no_question_about_a_pod_is_refused(
    here: World, authority: Authority, body: Any, path: str, status: int, words: str
) -> None:
    """Never 500, which would be ours; and nobody is let in without the gate who might need it."""
    found, text = await post(here, authority, body, path)

    assert (found, words in text) == (status, True), text
    assert (await ask(here, authority, {})) == {}


async def test_questions_that_do_not_arrive_keep_nobody_waiting(
    here: World, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "READ_SECONDS", 0.05)
    trust = ssl.create_default_context(cafile=authority.bundle)
    reader, writer = await asyncio.open_connection("127.0.0.1", server(here).port, ssl=trust)
    writer.write(b"POST /gate HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n{")
    async with asyncio.timeout(PATIENCE):
        answer = await reader.readline()
    writer.close()

    assert b" 408 " in answer
    assert counted(here)["refused"] == 1


async def test_large_questions_wait_for_each_other_and_small_ones_for_none(
    here: World, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a crowd of them would fill the memory."""
    monkeypatch.setattr(webhook, "READ_SECONDS", PATIENCE)
    trust = ssl.create_default_context(cafile=authority.bundle)
    held = []
    for _ in range(webhook.LARGE_AT_ONCE):
        _, writer = await asyncio.open_connection("127.0.0.1", server(here).port, ssl=trust)
        writer.write(b"POST /gate HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n{")
        held.append(writer)
    await until(server(here)._large.locked)
    large = {**POD, "metadata": {"annotations": {"a": "x" * 2_000_000}}}
    waiting = asyncio.create_task(ask(here, authority, large))

    assert outcome(POD["spec"], (await ask(here, authority, POD))["spec"]) == "gated"
    assert not waiting.done()
    for writer in held:
        writer.close()
    async with asyncio.timeout(PATIENCE):
        assert outcome(POD["spec"], (await waiting)["spec"]) == "gated"


async def test_nothing_of_a_pod_gets_into_the_log(
    here: World, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2"
    spec = {**POD["spec"], "containers": [{"name": "main", "env": [{"name": "PASSWORD", "value": secret}]}]}
    with caplog.at_level(logging.DEBUG):
        await ask(here, authority, {"metadata": {"name": secret}, "spec": spec})
        await post(here, authority, review({"spec": {**spec, "resourceClaims": secret, "volumes": 3}}))
        await post(here, authority, json.dumps(review({"spec": spec})).encode()[:-9])

    assert secret not in caplog.text
    assert secret not in json.dumps(server(here).describe())


# --------------------------------------------------------------------------- the certificate


async def served_serial(here: World, authority: Authority) -> str:
    """Serial number of the certificate that a new connection gets."""
    trust = ssl.create_default_context(cafile=authority.bundle)
    _, writer = await asyncio.open_connection("127.0.0.1", server(here).port, ssl=trust)
    found = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
    writer.close()
    return str(found)


async def test_a_renewed_certificate_is_taken_without_a_restart(
    here: World, authority: Authority, folder: Path
) -> None:
    """And no connection that stands breaks."""
    trust, before = ssl.create_default_context(cafile=authority.bundle), await served_serial(here, authority)
    standing = await asyncio.open_connection("127.0.0.1", server(here).port, ssl=trust)
    assert await over(*standing) == 200
    for _ in range(2):
        authority.sign(folder)
        async with asyncio.timeout(PATIENCE):
            while await served_serial(here, authority) == before:  # noqa: ASYNC110 - files tell of no changes
                await asyncio.sleep(0.01)
        before = await served_serial(here, authority)
        assert await over(*standing) == 200
    standing[1].close()


async def over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """The status of one question over a connection that stays."""
    body = json.dumps(review(POD)).encode()
    head = f"POST /gate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    (length,) = re.findall(r"Content-Length: (\d+)", answer)
    await reader.readexactly(int(length))
    return int(answer.split()[1])


async def test_a_bad_certificate_is_told_and_the_good_one_stays(
    here: World, authority: Authority, folder: Path
) -> None:
    before = await served_serial(here, authority)
    (folder / "tls.key").write_text("no key")
    await until(lambda: server(here).certificate.trouble)

    status, text = await get(here, "/readyz")
    told = json.loads(text)["webhook"]
    assert status == 200, "pods that wait are served all the same"
    assert told["listening"] is True
    assert f"{folder}/tls.crt and tls.key beside it cannot be used" in told["trouble"]
    assert "docs/gate-webhook.md" in told["trouble"]
    assert await served_serial(here, authority) == before
    authority.sign(folder)
    await until(lambda: not server(here).certificate.trouble)
    assert await served_serial(here, authority) != before


async def test_without_a_certificate_it_works_and_is_not_ready(
    tmp_path: Path,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pods at the gate are served; the reason is in /readyz, and it needs no restart once the files are there."""
    monkeypatch.setattr(webhook, "LOOK_SECONDS", 0.02)
    folder = tmp_path / "absent"
    async with World(webhook_certificates=str(folder), webhook_port=0) as here:
        await here.start()
        reason = f"the webhook of the gate: cannot read {folder}/tls.crt: No such file or directory"
        await until(lambda: server(here).hindrance.startswith(reason))
        status, text = await get(here, "/readyz")
        assert status == 503
        assert json.loads(text)["reason"].startswith(reason)
        assert "docs/gate-webhook.md" in text
        assert [found.getMessage().startswith(reason) for found in caplog.records].count(True) == 1
        authority.sign(folder)
        await until_listening(here)
        status, text = await get(here, "/readyz")
        assert (status, json.loads(text)["webhook"]["trouble"]) == (200, "")
        assert outcome(POD["spec"], (await ask(here, authority, POD))["spec"]) == "gated"


async def test_the_end_of_the_certificate_is_a_metric(here: World) -> None:
    status, text = await get(here, "/metrics")
    (line,) = (
        found for found in text.splitlines() if "_expiry_timestamp_seconds " in found and found[0] != "#"
    )

    assert status == 200
    assert float(line.split()[1]) == server(here).certificate.expires


async def test_without_the_setting_there_is_none() -> None:
    async with World() as here:
        operator = await here.start()
        assert operator.webhook is None
        assert "webhook" not in json.loads((await get(here, "/readyz"))[1])


async def test_a_port_that_is_taken_ends_the_operator(
    here: World, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = server(here).port
    async with World(webhook_certificates=str(folder), webhook_port=port) as second:
        await second.begin()
        assert await second.ended() == 1

    assert f"--webhook-port: cannot listen on 127.0.0.1:{port}" in caplog.text


def test_one_port_cannot_be_both() -> None:
    with pytest.raises(InvalidSettings, match="--webhook-port: is the port of health and metrics, too"):
        build(webhook_certificates="x", http_port=9443)
