"""The stand-ins: claim controller, scheduler without allocation, kubelet, admission policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.testing import builders as b
from dra_operator.testing.fakeapi import FakeApi
from dra_operator.testing.fakeapi.options import DeleteOptions, WriteOptions
from dra_operator.testing.fakeapi.patches import MERGE
from dra_operator.testing.fakeapi.standins.claims import generate_name
from tests.unit.fakeapi.waiting import quiet, settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Obj = dict[str, Any]
DRA = "resource.k8s.io"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    """A cluster with everything but an allocator."""
    async with FakeApi(("claims", "binding", "kubelet", "gate")) as server:
        server.create(b.device_class("gpu", driver="gpu.example.com"))
        server.create(b.template("one", b.request("gpu", "gpu")))
        for name in ("n1", "n2"):
            server.create(b.node(name))
        yield server


def _patch(api: FakeApi, plural: str, name: str, patch: Obj, subresource: str = "") -> Obj:
    group = DRA if plural.startswith("resource") else ""
    kind = api.machinery.kinds.named(plural, group)
    options = WriteOptions("test", subresource)
    return api.machinery.patch(kind, ("default", name), MERGE, patch, options)[0].obj


def _pod(api: FakeApi, name: str) -> Obj:
    return next(pod for pod in api.objects("pods") if pod["metadata"]["name"] == name)


def _claims(api: FakeApi) -> list[Obj]:
    return api.objects("resourceclaims", DRA)


def _consumer(pod: Obj) -> Obj:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


def _allocate(api: FakeApi, claim: Obj, node: str, *consumers: Obj) -> None:
    """What the operator does: finalizer, then allocation and reservation."""
    name = claim["metadata"]["name"]
    finalizers = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    _patch(api, "resourceclaims", name, finalizers)
    allocation = b.allocation(b.result("gpu", "gpu.example.com", node, "gpu-0"), node=node)
    status = {"allocation": allocation, "reservedFor": [_consumer(pod) for pod in consumers]}
    _patch(api, "resourceclaims", name, {"status": status}, "status")


def _release(api: FakeApi, name: str, node: str) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": b.on_node(node)}
    _patch(api, "pods", name, {"spec": {"schedulingGates": None, "affinity": {"nodeAffinity": required}}})


def _delete(api: FakeApi, plural: str, name: str, **options: Any) -> None:
    kind = api.machinery.kinds.named(plural, DRA if plural.startswith("resource") else "")
    api.machinery.delete(kind, ("default", name), DeleteOptions(**options))


async def test_claim_is_generated_and_recorded(api: FakeApi) -> None:
    """Cp C-26, C-40: annotation, one controller reference, no finalizer, spec of the template."""
    pod = api.create(b.pod("p", b.pod_claim("gpu", template="one"), gates=[b.GATE]))
    await settled(lambda: bool(_pod(api, "p")["status"].get("resourceClaimStatuses")))
    (claim,) = _claims(api)
    metadata = claim["metadata"]
    assert metadata["generateName"] == "p-gpu-"
    assert metadata["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
    ]
    assert "finalizers" not in metadata
    assert claim["spec"] == api.objects("resourceclaimtemplates", DRA)[0]["spec"]["spec"]
    statuses = _pod(api, "p")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": metadata["name"]}]


def test_generate_name_is_shared_out_when_too_long() -> None:
    """Cp C-27."""
    assert generate_name("pod", "gpu") == "pod-gpu-"
    assert generate_name("p" * 60, "c" * 10) == "p" * 47 + "-" + "c" * 7


async def test_template_that_comes_late_is_seen(api: FakeApi) -> None:
    """Cp C-7, C-60."""
    api.create(b.pod("p", b.pod_claim("gpu", template="late"), gates=[b.GATE]))
    await settled(lambda: bool(api.objects("events")))
    (event,) = api.objects("events")
    assert event["reason"] == "FailedResourceClaimCreation"
    assert event["message"].startswith("PodResourceClaim gpu: ")
    api.create(b.template("late", b.request("gpu", "gpu")))
    await settled(lambda: len(_claims(api)) == 1)


async def test_claim_deleted_by_hand_is_generated_again(api: FakeApi) -> None:
    """Cp C-82."""
    api.create(b.pod("p", b.pod_claim("gpu", template="one"), gates=[b.GATE]))
    await settled(lambda: bool(_pod(api, "p")["status"].get("resourceClaimStatuses")))
    first = _claims(api)[0]["metadata"]["name"]
    _delete(api, "resourceclaims", first)
    await settled(lambda: [claim["metadata"]["name"] for claim in _claims(api)] not in ([], [first]))
    await quiet()
    (entry,) = _pod(api, "p")["status"]["resourceClaimStatuses"]
    assert entry["resourceClaimName"] == _claims(api)[0]["metadata"]["name"]


async def test_pod_lives_from_gate_to_release(api: FakeApi) -> None:
    """The whole way: generated, allocated by somebody, released, bound, running, deleted, device free."""
    api.create(b.pod("p", b.pod_claim("gpu", template="one"), gates=[b.GATE]))
    await settled(lambda: bool(_pod(api, "p")["status"].get("resourceClaimStatuses")))
    _allocate(api, _claims(api)[0], "n2", _pod(api, "p"))
    await quiet()
    assert "nodeName" not in _pod(api, "p")["spec"]
    _release(api, "p", "n2")
    await settled(lambda: _pod(api, "p")["status"]["phase"] == "Running")
    assert _pod(api, "p")["spec"]["nodeName"] == "n2"
    _delete(api, "pods", "p")
    await settled(lambda: not api.objects("pods") and not _claims(api))


async def test_unallocated_claim_keeps_a_pod_from_being_bound(api: FakeApi) -> None:
    api.create(b.pod("p", b.pod_claim("gpu", template="one")))
    await settled(lambda: bool(_pod(api, "p")["status"].get("conditions")))
    (condition,) = _pod(api, "p")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )


async def test_allocated_claim_is_reserved_by_the_scheduler(api: FakeApi) -> None:
    """Cp I-3: a second pod on a shared claim."""
    api.create(b.claim("shared", b.request("gpu", "gpu")))
    first = api.create(b.pod("a", b.pod_claim("gpu", claim="shared"), gates=[b.GATE]))
    _allocate(api, _claims(api)[0], "n2", first)
    api.create(b.pod("b", b.pod_claim("gpu", claim="shared")))
    await settled(lambda: _pod(api, "b")["status"]["phase"] == "Running")
    assert _pod(api, "b")["spec"]["nodeName"] == "n2"
    names = [consumer["name"] for consumer in _claims(api)[0]["status"]["reservedFor"]]
    assert names == ["a", "b"]


async def test_shared_claim_is_freed_when_its_last_pod_goes(api: FakeApi) -> None:
    """Cp C-62, C-86: reservation by reservation; then allocation and finalizer; the user's claim stays."""
    api.create(b.claim("shared", b.request("gpu", "gpu")))
    pods = [
        api.create(b.pod(name, b.pod_claim("gpu", claim="shared"), gates=[b.GATE])) for name in ("a", "b")
    ]
    _allocate(api, _claims(api)[0], "n1", *pods)
    _delete(api, "pods", "a")
    await settled(lambda: len(_claims(api)[0]["status"]["reservedFor"]) == 1)
    assert "allocation" in _claims(api)[0]["status"]
    _delete(api, "pods", "b")
    await settled(lambda: "allocation" not in _claims(api)[0]["status"])
    await quiet()
    assert not _claims(api)[0]["metadata"].get("finalizers")


