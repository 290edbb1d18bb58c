"""The operator's I/O against a real API server: what it refuses with which words, and what feeds survive."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dra_operator.cluster import Cluster
from dra_operator.errors import (
    ApiAlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiNotServed,
    ApiUnauthorized,
)
from dra_operator.kube import (
    KINDS,
    Api,
    EventWriter,
    Reader,
    Reference,
    StreamFeed,
    Writer,
    discover,
    guard,
    list_all,
)
from dra_operator.model import Pod, ResourceClaim
from tests.e2e.harness.cluster import ControlPlane, Options
from tests.e2e.harness.components import APISERVER, CONTROLLER_MANAGER, KWOK, SCHEDULER
from tests.e2e.harness.kubectl import Kubectl
from tests.e2e.harness.operator_process import POLICY_CRD
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ROOT = Path(__file__).resolve().parents[2]
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION = {
    "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-0"}]}
}
STATUS_ONLY = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: status-only}
rules:
- {apiGroups: [resource.k8s.io], resources: [resourceclaims, resourceclaims/status], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: status-only}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: status-only}
subjects: [{kind: ServiceAccount, namespace: io, name: limited}]
"""


@pytest.fixture(scope="module")
def bare() -> Iterator[ControlPlane]:
    """An API server of our own, to be killed."""
    without = frozenset({CONTROLLER_MANAGER, SCHEDULER, KWOK})
    flags = ("--disable-admission-plugins=ServiceAccount", "--etcd-compaction-interval=1s")
    with ControlPlane.start(Options(without=without, apiserver_flags=flags)) as control_plane:
        yield control_plane


@pytest.fixture
async def api(bare: ControlPlane) -> AsyncIterator[Api]:
    async with await Api.connect(str(bare.kubeconfig)) as connected:
        yield connected


@pytest.fixture
def writer(api: Api) -> Writer:
    return Writer(api)


@pytest.fixture
async def claim(writer: Writer) -> AsyncIterator[ResourceClaim]:
    created = await writer.create(
        "ResourceClaim", "default", {"metadata": {"generateName": "c-"}, "spec": SPEC}
    )
    assert isinstance(created, ResourceClaim)
    yield created
    await writer.delete("ResourceClaim", "default", created.metadata.name, uid=created.metadata.uid)


async def create_pod(writer: Writer, name: str) -> Pod:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = await writer.create("Pod", "default", body)
    assert isinstance(created, Pod)
    return created


def annotate(metadata: Any, value: str) -> dict[str, Any]:
    return guard(metadata, {"metadata": {"annotations": {"example.com/a": value}}})


async def test_missing_policy_kind_is_named_until_it_is_installed(bare: ControlPlane, api: Api) -> None:
    with pytest.raises(ApiNotServed, match="AllocationPolicy: install the custom resource definition first"):
        await discover(api)
    bare.kubectl.run("apply", "-f", str(ROOT / "crds" / "allocationpolicies.yaml"))
    await asyncio.to_thread(bare.kubectl.until_served, POLICY_CRD)
    served = await discover(api)

    assert [kind.name for kind in served.missing if kind.expected] == []


async def test_stale_and_misdirected_writes_are_conflicts(writer: Writer, claim: ResourceClaim) -> None:
    name = claim.metadata.name
    newer = await writer.patch("ResourceClaim", "default", name, annotate(claim.metadata, "1"))
    assert isinstance(newer, ResourceClaim)
    other = msgspec.structs.replace(newer.metadata, uid="another")
    for metadata in (claim.metadata, other):
        with pytest.raises(ApiConflict):
            await writer.patch("ResourceClaim", "default", name, annotate(metadata, "2"))
        with pytest.raises(ApiConflict):
            await writer.delete(
                "ResourceClaim", "default", name, uid=metadata.uid, resource_version=metadata.resource_version
            )
    with pytest.raises(ApiConflict):
        await writer.apply(
            "ResourceClaim", "default", "nobody", {"metadata": {"uid": "another"}, "spec": SPEC}
        )


