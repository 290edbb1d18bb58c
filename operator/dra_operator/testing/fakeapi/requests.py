"""Request paths, bodies and verbs, read into one value.

Called by `http`. Knows the path grammar of Kubernetes and nothing of what is done with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.access import ADMIN, Identity
from dra_operator.testing.fakeapi.faults import Call, Spoil
from dra_operator.testing.fakeapi.objects import Key, decoded
from dra_operator.testing.fakeapi.patches import APPLY, JSON, MERGE, STRATEGIC
from dra_operator.testing.fakeapi.protobuf import MEDIA_TYPE, decoded_protobuf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VERBS: Mapping[str, str] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a collection, an object, or a subresource of one."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    who: Identity = ADMIN
    """Who asks, once the door has found out."""
    spoil: Spoil | None = None
    """What is to become of a watch, if the weather is bad."""

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return self.namespace, self.name

    def call(self, method: str, query: Mapping[str, str], user_agent: str) -> Call:
        """The request as faults and the log see it."""
        return Call(
            verb=_verb(method, self.name, query),
            plural=self.plural,
            group=self.group,
            namespace=self.namespace,
            name=self.name,
            subresource=self.subresource,
            user_agent=user_agent,
        )


def _verb(method: str, name: str, query: Mapping[str, str]) -> str:
    if method == "GET":
        if query.get("watch") in ("1", "true"):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


def target(path: str) -> Target | None:
    """The target of a resource path; None for any other path."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        return _below("", parts[1], parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _below(parts[1], parts[2], parts[3:])
    return None


def _below(group: str, version: str, rest: list[str]) -> Target | None:
    namespace = ""
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (rest[2] in ("status", "finalize") and len(rest) == 3)
    ):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource)


def parsed_body(raw: bytes, media_type: str) -> Any:
    """The body of a request; YAML where that is allowed.

    Raises:
        StatusError: 400 (it does not parse), 415 (protobuf or anything else).
    """
    if not raw.strip():
        return {}
    try:
        if media_type in ("application/yaml", APPLY):
            return yaml.safe_load(raw)
        if media_type in ("application/json", "", JSON, MERGE, STRATEGIC, "application/octet-stream"):
            return decoded(raw)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise failures.bad_request(f"error decoding the body: {error}") from error
    if media_type == MEDIA_TYPE:
        return decoded_protobuf(raw)
    raise failures.unsupported_media_type(("application/json", "application/yaml"))


class _Twice(dict[str, Any]):
    """A JSON object in which `fields` occurred more than once."""

    fields: tuple[str, ...] = ()


def duplicate_fields(raw: bytes) -> list[str]:
    """Paths of the fields that a JSON text has twice in one object; none where it is no JSON."""
    seen: list[_Twice] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = _Twice(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            found.fields = tuple(name for name in found if names.count(name) > 1)
            seen.append(found)
        return found

    try:
        body = json.loads(raw or b"{}", object_pairs_hook=collect)
    except ValueError:
        return []
    return list(_paths_of_twice(body, "")) if seen else []


def _paths_of_twice(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Twice):
        for name in value.fields:
            yield f"{path}{name}"
        for name, item in value.items():
            yield from _paths_of_twice(item, f"{path}{name}.")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths_of_twice(item, f"{path.removesuffix('.')}[{index}].")