async def test_without_the_finalizer_an_allocation_is_left_in_place(api: FakeApi) -> None:
    """Cp C-62."""
    api.create(b.claim("c", b.request("gpu", "gpu")))
    pod = api.create(b.pod("a", b.pod_claim("gpu", claim="c"), gates=[b.GATE]))
    allocation = b.allocation(b.result("gpu", "gpu.example.com", "n1", "gpu-0"), node="n1")
    status = {"allocation": allocation, "reservedFor": [_consumer(pod)]}
    _patch(api, "resourceclaims", "c", {"status": status}, "status")
    _delete(api, "pods", "a")
    await settled(lambda: not _claims(api)[0]["status"].get("reservedFor"))
    await quiet()
    assert _claims(api)[0]["status"]["allocation"] == allocation


async def test_consumer_of_an_unknown_kind_is_kept(api: FakeApi) -> None:
    """Cp C-61, C-87."""
    api.create(b.claim("c", b.request("gpu", "gpu")))
    pod = api.create(b.pod("a", b.pod_claim("gpu", claim="c"), gates=[b.GATE]))
    _allocate(api, _claims(api)[0], "n1", pod)
    other = {"apiGroup": "dra-operator.io", "resource": "deviceholds", "name": "h", "uid": "h-uid"}
    _patch(api, "resourceclaims", "c", {"status": {"reservedFor": [_consumer(pod), other]}}, "status")
    _delete(api, "pods", "a")
    await settled(lambda: _claims(api)[0]["status"]["reservedFor"] == [other])
    await quiet()
    assert "allocation" in _claims(api)[0]["status"]