async def test_names_taken_invalid_and_gone(writer: Writer, api: Api, claim: ResourceClaim) -> None:
    body = {"metadata": {"name": claim.metadata.name}, "spec": SPEC}
    with pytest.raises(ApiAlreadyExists):
        await writer.create("ResourceClaim", "default", body)
    with pytest.raises(ApiInvalid):
        await writer.create("ResourceClaim", "default", {"metadata": {"name": "NOT_VALID"}, "spec": SPEC})
    with pytest.raises(ApiNotFound):
        await Reader(api).get("ResourceClaim", "default", "nobody")


async def test_missing_binding_right_says_what_to_grant(bare: ControlPlane, claim: ResourceClaim) -> None:
    """Cp V-78: 422 on the wire, missing rights for us."""
    limited = bare.service_account("io", "limited", STATUS_ONLY)
    account = Kubectl(limited)
    await asyncio.to_thread(
        wait_until, lambda: account.may("patch", "resourceclaims.resource.k8s.io/status"), "the role is known"
    )
    async with await Api.connect(str(limited)) as api:
        body = guard(claim.metadata, {"status": {"allocation": ALLOCATION}})
        with pytest.raises(ApiForbidden, match=r"resourceclaims/binding.*grant it to the operator") as caught:
            await Writer(api).patch(
                "ResourceClaim", "default", claim.metadata.name, body, subresource="status"
            )
        with pytest.raises(ApiForbidden):
            await list_all(api, KINDS["Pod"])

    assert caught.value.status == 422


async def test_wrong_token_is_forbidden(bare: ControlPlane) -> None:
    async with await Api.connect(str(bare.write_kubeconfig("stranger", "wrong"))) as api:
        with pytest.raises(ApiUnauthorized, match="credentials are not accepted"):
            await api.request("GET", "/version")


async def test_events_count_up(bare: ControlPlane, writer: Writer, claim: ResourceClaim) -> None:
    events = EventWriter(writer, "e2e")
    for _ in range(2):
        events.emit(Reference.to("ResourceClaim", claim.metadata), "Warning", "Testing", "twice the same")
        events.emit(Reference("AllocationPolicy", "", "gpus", "u"), "Normal", "Testing", "cluster-scoped")
        await events.flush()
    found = bare.kubectl.get_all("events", "--field-selector=reason=Testing")

    assert sorted(event["involvedObject"]["kind"] for event in found) == ["AllocationPolicy", "ResourceClaim"]
    assert not events.lost


async def test_pages_add_up(writer: Writer, api: Api) -> None:
    created = [
        await writer.create("ResourceClaim", "default", {"metadata": {"name": f"page-{n}"}, "spec": SPEC})
        for n in range(7)
    ]
    listing = await list_all(api, KINDS["ResourceClaim"], namespace="default", page=3)
    for obj in created:
        assert isinstance(obj, ResourceClaim)
        await writer.delete("ResourceClaim", "default", obj.metadata.name, uid=obj.metadata.uid)

    assert listing.objects == created


class Sink(Cluster):
    """The model; whoever waits for it is woken by its changes."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()
        self.on_change(lambda _: self._news.set())

    def reject(self, kind: str, error: Exception, metadata: object, _raw: bytes = b"", /) -> None:
        raise AssertionError((kind, error, metadata))

    async def until_pods(self, *keys: str) -> None:
        async with asyncio.timeout(60):
            while set(self.pods) != set(keys):
                self._news.clear()
                await self._news.wait()


async def test_feed_outlives_the_api_server(bare: ControlPlane, api: Api, writer: Writer) -> None:
    """Killed without a word; what it missed while it could not watch, it finds out."""
    sink = Sink()
    feed = StreamFeed(api, KINDS["Pod"], sink)
    running = asyncio.create_task(feed.run())
    old = await create_pod(writer, "old")
    await sink.until_pods("default/old")
    await asyncio.to_thread(bare.kill_component, APISERVER)
    await asyncio.to_thread(bare.start_component, APISERVER)
    await writer.delete("Pod", "default", "old", uid=old.uid)
    new = await create_pod(writer, "new")
    await sink.until_pods("default/new")
    running.cancel()
    await writer.delete("Pod", "default", "new", uid=new.uid)
    with pytest.raises(asyncio.CancelledError):
        await running

    assert feed.restarts["unavailable"] > 0
