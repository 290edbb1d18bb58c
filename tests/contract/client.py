"""A client as thin as possible: the contract is about what goes over the wire.

Used by the tests beside it. Knows paths and JSON, and nothing of what servers do.
"""

from __future__ import annotations

import json
import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

Obj = dict[str, Any]

REAL = os.environ.get("DRA_CONTRACT_KUBECONFIG", "")
"""The kubeconfig of a real server; empty for the embedded one."""

IDLE = "4" if REAL else "1"
"""Seconds of a watch in which an idle server has sent a bookmark: a real one does so two seconds before the end."""

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

DRA = "/apis/resource.k8s.io/v1"
CLAIM = f"{DRA}/namespaces/{{ns}}/resourceclaims"
POD = "/api/v1/namespaces/{ns}/pods"
CONFIG = "/api/v1/namespaces/{ns}/configmaps"


@dataclass(frozen=True)
class Server:
    """Where a server is, and how to speak to it."""

    url: str
    token: str
    kubeconfig: Path
    ssl: ssl.SSLContext | bool = True

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Server:
        """The server of the current context."""
        config = yaml.safe_load(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context: ssl.SSLContext | bool = True
        if authority := cluster.get("certificate-authority"):
            context = ssl.create_default_context(cafile=authority)
        elif cluster["server"].startswith("https:"):
            context = False
        return cls(cluster["server"], user["token"], path, context)


@dataclass(frozen=True)
class Answer:
    """One response."""

    code: int
    body: Any
    headers: dict[str, str]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def causes(self) -> list[Obj]:
        return list((self.body.get("details") or {}).get("causes") or [])

    @property
    def meta(self) -> Obj:
        return dict(self.body["metadata"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    def ok(self) -> Self:
        """The answer, which must be a success."""
        assert self.code < 300, self.body
        return self


class Watch:
    """One open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._lines = self._events()

    async def _events(self) -> AsyncIterator[Obj]:
        async for line in self.response.content:
            yield json.loads(line)

    async def next(self) -> Obj:
        """The next event."""
        return await anext(self._lines)

    async def rest(self) -> list[Obj]:
        """All events until the server ends the stream."""
        return [event async for event in self._lines]

    def close(self) -> None:
        """End it at once: an orderly end of TLS takes an answer of the server, for which nobody would wait."""
        connection = self.response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self.response.close()


class Client:
    """Requests to one server, in one namespace."""

    def __init__(
        self,
        server: Server,
        session: aiohttp.ClientSession,
        namespace: str,
        impersonated: tuple[str, ...] = (),
    ) -> None:
        self.server = server
        self.ns = namespace
        self._session = session
        self._impersonated = impersonated
        self._node = ""
        self._watches: list[Watch] = []

    def as_user(self, name: str, *groups: str) -> Client:
        """The same server, asked in the name of somebody else."""
        return Client(self.server, self._session, self.ns, (name, *groups))

    def as_account(self, name: str) -> Client:
        """The same server, asked in the name of a ServiceAccount of the test's namespace."""
        return self.as_user(f"system:serviceaccount:{self.ns}:{name}")

    def on_node(self, name: str) -> Client:
        """The same, with a token that says on which node its pod runs."""
        copy = Client(self.server, self._session, self.ns, self._impersonated)
        copy._node = name
        return copy

    def _headers(self) -> list[tuple[str, str]]:
        headers = [("Authorization", f"Bearer {self.server.token}"), ("User-Agent", "contract/1")]
        if self._impersonated:
            name, *groups = self._impersonated
            headers.append(("Impersonate-User", name))
            headers += [("Impersonate-Group", group) for group in groups]
        if self._node:
            headers.append(("Impersonate-Extra-authentication.kubernetes.io%2Fnode-name", self._node))
        return headers

    async def call(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str
    ) -> Answer:
        """One request; `{ns}` in the path is the test's namespace."""
        headers = self._headers()
        data = None if body is None else body if isinstance(body, str | bytes) else json.dumps(body)
        if data is not None:
            headers.append(("Content-Type", kind))
        url = self.server.url + path.format(ns=self.ns)
        async with self._session.request(
            method, url, data=data, headers=headers, params=query, ssl=self.server.ssl
        ) as response:
            text = await response.text()
            parsed = json.loads(text) if text.startswith(("{", "[")) else {"text": text}
            return Answer(response.status, parsed, dict(response.headers))

    async def get(self, path: str, **query: str) -> Answer:
        return await self.call("GET", path, **query)

    async def create(self, path: str, body: Obj, **query: str) -> Answer:
        return await self.call("POST", path, body, **query)

    async def replace(self, path: str, body: Obj, **query: str) -> Answer:
        return await self.call("PUT", path, body, **query)

    async def delete(self, path: str, body: Obj | None = None, **query: str) -> Answer:
        return await self.call("DELETE", path, body, **query)

    async def merge(self, path: str, body: Obj, **query: str) -> Answer:
        return await self.call("PATCH", path, body, kind=MERGE, **query)

    async def strategic(self, path: str, body: Obj, **query: str) -> Answer:
        return await self.call("PATCH", path, body, kind=STRATEGIC, **query)

    async def json_patch(self, path: str, body: list[Obj]) -> Answer:
        return await self.call("PATCH", path, body, kind=JSON)

    async def apply(self, path: str, body: Obj, manager: str, **query: str) -> Answer:
        return await self.call("PATCH", path, body, kind=APPLY, fieldManager=manager, **query)

    async def watch(self, path: str, **query: str) -> Watch:
        """Open a watch; it is closed with the client."""
        headers = self._headers()
        params = {"watch": "1", "timeoutSeconds": "30", **query}
        url = self.server.url + path.format(ns=self.ns)
        response = await self._session.get(url, headers=headers, params=params, ssl=self.server.ssl)
        assert response.status == 200, await response.text()
        watch = Watch(response)
        self._watches.append(watch)
        return watch

    async def close(self) -> None:
        """End the watches; a last request gives their connections the time to close."""
        for watch in self._watches:
            watch.close()
        if self._watches:
            await self.get("/version")