async def test_terminal_pod_frees_its_generated_claim(api: FakeApi) -> None:
    """Cp C-65, C-67."""
    api.create(b.pod("p", b.pod_claim("gpu", template="one"), gates=[b.GATE]))
    await settled(lambda: bool(_pod(api, "p")["status"].get("resourceClaimStatuses")))
    _allocate(api, _claims(api)[0], "n1", _pod(api, "p"))
    _patch(api, "pods", "p", {"status": {"phase": "Succeeded"}}, "status")
    await settled(lambda: not _claims(api))


async def test_bound_pod_gets_its_reservation(api: FakeApi) -> None:
    """Cp C-50."""
    api.create(b.claim("c", b.request("gpu", "gpu")))
    _allocate(api, _claims(api)[0], "n1")
    api.create(b.pod("p", b.pod_claim("gpu", claim="c"), nodeName="n1"))
    await settled(lambda: _pod(api, "p")["status"]["phase"] == "Running")
    assert [item["name"] for item in _claims(api)[0]["status"]["reservedFor"]] == ["p"]


async def test_kubelet_refuses_a_claim_of_another_node(api: FakeApi) -> None:
    """Cp K-1, and what a real kubelet does that a mere binding does not check."""
    api.create(b.claim("c", b.request("gpu", "gpu")))
    _allocate(api, _claims(api)[0], "n1")
    api.create(b.pod("p", b.pod_claim("gpu", claim="c"), nodeName="n2"))
    await settled(lambda: bool(api.objects("events")))
    await quiet()
    assert _pod(api, "p")["status"]["phase"] == "Pending"
    assert api.objects("events")[-1]["message"] == "claim c is allocated for another node"


@pytest.mark.parametrize(
    ("node", "spec"),
    [
        (b.node("odd", taints=[{"key": "x", "effect": "NoSchedule"}]), {}),
        (b.node("odd", ready=False), {}),
        ({**b.node("odd"), "spec": {"unschedulable": True}}, {}),
        (b.node("odd", allocatable={"cpu": "100m"}), {}),
        (b.node("odd"), {"nodeSelector": {"zone": "a"}}),
    ],
    ids=["tainted", "not ready", "cordoned", "too small", "not selected"],
)
async def test_pinned_pod_waits_while_its_node_does_not_admit_it(node: Obj, spec: Obj) -> None:
    """Real control plane 6b: Pending, allocation and reservation kept."""
    async with FakeApi(("binding",)) as api:
        api.create(node)
        api.create(b.node("n1"))
        required = {"requiredDuringSchedulingIgnoredDuringExecution": b.on_node("odd")}
        affinity = {"nodeAffinity": required}
        api.create(b.pod("p", requests={"cpu": "1"}, affinity=affinity, **spec))
        await settled(lambda: bool(_pod(api, "p")["status"].get("conditions")))
        assert "nodeName" not in _pod(api, "p")["spec"]


async def test_scheduler_binds_tolerating_pods_and_counts_what_runs() -> None:
    async with FakeApi(("binding",)) as api:
        taint = {"key": "x", "value": "y", "effect": "NoSchedule"}
        api.create(b.node("n1", taints=[taint], allocatable={"cpu": "1500m"}))
        tolerations = [{"key": "x", "operator": "Exists"}]
        for name in ("a", "b"):
            api.create(b.pod(name, requests={"cpu": "1"}, tolerations=tolerations))
        await settled(lambda: bool(_pod(api, "b")["status"].get("conditions")))
        assert _pod(api, "a")["spec"]["nodeName"] == "n1"
        assert "nodeName" not in _pod(api, "b")["spec"]


async def test_pods_of_other_schedulers_are_left_alone(api: FakeApi) -> None:
    api.create(b.pod("p", schedulerName="dra-operator"))
    await quiet()
    assert _pod(api, "p")["status"].get("conditions") is None


async def test_new_node_becomes_ready(api: FakeApi) -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fresh"}}
    api.create(bare)
    await settled(
        lambda: any(
            node["metadata"]["name"] == "fresh" and node.get("status", {}).get("conditions")
            for node in api.objects("nodes")
        )
    )


async def test_admission_gates_pods_with_claims_in_enabled_namespaces(api: FakeApi) -> None:
    api.create(b.namespace("on", enabled=True))
    claim = b.pod_claim("gpu", template="one")
    gated = api.create(b.pod("p", claim, namespace="on", gates=["example.com/other"]), "on")
    assert gated["spec"]["schedulingGates"] == [{"name": "example.com/other"}, {"name": b.GATE}]
    assert "schedulingGates" not in api.create(b.pod("plain", namespace="on"), "on")["spec"]
    assert "schedulingGates" not in api.create(b.pod("elsewhere", claim))["spec"]
