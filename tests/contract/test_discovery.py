"""Discovery, version and health: what clients ask before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.client import DRA

if TYPE_CHECKING:
    from tests.contract.client import Client


async def test_health(api: Client) -> None:
    for path in ("/healthz", "/readyz", "/livez"):
        answer = await api.get(path)
        assert (answer.code, answer.body["text"]) == (200, "ok")


async def test_version_parses(api: Client) -> None:
    body = (await api.get("/version")).ok().body
    assert body["major"] == "1"
    assert body["gitVersion"].startswith("v1.")


async def test_groups_and_versions(api: Client) -> None:
    assert (await api.get("/api")).ok().body["versions"] == ["v1"]
    groups = {item["name"]: item for item in (await api.get("/apis")).ok().body["groups"]}
    assert groups["resource.k8s.io"]["preferredVersion"]["groupVersion"] == "resource.k8s.io/v1"
    assert {"coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io"} <= groups.keys()
    one = (await api.get("/apis/resource.k8s.io")).ok().body
    assert (one["kind"], one["name"]) == ("APIGroup", "resource.k8s.io")


async def test_resources_of_the_group(api: Client) -> None:
    body = (await api.get(DRA)).ok().body
    assert (body["kind"], body["groupVersion"]) == ("APIResourceList", "resource.k8s.io/v1")
    found = {item["name"]: item for item in body["resources"]}
    assert set(found) == {
        "deviceclasses",
        "devicetaintrules",
        "devicetaintrules/status",
        "resourceclaims",
        "resourceclaims/status",
        "resourceclaimtemplates",
        "resourceslices",
    }
    claims = found["resourceclaims"]
    assert (claims["kind"], claims["namespaced"]) == ("ResourceClaim", True)
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(claims["verbs"])
    assert not found["resourceslices"]["namespaced"]


async def test_core_resources(api: Client) -> None:
    found = {item["name"]: item for item in (await api.get("/api/v1")).ok().body["resources"]}
    assert {"pods", "pods/status", "pods/binding", "nodes", "namespaces", "events"} <= found.keys()
    assert found["pods"]["shortNames"] == ["po"]


async def test_unknown_group_is_404(api: Client) -> None:
    assert (await api.get("/apis/no.such.group")).code == 404


async def test_wrong_method_is_405(api: Client) -> None:
    refused = await api.call("PUT", "/api/v1/namespaces/{ns}/configmaps", {})
    assert (refused.code, refused.reason) == (405, "MethodNotAllowed")
