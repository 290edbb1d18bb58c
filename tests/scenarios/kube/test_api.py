"""The connection: what goes out with a request, and how failures come back."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from dra_operator import __version__
from dra_operator.errors import ApiUnauthorized, ApiUnavailable, InvalidSettings
from dra_operator.kube import Api, Connection, StaticCredentials, credentials
from dra_operator.kube.credentials import LoadedCredentials, load_credentials
from dra_operator.testing.serving import Serving

from .scripted import HANG, TOKEN, Hands, Reply, Scripted, status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UNAUTHORIZED = Reply(status(401, "Unauthorized", "Unauthorized"), 401)


async def test_requests_say_who_asks(server: Scripted, api: Api) -> None:
    server.on("GET", "/version", Reply({}))
    await api.request("GET", "/version")

    headers = server.seen[0].headers
    assert headers["User-Agent"] == f"dra-operator/{__version__}"
    assert headers["Authorization"] == f"Bearer {TOKEN}"


async def test_proxy_of_the_environment_is_ignored(
    server: Scripted, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server.on("GET", "/version", Reply({}))

    assert (await api.request("GET", "/version")).status == 200


async def test_slow_server_is_unavailable(server: Scripted, api: Api) -> None:
    server.on("GET", "/version", HANG)
    with pytest.raises(ApiUnavailable, match=r"GET /version: no answer within 0\.05 s") as caught:
        await api.request("GET", "/version", timeout=0.05)

    assert caught.value.status == 0


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_refused_connection_is_told_in_words(scheme: str) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        api = Api(StaticCredentials(Connection(f"{scheme}://{address}")))
        async with api:
            with pytest.raises(ApiUnavailable) as caught:
                await api.request("GET", "/version")

    assert str(caught.value) == (
        f"GET /version: cannot connect to {address}: Connection refused; is the API server up?"
    )


async def test_nobody_listening_is_unavailable() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        async with Api.at(f"http://127.0.0.1:{reserved.getsockname()[1]}") as api:
            with pytest.raises(ApiUnavailable):
                await api.request("GET", "/version")
            with pytest.raises(ApiUnavailable):
                await anext(api.stream("/api/v1/pods", {}, inactivity=1))


async def test_redirect_is_not_followed(server: Scripted, api: Api) -> None:
    """It would carry the token elsewhere."""
    server.on("GET", "/version", Reply(b"", 307, {"Location": f"{server.url}/elsewhere"}))
    with pytest.raises(ApiUnavailable):
        await api.request("GET", "/version")

    assert [seen.path for seen in server.seen] == ["/version"]


async def test_refused_credentials_are_renewed_once(server: Scripted, hands: Hands) -> None:
    tokens = iter(["second", "third"])

    async def load() -> Connection:
        await asyncio.sleep(0)
        return Connection(server.url, f"Bearer {next(tokens)}")

    first = Connection(server.url, "Bearer first")
    server.on("GET", "/version", UNAUTHORIZED, Reply({}), UNAUTHORIZED, UNAUTHORIZED)
    async with Api(LoadedCredentials(load, first, hands.timing())) as api:
        await api.request("GET", "/version")
        with pytest.raises(ApiUnauthorized, match="credentials are not accepted"):
            await api.request("GET", "/version")

    bearers = [seen.headers["Authorization"] for seen in server.seen]
    assert bearers == ["Bearer first", "Bearer second", "Bearer second", "Bearer third"]


async def test_token_is_read_again_every_minute_and_a_failing_source_is_told_once_and_does_not_stop_us(
    hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dra_operator")
    failure = InvalidSettings("kubeconfig", "plug-in failed")
    answers: Iterator[Connection | InvalidSettings] = iter(
        [Connection("http://s", "Bearer b"), failure, failure, Connection("http://s", "Bearer c")]
    )

    async def load() -> Connection:
        await asyncio.sleep(0)
        answer = next(answers)
        if isinstance(answer, InvalidSettings):
            raise answer
        return answer

    credentials = LoadedCredentials(load, Connection("http://s", "Bearer a"), hands.timing())
    seen = []
    for passed in (0, 59, 1, 60, 1, 60, 60):
        hands.at += passed
        seen.append((await credentials.current()).token)

    assert seen == ["a", "a", "b", "b", "b", "b", "c"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def kubeconfig(folder: Path, server: str, user: Mapping[str, object]) -> str:
    file = folder / "config"
    context = {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}
    parts = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [context],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(json.dumps(parts), encoding="utf-8")
    return str(file)


async def test_kubeconfig_with_token(server: Scripted, tmp_path: Path) -> None:
    server.on("GET", "/version", Reply({}))
    async with await Api.connect(kubeconfig(tmp_path, server.url, {"token": "from-file"})) as api:
        await api.request("GET", "/version")
        connection = await api.credentials.current()

    assert server.seen[0].headers["Authorization"] == "Bearer from-file"
    assert (connection.namespace, connection.token, "from-file" in repr(connection)) == (
        "mine",
        "from-file",
        False,
    )


async def test_kubeconfig_with_exec_plugin(server: Scripted, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "made"},
    }
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
    plugin.chmod(0o700)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    server.on("GET", "/version", Reply({}))
    async with await Api.connect(kubeconfig(tmp_path, server.url, user)) as api:
        await api.request("GET", "/version")

    assert server.seen[0].headers["Authorization"] == "Bearer made"


async def test_exec_plugin_that_fails_at_start_is_a_setting_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    with pytest.raises(InvalidSettings, match="exec: process returned 1"):
        await Api.connect(kubeconfig(tmp_path, "http://127.0.0.1:1", user))
    assert caplog.records == []


async def test_exec_plugin_whose_answer_lacks_credentials_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}
    plugin = {"apiVersion": answer["apiVersion"], "command": "echo", "args": [json.dumps(answer)]}
    async with await Api.connect(kubeconfig(tmp_path, "http://127.0.0.1:1", {"exec": plugin})):
        assert [record.getMessage()[:13] for record in caplog.records] == ["exec: missing"]


async def test_missing_kubeconfig_and_context_are_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"cannot use .*none: there is no such file"):
        await Api.connect(str(tmp_path / "none"))
    with pytest.raises(InvalidSettings, match="cannot use"):
        await Api.connect(kubeconfig(tmp_path, "http://127.0.0.1:1", {}), "elsewhere")


async def test_missing_authority_is_a_setting() -> None:
    with pytest.raises(InvalidSettings, match="TLS files"):
        Connection("https://127.0.0.1:1", ca_file="/nonexistent/ca.crt").ssl_context()


async def test_service_account_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, text in {"token": "pod-token\n", "ca.crt": "certificates", "namespace": "dra-system"}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    loaded = await load_credentials()
    (tmp_path / "token").write_text("rotated", encoding="utf-8")
    first = await loaded.current()

    assert first == Connection(
        "https://[fd00::1]:443", "Bearer pod-token", str(tmp_path / "ca.crt"), namespace="dra-system"
    )
    assert (await loaded.renew(first)).token == "rotated"


async def test_authority_that_goes_missing_later_is_unavailable(tmp_path: Path) -> None:
    connection = Connection("https://127.0.0.1:1", ca_file=str(tmp_path / "gone.crt"))
    async with Api(StaticCredentials(connection)) as api:
        with pytest.raises(ApiUnavailable, match="TLS files"):
            await api.request("GET", "/version")


CERTIFICATES = Path(__file__).parent / "certificates"
"""Two throw-away identities, each its own authority, for servers and clients alike."""


class Rotating:
    """A server that wants client certificates; and a pod's folder with its authority and the client's, renewed under the same names."""

    def __init__(self, folder: Path) -> None:
        self.files = {part: folder / f"mounted.{part}" for part in ("crt", "key")}
        self.loads = 0
        self.url = ""
        self._serving: Serving | None = None

    def mount(self, identity: str) -> None:
        for part, file in self.files.items():
            file.unlink(missing_ok=True)
            shutil.copy(CERTIFICATES / f"{identity}.{part}", file)

    async def serve(self, identity: str, port: int = 0) -> None:
        """Serve as an identity, and let in only clients of the same one."""
        await self.stop()
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATES / f"{identity}.crt")
        )
        context.load_cert_chain(CERTIFICATES / f"{identity}.crt", CERTIFICATES / f"{identity}.key")
        context.verify_mode = ssl.CERT_REQUIRED
        self._serving = Serving(web.AppRunner(self._app(), shutdown_timeout=0.1))
        await self._serving.start(port, context)
        self.url = f"https://127.0.0.1:{self._serving.port}"

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/version", self._answer)
        return app

    async def _answer(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1"})

    async def stop(self) -> None:
        if self._serving is not None:
            await self._serving.end()

    async def load(self) -> Connection:
        self.loads += 1
        crt, key = (str(self.files[part]) for part in ("crt", "key"))
        return Connection(self.url, ca_file=crt, certificate_file=crt, key_file=key)


async def test_certificates_that_are_renewed_under_the_same_names_are_used_once_the_credentials_are_read_again(
    tmp_path: Path, hands: Hands
) -> None:
    server = Rotating(tmp_path)
    server.mount("old")
    await server.serve("old")
    credentials = LoadedCredentials(server.load, await server.load(), hands.timing())
    async with Api(credentials, hands.timing()) as api:
        assert (await api.request("GET", "/version")).status == 200
        context = api._tls
        hands.at += 61
        await api.request("GET", "/version")
        assert api._tls is not None
        assert context is not None
        assert api._tls[2] is context[2], "nothing has changed: connections are kept"

        server.mount("new")
        await server.serve("new", int(server.url.rpartition(":")[2]))
        with pytest.raises(ApiUnavailable):
            await api.request("GET", "/version")
        hands.at += 61
        assert (await api.request("GET", "/version")).status == 200
    await server.stop()
