"""Discovery documents, plain and aggregated, and enough OpenAPI for kubectl.

Called by `http`. Everything is derived from the registry of kinds, so that a custom definition shows up at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import unknown_path
from dra_operator.testing.fakeapi.openapi import schemas_of

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind, Kinds
    from dra_operator.testing.fakeapi.objects import Obj

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]

VERSION: Obj = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0-fakeapi",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}


def api_versions() -> Obj:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Kinds) -> Obj:
    """`/apis`."""
    groups = [_group(name, versions) for name, versions in kinds.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Kinds, name: str) -> Obj:
    """`/apis/GROUP`.

    Raises:
        StatusError: 404.
    """
    versions = kinds.groups().get(name)
    if not name or not versions:
        raise unknown_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: Kinds, group_name: str, version: str) -> Obj:
    """`/api/v1` or `/apis/GROUP/VERSION`.

    Raises:
        StatusError: 404.
    """
    rows = [row for kind in _in(kinds, group_name, version) for row in _resources(kind)]
    if not rows:
        raise unknown_path()
    name = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": rows}


def _in(kinds: Kinds, group_name: str, version: str) -> list[Kind]:
    return [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]


def _resources(kind: Kind) -> list[Obj]:
    main: Obj = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    main |= {"kind": kind.kind, "verbs": _VERBS}
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    return [main, *(_subresource(kind, name, of, verbs) for name, of, verbs in _subresources(kind))]


def _subresources(kind: Kind) -> list[tuple[str, str, list[str]]]:
    status = [("status", kind.kind, _STATUS_VERBS)] if kind.status else []
    return [*status, *((name, of, ["create"]) for name, of in kind.subresources)]


def _subresource(kind: Kind, name: str, of: str, verbs: list[str]) -> Obj:
    path = f"{kind.plural}/{name}"
    return {"name": path, "singularName": "", "namespaced": kind.namespaced, "kind": of, "verbs": verbs}


def aggregated(kinds: Kinds, *, core: bool) -> Obj:
    """`/api` or `/apis` for clients that ask for everything at once (kubectl does)."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None},
            "versions": [_version(kinds, name, v) for v in versions],
        }
        for name, versions in kinds.groups().items()
        if (not name) == core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _version(kinds: Kinds, group_name: str, version: str) -> Obj:
    resources = [_aggregated_resource(kind) for kind in _in(kinds, group_name, version)]
    return {"version": version, "freshness": "Current", "resources": resources}


def _aggregated_resource(kind: Kind) -> Obj:
    found: Obj = {
        "resource": kind.plural,
        "singularResource": kind.singular,
        "responseKind": _response(kind, kind.kind),
    }
    found |= {"scope": "Namespaced" if kind.namespaced else "Cluster", "verbs": _VERBS}
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    below = [
        {"subresource": name, "responseKind": _response(kind, of), "verbs": verbs}
        for name, of, verbs in _subresources(kind)
    ]
    if below:
        found["subresources"] = below
    return found


def _response(kind: Kind, name: str) -> Obj:
    return {"group": kind.group, "version": kind.version, "kind": name}


def openapi_index(kinds: Kinds) -> Obj:
    """`/openapi/v3`."""
    paths = {
        _openapi_path(name, version): {"serverRelativeURL": f"/openapi/v3/{_openapi_path(name, version)}"}
        for name, versions in kinds.groups().items()
        for version in versions
    }
    return {"paths": paths}


def _openapi_path(group_name: str, version: str) -> str:
    return f"apis/{group_name}/{version}" if group_name else f"api/{version}"


def openapi_document(kinds: Kinds, group_name: str, version: str) -> Obj:
    """`/openapi/v3/…`: a PATCH path for each kind, with what kubectl apply looks for, and the schemas (`openapi`).

    Raises:
        StatusError: 404.
    """
    found = _in(kinds, group_name, version)
    if not found:
        raise unknown_path()
    prefix = f"/{_openapi_path(group_name, version)}"
    paths = {_object_path(prefix, kind): {"patch": _patch_operation(kind)} for kind in found}
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas_of(found)}}


def _object_path(prefix: str, kind: Kind) -> str:
    return (
        f"{prefix}/namespaces/{{namespace}}/{kind.plural}/{{name}}"
        if kind.namespaced
        else f"{prefix}/{kind.plural}/{{name}}"
    )


def _patch_operation(kind: Kind) -> Obj:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    return {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "OK"}},
    }
