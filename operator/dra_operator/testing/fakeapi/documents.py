"""Paths that are no resources: health, version, discovery, OpenAPI.

Called by `http`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from dra_operator.testing.fakeapi import discovery
from dra_operator.testing.fakeapi.failures import unknown_path
from dra_operator.testing.fakeapi.objects import encoded

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kinds

_OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_HEALTH = frozenset({"healthz", "livez", "readyz"})


def document(kinds: Kinds, path: str, accept: str) -> web.Response:
    """The document at `path`.

    Raises:
        StatusError: 404.
    """
    parts = [part for part in path.split("/") if part]
    if parts and parts[0] in _HEALTH:
        return web.Response(text="ok")
    if parts in (["api"], ["apis"]) and discovery.AGGREGATED in accept:
        body = encoded(discovery.aggregated(kinds, core=parts == ["api"]))
        return web.Response(body=body, headers={"Content-Type": discovery.AGGREGATED})
    if parts == ["openapi", "v2"]:
        # An empty document in protobuf, which is no bytes: kubectl then leaves all validation to the server.
        return web.Response(body=b"", headers={"Content-Type": _OPENAPI_V2})
    found = _openapi(kinds, parts) if parts[:1] == ["openapi"] else _discovery(kinds, parts)
    return web.Response(body=encoded(found), content_type="application/json")


def _discovery(kinds: Kinds, parts: list[str]) -> Any:
    match parts:
        case ["version"]:
            return discovery.VERSION
        case ["api"]:
            return discovery.api_versions()
        case ["apis"]:
            return discovery.group_list(kinds)
        case ["apis", group]:
            return discovery.group(kinds, group)
        case ["api", version]:
            return discovery.resource_list(kinds, "", version)
        case ["apis", group, version]:
            return discovery.resource_list(kinds, group, version)
    raise unknown_path()


def _openapi(kinds: Kinds, parts: list[str]) -> Any:
    match parts:
        case ["openapi", "v3"]:
            return discovery.openapi_index(kinds)
        case ["openapi", "v3", "api", version]:
            return discovery.openapi_document(kinds, "", version)
        case ["openapi", "v3", "apis", group, version]:
            return discovery.openapi_document(kinds, group, version)
    raise unknown_path()
