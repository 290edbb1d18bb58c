"""Real kubectl: the verbs of the demo and of the end-to-end tests."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import yaml

from tests.contract.client import POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client
    from tests.contract.kubectl import Kubectl


async def test_apply_creates_updates_and_says_unchanged(kubectl: Kubectl) -> None:
    first = config(data={"a": "1", "b": "2"})
    assert await kubectl("apply", "-f", "-", given=first) == "configmap/c created\n"
    assert await kubectl("apply", "-f", "-", given=first) == "configmap/c unchanged\n"
    assert await kubectl("apply", "-f", "-", given=config(data={"a": "3"})) == "configmap/c configured\n"
    assert json.loads(await kubectl("get", "configmap", "c", "-o", "jsonpath={.data}")) == {"a": "3"}


async def test_server_side_apply_and_its_conflict(kubectl: Kubectl) -> None:
    first, second = config(data={"a": "1"}), config(data={"a": "2"})
    assert (
        await kubectl("apply", "--server-side", "-f", "-", given=first) == "configmap/c serverside-applied\n"
    )
    refused = await kubectl(
        "apply", "--server-side", "--field-manager=other", "-f", "-", given=second, code=1
    )
    assert "Apply failed with 1 conflict" in refused
    await kubectl(
        "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", given=second
    )


async def test_server_side_apply_after_client_side_apply(kubectl: Kubectl) -> None:
    body = config(data={"a": "1"})
    await kubectl("apply", "-f", "-", given=body)
    await kubectl("apply", "--server-side", "-f", "-", given=body)
    await kubectl("apply", "--server-side", "-f", "-", given=config(data={"b": "2"}))
    assert json.loads(await kubectl("get", "configmap", "c", "-o", "jsonpath={.data}")) == {"b": "2"}


async def test_apply_of_pods_and_claims(kubectl: Kubectl) -> None:
    bodies = [
        claim(),
        pod(gates=("dra-operator.io/allocate",), claims=({"name": "a", "resourceClaimName": "claim"},)),
    ]
    said = await kubectl("apply", "-f", "-", given=bodies)
    assert said == "resourceclaim.resource.k8s.io/claim created\npod/p created\n"
    again = await kubectl("apply", "-f", "-", given=bodies)
    assert again.endswith("pod/p unchanged\n")


async def test_create_and_delete(kubectl: Kubectl) -> None:
    assert (
        await kubectl("create", "-f", "-", given=claim()) == "resourceclaim.resource.k8s.io/claim created\n"
    )
    refused = await kubectl("create", "-f", "-", given=claim(), code=1)
    assert "(AlreadyExists)" in refused
    assert 'resourceclaims.resource.k8s.io "claim" already exists' in refused
    assert "deleted" in await kubectl("delete", "resourceclaim", "claim")
    assert "(NotFound)" in await kubectl("get", "resourceclaim", "claim", code=1)


async def test_get_prints_tables(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[claim(), pod(gates=("example.com/wait",))])
    rows = [line.split() for line in (await kubectl("get", "pods")).splitlines()]
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert rows[1][:4] == ["p", "0/1", "SchedulingGated", "0"]
    wide = (await kubectl("get", "pods", "-o", "wide")).splitlines()[0].split()
    assert wide[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    claims = [line.split() for line in (await kubectl("get", "resourceclaims")).splitlines()]
    assert claims[0] == ["NAME", "STATE", "AGE"]
    assert claims[1][:2] == ["claim", "pending"]


async def test_get_as_yaml_json_and_names(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=config(data={"a": "1"}))
    assert yaml.safe_load(await kubectl("get", "configmap", "c", "-o", "yaml"))["data"] == {"a": "1"}
    listed = json.loads(await kubectl("get", "configmaps", "-o", "json"))
    assert "c" in [item["metadata"]["name"] for item in listed["items"]]
    assert "configmap/c\n" in await kubectl("get", "configmaps", "-o", "name")


async def test_label_annotate_and_select(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[config("c"), config("d")])
    assert await kubectl("label", "configmap", "c", "a=b") == "configmap/c labeled\n"
    assert await kubectl("annotate", "configmap", "c", "x=y") == "configmap/c annotated\n"
    assert await kubectl("get", "configmaps", "-l", "a=b", "-o", "name") == "configmap/c\n"
    assert await kubectl("label", "configmap", "c", "a-") == "configmap/c unlabeled\n"


async def test_describe_shows_the_pod_its_claims_and_events(api: Client, kubectl: Kubectl) -> None:
    entry = {"name": "a", "resourceClaimName": "claim"}
    await kubectl("create", "-f", "-", given=[claim(), pod(claims=(entry,))])
    uid = (await api.get(f"{POD}/p")).meta["uid"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": api.ns, "name": "p", "uid": uid},
        "reason": "NoSolution",
        "message": "no device is free",
        "type": "Warning",
        "source": {"component": "dra-operator"},
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    (await api.create("/api/v1/namespaces/{ns}/events", event)).ok()
    text = await kubectl("describe", "pod", "p")
    assert "Name:             p" in text
    assert "no device is free" in text
    assert "Device Class Name:" in await kubectl("describe", "resourceclaim", "claim")


async def test_wait_for_condition_field_and_deletion(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[config(), pod(nodeName="n1")])
    waiting = asyncio.create_task(kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=20s"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    (await api.strategic(f"{POD}/p/status", ready)).ok()
    assert await waiting == "pod/p condition met\n"
    await kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Running", "--timeout=20s")
    leaving = asyncio.create_task(kubectl("wait", "configmap/c", "--for=delete", "--timeout=20s"))
    (await api.delete("/api/v1/namespaces/{ns}/configmaps/c")).ok()
    await leaving


async def test_get_watches(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=pod(gates=("example.com/wait",)))
    process = await kubectl.start("get", "pods", "--watch")
    assert process.stdout is not None
    try:
        heading, first = [(await process.stdout.readline()).split() for _ in range(2)]
        assert heading[:3] == [b"NAME", b"READY", b"STATUS"]
        assert first[:3] == [b"p", b"0/1", b"SchedulingGated"]
        (await api.merge(f"{POD}/p/status", {"status": {"phase": "Running", "conditions": None}})).ok()
        assert (await process.stdout.readline()).split()[:3] == [b"p", b"0/1", b"Running"]
    finally:
        process.terminate()
        await process.wait()


async def test_patch_of_the_status_subresource(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=pod())
    patch = '{"status":{"message":"hello"}}'
    await kubectl("patch", "pod", "p", "--subresource=status", "--type=merge", "-p", patch)
    assert await kubectl("get", "pod", "p", "-o", "jsonpath={.status.message}") == "hello"


async def test_api_resources_and_version(kubectl: Kubectl) -> None:
    names = await kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name")
    assert names.split() == [
        f"{plural}.resource.k8s.io"
        for plural in (
            "deviceclasses",
            "devicetaintrules",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        )
    ]
    assert json.loads(await kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"
