"""The server under contract: the embedded one, or the kube-apiserver that `DRA_CONTRACT_KUBECONFIG` names.

The same tests run on both; where they differ, the real one is right. Each test has a namespace of its own.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
import yaml

from dra_operator.testing.fakeapi import FakeApi
from tests.contract.client import REAL, Client, Server
from tests.contract.kubectl import Kubectl
from tests.contract.objects import DEFINITION, POLICIES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Server]:
    """The server under contract; the embedded one lives as long as the block."""
    if REAL:
        yield Server.of_kubeconfig(Path(REAL))
        return
    async with FakeApi(bookmark_seconds=0.25, rbac=True) as embedded:
        embedded.compact_every(0.5)
        yield Server.of_kubeconfig(embedded.write_kubeconfig(folder / "kubeconfig.yaml"))


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Client]:
    """A client with a namespace of its own, usable for pods."""
    timeout = aiohttp.ClientTimeout(total=60)
    async with running(tmp_path) as server, aiohttp.ClientSession(timeout=timeout) as session:
        client = Client(server, session, f"contract-{secrets.token_hex(4)}")
        await _make_namespace(client)
        try:
            yield client
        finally:
            await client.close()


async def _make_namespace(client: Client) -> None:
    """The namespace stays: both servers are thrown away. The account is made here, since waiting for a controller takes longer."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": client.ns}}
    (await client.create("/api/v1/namespaces", body)).ok()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    made = await client.create("/api/v1/namespaces/{ns}/serviceaccounts", account)
    assert made.code in (201, 409), made.body


@pytest.fixture
def kubectl(api: Client, tmp_path: Path) -> Kubectl:
    """Real kubectl in the test's namespace."""
    return Kubectl(api, tmp_path)


@pytest.fixture
async def policies(api: Client) -> Client:
    """A server that serves policies."""
    if await _is_published(api):
        return api
    created = await api.create(_CRDS, yaml.safe_load(DEFINITION.read_text()))
    assert created.code in (201, 409), created.body
    async with asyncio.timeout(30):
        while not await _is_published(api):  # noqa: ASYNC110 - no event of ours to wait for
            await asyncio.sleep(0.05)
    return api


async def _is_published(api: Client) -> bool:
    """Whether policies are served, and in the OpenAPI document, which kube-apiserver renews later."""
    document = await api.get("/openapi/v3/apis/dra-operator.io/v1alpha1")
    if document.code != 200:
        return False
    is_described = any(path.startswith(POLICIES) for path in document.body["paths"])
    return is_described and (await api.get(POLICIES)).code == 200


@pytest.fixture
def unique() -> str:
    """A suffix for the names of cluster-scoped objects."""
    return secrets.token_hex(4)
