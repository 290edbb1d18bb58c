"""Real kubectl as users, device owners and admins use it: mistakes, short commands, rights, explanations, differences."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tests.contract.client import CLAIM, CONFIG, DRA, POD
from tests.contract.objects import allocation, claim, config, consumer, pod

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.client import Client, Obj
    from tests.contract.kubectl import Kubectl


# --- mistakes


async def test_typo_in_a_manifest_is_refused_by_name(kubectl: Kubectl) -> None:
    body = claim()
    body["spec"]["devices"]["requests"][0]["exactly"]["counts"] = 2
    said = await kubectl("apply", "-f", "-", given=body, code=1)
    assert 'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: strict decoding error' in said
    assert 'unknown field "spec.devices.requests[0].exactly.counts"' in said


async def test_typo_is_a_warning_with_validation_by_warning(kubectl: Kubectl) -> None:
    body = {**config(), "dat": {}}
    assert await kubectl("create", "--validate=warn", "-f", "-", given=body) == "configmap/c created\n"
    second = {**config("d"), "dat": {}}
    assert await kubectl("create", "--validate=ignore", "-f", "-", given=second) == "configmap/d created\n"


async def test_invalid_claim_is_refused_with_path_and_reason(kubectl: Kubectl) -> None:
    body = claim()
    body["spec"]["devices"]["requests"] *= 2
    said = await kubectl("create", "-f", "-", given=body, code=1)
    assert 'The ResourceClaim "claim" is invalid: spec.devices.requests[1]: Duplicate value' in said


async def test_immutable_spec_is_refused(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=claim())
    said = await kubectl("apply", "-f", "-", given=claim(request="other"), code=1)
    assert 'The ResourceClaim "claim" is invalid: spec: Invalid value' in said
    assert "field is immutable" in said


async def test_unknown_kind_is_refused_by_the_client(kubectl: Kubectl) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimed", "metadata": {"name": "x"}}
    said = await kubectl("apply", "-f", "-", given=body, code=1)
    assert 'no matches for kind "ResourceClaimed" in version "resource.k8s.io/v1"' in said
    assert "ensure CRDs are installed first" in said


async def test_wrong_type_is_refused(kubectl: Kubectl) -> None:
    body = claim()
    body["spec"]["devices"]["requests"][0]["exactly"]["count"] = "two"
    said = await kubectl("create", "-f", "-", given=body, code=1)
    assert "cannot unmarshal string into Go struct field ExactDeviceRequest" in said


# --- short commands


@pytest.mark.parametrize(
    ("command", "kind", "said"),
    [
        (("create", "configmap", "x", "--from-literal=a=b"), "configmap", "configmap/x created\n"),
        (("create", "serviceaccount", "x"), "serviceaccount", "serviceaccount/x created\n"),
        (("create", "secret", "generic", "x", "--from-literal=a=b"), "secret", "secret/x created\n"),
        (
            ("create", "role", "x", "--verb=get", "--resource=pods"),
            "role",
            "role.rbac.authorization.k8s.io/x created\n",
        ),
        (
            ("create", "rolebinding", "x", "--role=x", "--user=jane"),
            "rolebinding",
            "rolebinding.rbac.authorization.k8s.io/x created\n",
        ),
    ],
)
async def test_create_of_a_kind_by_arguments(
    kubectl: Kubectl, command: tuple[str, ...], kind: str, said: str
) -> None:
    """These go over the wire in protobuf."""
    assert await kubectl(*command) == said
    assert await kubectl("get", kind, "x", "-o", "name") == said.removesuffix(" created\n") + "\n"
    assert "already exists" in await kubectl(*command, code=1)


async def test_create_namespace(api: Client, kubectl: Kubectl) -> None:
    name = f"{api.ns}-new"
    assert await kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    assert (await api.get(f"/api/v1/namespaces/{name}")).body["status"]["phase"] == "Active"
    labelled = await kubectl("label", "namespace", name, "dra-operator.io/enabled=true")
    assert labelled == f"namespace/{name} labeled\n"
    assert f'namespaces "{name}" already exists' in await kubectl("create", "namespace", name, code=1)


async def test_what_arrives_in_protobuf_is_what_was_asked_for(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "x", "--from-literal=a=b", "--from-literal=c=ß")
    await kubectl(
        "create",
        "role",
        "r",
        "--verb=get,list",
        "--resource=resourceclaims.resource.k8s.io",
        "--resource-name=n",
    )
    found = (await api.get(f"{CONFIG}/x")).body
    assert found["data"] == {"a": "b", "c": "ß"}
    role = (await api.get("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles/r")).body
    assert role["rules"] == [
        {
            "verbs": ["get", "list"],
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims"],
            "resourceNames": ["n"],
        }
    ]


async def test_delete_waits_for_finalizers(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=config(finalizers=["example.com/hold"]))
    deleting = asyncio.create_task(kubectl("delete", "configmap", "c"))
    async with asyncio.timeout(20):
        while "deletionTimestamp" not in (await api.get(f"{CONFIG}/c")).meta:  # noqa: ASYNC110 - kubectl does it
            await asyncio.sleep(0.05)
    assert not deleting.done()
    (await api.merge(f"{CONFIG}/c", {"metadata": {"finalizers": None}})).ok()
    assert 'configmap "c" deleted' in await deleting


async def test_delete_by_label_all_and_missing(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[claim("a", labels={"x": "yep"}), claim("b"), claim("c")])
    assert '"a" deleted' in await kubectl("delete", "resourceclaims", "-l", "x=yep")
    assert len((await kubectl("delete", "resourceclaims", "--all")).splitlines()) == 2
    assert "(NotFound)" in await kubectl("delete", "resourceclaim", "a", code=1)
    assert await kubectl("delete", "resourceclaim", "a", "--ignore-not-found") == ""


async def test_patches_by_type(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=pod(gates=("example.com/a", "example.com/b")))
    gone = '{"spec":{"schedulingGates":[{"$patch":"delete","name":"example.com/a"}]}}'
    assert await kubectl("patch", "pod", "p", "-p", gone) == "pod/p patched\n"
    steps = '[{"op":"remove","path":"/spec/schedulingGates/0"}]'
    assert await kubectl("patch", "pod", "p", "--type=json", "-p", steps) == "pod/p patched\n"
    assert await kubectl("patch", "pod", "p", "-p", gone) == "pod/p patched (no change)\n"
    assert await kubectl("get", "pod", "p", "-o", "jsonpath={.spec.schedulingGates}") == ""


async def test_replace_and_create_or_replace(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=config(data={"a": "1"}))
    assert await kubectl("replace", "-f", "-", given=config(data={"a": "2"})) == "configmap/c replaced\n"
    assert await kubectl("get", "configmap", "c", "-o", "jsonpath={.data.a}") == "2"


async def test_generated_names(kubectl: Kubectl) -> None:
    body = claim()
    body["metadata"] = {"generateName": "gen-"}
    said = await kubectl("create", "-f", "-", given=body)
    assert said.startswith("resourceclaim.resource.k8s.io/gen-")
    refused = await kubectl("apply", "-f", "-", given=body, code=1)
    assert "cannot use generate name with apply" in refused


async def test_list_wrapper(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "List", "items": [claim("a"), config()]}
    said = await kubectl("apply", "-f", "-", given=body)
    assert said == "resourceclaim.resource.k8s.io/a created\nconfigmap/c created\n"


# --- trying before doing


@pytest.mark.parametrize("how", ["server", "client"])
async def test_dry_run_says_so_and_stores_nothing(kubectl: Kubectl, how: str) -> None:
    said = await kubectl("apply", f"--dry-run={how}", "-f", "-", given=claim())
    assert (
        said
        == f"resourceclaim.resource.k8s.io/claim created ({'server dry run' if how == 'server' else 'dry run'})\n"
    )
    assert "(NotFound)" in await kubectl("get", "resourceclaim", "claim", code=1)


async def test_dry_run_of_a_delete_and_of_a_patch(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=claim())
    assert "(server dry run)" in await kubectl("delete", "resourceclaim", "claim", "--dry-run=server")
    patch = '{"metadata":{"labels":{"a":"b"}}}'
    await kubectl("patch", "resourceclaim", "claim", "--type=merge", "--dry-run=server", "-p", patch)
    assert "labels" not in (await api.get(f"{CLAIM}/claim")).meta


async def test_diff_shows_what_an_apply_would_change(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=config(data={"a": "1"}))
    assert await kubectl("diff", "-f", "-", given=config(data={"a": "1"})) == ""
    lines = (await kubectl("diff", "-f", "-", given=config(data={"a": "2"}), code=1)).splitlines()
    assert '-  a: "1"' in lines
    assert '+  a: "2"' in lines
    assert await kubectl("get", "configmap", "c", "-o", "jsonpath={.data.a}") == "1"


# --- looking


async def test_claims_print_their_state(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[claim("free"), claim("held"), claim("allocated")])
    for name, more in (("held", {"reservedFor": [consumer()]}), ("allocated", {})):
        status = {"allocation": allocation(), **more}
        (await api.merge(f"{CLAIM}/{name}/status", {"status": status})).ok()
    (await api.merge(f"{CLAIM}/held", {"metadata": {"finalizers": ["example.com/f"]}})).ok()
    (await api.delete(f"{CLAIM}/held")).ok()
    rows = [line.split()[:2] for line in (await kubectl("get", "resourceclaims")).splitlines()]
    assert rows == [
        ["NAME", "STATE"],
        ["allocated", "allocated"],
        ["free", "pending"],
        ["held", "deleted,allocated,reserved"],
    ]


async def test_slices_classes_rules_and_templates_print_their_columns(
    api: Client, kubectl: Kubectl, unique: str
) -> None:
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": unique},
        "spec": {
            "driver": f"{unique}.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    await kubectl("create", "-f", "-", given=slice_)
    rows = [line.split() for line in (await kubectl("get", "resourceslices", unique)).splitlines()]
    assert rows[0] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert rows[1][:4] == [unique, "n1", f"{unique}.example.com", "n1"]
    await api.delete(f"{DRA}/resourceslices/{unique}")
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": claim()["spec"]},
    }
    await kubectl("create", "-f", "-", given=template)
    assert (await kubectl("get", "resourceclaimtemplates")).splitlines()[0].split() == ["NAME", "AGE"]


@pytest.mark.usefixtures("policies")
async def test_policies_print_their_columns(kubectl: Kubectl, unique: str) -> None:
    spec = {"pools": [{"driver": "gpu.example.com"}]}
    body = {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "metadata": {"name": unique},
        "spec": spec,
    }
    await kubectl("create", "-f", "-", given=body)
    head, row = (line.split() for line in (await kubectl("get", "allocationpolicy", unique)).splitlines())
    assert head[0] == "NAME"
    assert head[-1] == "AGE"
    assert row[0] == unique
    assert {"POOLS", "DEVICES", "ALLOCATED", "READY"} <= set(head)
    assert (
        await kubectl("get", "allocpol", unique, "-o", "name")
    ).strip() == f"allocationpolicy.dra-operator.io/{unique}"


@pytest.mark.usefixtures("policies")
async def test_explain_a_policy(kubectl: Kubectl) -> None:
    text = await kubectl("explain", "allocationpolicy.spec.pools")
    assert "KIND:       AllocationPolicy" in text
    assert "driver\t<string> -required-" in text
    assert "Name of the driver" in text


async def test_explain_a_claim(kubectl: Kubectl) -> None:
    text = await kubectl("explain", "resourceclaim.spec.devices.requests.exactly")
    assert "KIND:       ResourceClaim" in text
    assert "deviceClassName\t<string>" in text
    assert "count\t<integer>" in text
    assert 'field "nope" does not exist' in await kubectl("explain", "resourceclaim.spec.nope", code=1)


async def test_events_of_a_pod(api: Client, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=pod())
    uid = (await api.get(f"{POD}/p")).meta["uid"]
    event: Obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "dra-operator",
        "reportingInstance": "dra-operator-0",
        "action": "Allocating",
        "reason": "NoSolution",
        "note": "no device is free",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": api.ns, "name": "p", "uid": uid},
    }
    (await api.create("/apis/events.k8s.io/v1/namespaces/{ns}/events", event)).ok()
    lines = (await kubectl("events", "--for=pod/p")).splitlines()
    assert lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert lines[1].split()[-7:] == ["Warning", "NoSolution", "Pod/p", "no", "device", "is", "free"]
    rows = (await kubectl("get", "events")).splitlines()
    assert rows[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "pod/p" in rows[1]


async def test_wait_for_a_condition_that_does_not_come(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=pod())
    said = await kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=1s", code=1)
    assert "timed out waiting for the condition on pods/p" in said


async def test_raw_paths(kubectl: Kubectl) -> None:
    assert await kubectl("get", "--raw", "/healthz") == "ok"
    found = json.loads(await kubectl("get", "--raw", "/apis/resource.k8s.io/v1"))
    assert found["kind"] == "APIResourceList"


# --- rights


async def test_can_i(kubectl: Kubectl) -> None:
    assert await kubectl("auth", "can-i", "create", "resourceclaims.resource.k8s.io") == "yes\n"
    asked = ("create", "resourceclaims.resource.k8s.io", "--as=jane")
    assert (await kubectl("auth", "can-i", *asked, code=1)).startswith("no")
    assert (await kubectl("auth", "can-i", "get", "/metrics", "--as=jane", code=1)).startswith("no")


async def test_forbidden_in_the_words_of_kubectl(api: Client, kubectl: Kubectl) -> None:
    said = await kubectl("get", "resourceclaims", "--as=jane", code=1)
    assert said == (
        'Error from server (Forbidden): resourceclaims.resource.k8s.io is forbidden: User "jane" cannot list resource'
        f' "resourceclaims" in API group "resource.k8s.io" in the namespace "{api.ns}"\n'
    )


async def test_user_of_one_namespace(api: Client, kubectl: Kubectl) -> None:
    """The workload operator of the docs: `edit` in a namespace, and nothing else."""
    await kubectl("create", "rolebinding", "jane", "--clusterrole=edit", "--user=jane")
    async with asyncio.timeout(20):
        while (await api.as_user("jane").get(POD)).code == 403:  # noqa: ASYNC110 - the server learns of it by itself
            await asyncio.sleep(0.05)
    await kubectl("apply", "--as=jane", "-f", "-", given=pod(gates=("dra-operator.io/allocate",)))
    assert "p" in await kubectl("get", "pods", "--as=jane")
    assert "(Forbidden)" in await kubectl("get", "pods", "--as=jane", "-n", "default", code=1)


async def test_token_of_a_service_account(kubectl: Kubectl) -> None:
    await kubectl("create", "serviceaccount", "robot")
    assert len((await kubectl("create", "token", "robot")).strip()) > 20
    assert 'serviceaccounts "nobody" not found' in await kubectl("create", "token", "nobody", code=1)


# --- kustomize


async def test_apply_of_a_kustomization(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("configMapGenerator:\n- name: settings\n  literals: [a=b]\n")
    said = await kubectl("apply", "-k", str(folder))
    assert said.startswith("configmap/settings-")
    assert said.endswith(" created\n")
    assert "deleted" in await kubectl("delete", "-k", str(folder))
