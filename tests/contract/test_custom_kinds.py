"""Custom resource definitions: served at once, defaulted, checked, with a status of their own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.contract.client import STRATEGIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.client import Client, Obj

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _definition(group: str) -> Obj:
    spec = {
        "type": "object",
        "required": ["driver"],
        "properties": {
            "driver": {"type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[a-z.]+$"},
            "order": {"type": "string", "enum": ["FirstFit", "Packed"], "default": "FirstFit"},
            "count": {"type": "integer", "minimum": 1, "maximum": 5},
            "names": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        },
    }
    condition = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
    }
    conditions = {
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status = {"type": "object", "properties": {"pools": {"type": "integer"}, "conditions": conditions}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    columns = [
        {"name": "Driver", "type": "string", "jsonPath": ".spec.driver"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


def _widget(group: str, **spec: Any) -> Obj:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"driver": "gpu.example", **spec},
    }


@asynccontextmanager
async def _served(api: Client, group: str) -> AsyncIterator[str]:
    """The path of the kind, once the server says that it is established and discovery shows it."""
    name = f"widgets.{group}"
    (await api.create(CRDS, _definition(group))).ok()
    try:
        async with asyncio.timeout(30):
            while not await _established(api, name, group):  # noqa: ASYNC110 - no event of ours to wait for
                await asyncio.sleep(0.05)
        yield f"/apis/{group}/v1alpha1/widgets"
    finally:
        await api.delete(f"{CRDS}/{name}")


async def _established(api: Client, name: str, group: str) -> bool:
    crd = (await api.get(f"{CRDS}/{name}")).ok().body
    states = {item["type"]: item["status"] for item in (crd.get("status") or {}).get("conditions") or ()}
    listed = await api.get(f"/apis/{group}/v1alpha1/widgets")
    return states.get("Established") == "True" and listed.code == 200


async def test_definition_serves_its_kind_with_defaults(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        created = (await api.create(path, _widget(group))).ok()
        assert created.body["spec"] == {"driver": "gpu.example", "order": "FirstFit"}
        assert created.meta["generation"] == 1
        async with asyncio.timeout(30):
            while (found := await api.get(f"/apis/{group}/v1alpha1")).code == 404:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        names = sorted(item["name"] for item in found.body["resources"])
        assert names == ["widgets", "widgets/status"]


async def test_custom_objects_are_checked_by_their_schema(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        for spec, field, reason in (
            ({"driver": None}, "spec.driver", "FieldValueRequired"),
            ({"driver": ""}, "spec.driver", "FieldValueInvalid"),
            ({"driver": "UPPER"}, "spec.driver", "FieldValueInvalid"),
            ({"order": "Random"}, "spec.order", "FieldValueNotSupported"),
            ({"count": 0}, "spec.count", "FieldValueInvalid"),
            ({"count": "one"}, "spec.count", "FieldValueTypeInvalid"),
            ({"names": ["a", "b", "c"]}, "spec.names", "FieldValueTooMany"),
        ):
            body = _widget(group, **spec)
            body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
            refused = await api.create(path, body)
            assert (refused.code, refused.reason) == (422, "Invalid")
            assert (refused.causes[0]["field"], refused.causes[0]["reason"]) == (field, reason)


async def test_status_of_custom_objects_is_isolated(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        created = (await api.create(path, {**_widget(group), "status": {"pools": 1}})).ok()
        assert "status" not in created.body
        body = {"metadata": {"labels": {"a": "b"}}, "spec": {"order": "Packed"}, "status": {"pools": 2}}
        written = (await api.merge(f"{path}/w/status", body)).ok()
        assert written.body["status"] == {"pools": 2}
        assert written.body["spec"] == created.body["spec"]
        assert "labels" not in written.meta
        assert written.meta["generation"] == 1
        changed = (await api.merge(f"{path}/w", {"spec": {"order": "Packed"}, "status": None})).ok()
        assert changed.body["status"] == {"pools": 2}
        assert changed.meta["generation"] == 2


async def test_custom_objects_need_a_version_for_replace(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        (await api.create(path, _widget(group))).ok()
        refused = await api.replace(f"{path}/w", _widget(group, count=2))
        assert [cause["field"] for cause in refused.causes] == ["metadata.resourceVersion"]


async def test_custom_objects_take_no_strategic_patch(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        (await api.create(path, _widget(group))).ok()
        refused = await api.call("PATCH", f"{path}/w", {"spec": {"count": 2}}, kind=STRATEGIC)
        assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")


async def test_apply_merges_lists_that_the_schema_declares_as_maps(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        (await api.apply(f"{path}/w", _widget(group), "user")).ok()
        for manager, name in (("one", "Ready"), ("two", "Settling")):
            body = _widget(group)
            del body["spec"]
            body["status"] = {"conditions": [{"type": name, "status": "True"}]}
            (await api.apply(f"{path}/w/status", body, manager)).ok()
        conditions = (await api.get(f"{path}/w")).body["status"]["conditions"]
        assert [item["type"] for item in conditions] == ["Ready", "Settling"]


async def test_watch_of_a_custom_kind(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        version = (await api.get(path)).version
        watch = await api.watch(path, resourceVersion=version)
        (await api.create(path, _widget(group))).ok()
        event = await watch.next()
        assert (event["type"], event["object"]["kind"]) == ("ADDED", "Widget")


async def test_watch_from_before_the_server_s_history_is_told_410(api: Client, unique: str) -> None:
    """The stream opens with 200 and says ERROR. History of a kind begins when it is served, hence the custom kind."""
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        watch = await api.watch(path, resourceVersion="1")
        event = await watch.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["kind"], event["object"]["code"]) == ("Status", 410)
        assert event["object"]["reason"] == "Expired"
        assert event["object"]["message"].startswith("too old resource version: 1 (")


async def test_deleted_definition_takes_its_objects_along(api: Client, unique: str) -> None:
    group = f"g{unique}.example.com"
    async with _served(api, group) as path:
        (await api.create(path, _widget(group))).ok()
        (await api.delete(f"{CRDS}/widgets.{group}")).ok()
        async with asyncio.timeout(30):
            while (await api.get(path)).code != 404:  # noqa: ASYNC110 - no event of ours to wait for
                await asyncio.sleep(0.05)
