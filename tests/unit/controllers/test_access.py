"""What the model learns from the answers to writes, good and bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.access import Access
from dra_operator.errors import ApiNotFound
from dra_operator.model import ResourceClaim, from_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import Value


def claim(version: int = 1, **metadata: Any) -> ResourceClaim:
    names = {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return from_object(ResourceClaim, {"metadata": {**names, **metadata}, "spec": {}})


class Server:
    """One object at most; whatever is patched comes back as `answer`."""

    def __init__(self, stored: Value | None, answer: Value | None) -> None:
        self.stored = stored
        self.answer = answer
        self.deleted: list[tuple[str, str | None]] = []

    def api_version(self, kind: str) -> str:
        raise NotImplementedError(kind)

    async def get(self, kind: str, namespace: str, name: str) -> Value:
        if self.stored is None:
            raise ApiNotFound(f"{kind} {namespace}/{name} not found", status=404)
        return self.stored

    async def get_raw(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        raise NotImplementedError((kind, namespace, name))

    async def list(self, kind: str, namespace: str) -> list[Value]:
        raise NotImplementedError((kind, namespace))

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        content_type: str = "",
    ) -> Value:
        del body, subresource, content_type
        if self.answer is None:
            raise ApiNotFound(f"{kind} {namespace}/{name} not found", status=404)
        return self.answer

    async def create(self, kind: str, namespace: str, body: Mapping[str, Any]) -> Value:
        raise NotImplementedError((kind, namespace, body))

    async def apply(
        self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str = ""
    ) -> Value:
        raise NotImplementedError((kind, namespace, name, body, subresource))

    async def bind(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        raise NotImplementedError((namespace, name, body))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str | None = None
    ) -> None:
        del kind, namespace, name
        self.deleted.append((uid, resource_version))


def world(*, stored: Value | None, answer: Value | None) -> tuple[Access, Cluster]:
    """The model knows the claim in version 1."""
    cluster = Cluster()
    cluster.apply("ADDED", claim())
    server = Server(stored, answer)
    return Access(server, server, cluster), cluster


async def test_answer_is_known_at_once() -> None:
    access, cluster = world(stored=None, answer=claim(2))

    await access.patch("ResourceClaim", claim(), {})

    assert cluster.claims["default/c"].metadata.resource_version == "2"


async def test_object_that_is_gone_leaves_the_model_with_the_refused_write() -> None:
    """A DELETED that got lost must not make every next pass fail."""
    access, cluster = world(stored=None, answer=None)

    with pytest.raises(ApiNotFound):
        await access.patch("ResourceClaim", claim(), {})

    assert "default/c" not in cluster.claims


async def test_object_stays_if_only_the_subresource_is_missing() -> None:
    """What a definition without status answers says nothing about the object."""
    access, cluster = world(stored=claim(3), answer=None)

    with pytest.raises(ApiNotFound):
        await access.patch("ResourceClaim", claim(), {}, subresource="status")

    assert cluster.claims["default/c"].metadata.resource_version == "3"


async def test_last_finalizer_off_a_deleted_object_ends_it() -> None:
    """The answer has the old version, as no newer one was stored: only what is missing in it tells."""
    access, cluster = world(stored=None, answer=claim(1, deletionTimestamp="2026-01-01T00:00:00Z"))

    await access.patch("ResourceClaim", claim(), {"metadata": {"finalizers": []}})

    assert cluster.is_gone("ResourceClaim", "u")


async def test_deletion_names_the_version_that_was_judged_c65() -> None:
    server = Server(claim(), None)

    await Access(server, server, Cluster()).delete("ResourceClaim", claim(4))

    assert server.deleted == [("u", "4")]


async def test_deletion_that_another_object_decided_names_the_uid_only() -> None:
    server = Server(claim(), None)

    await Access(server, server, Cluster()).delete("ResourceClaim", claim(4), any_version=True)

    assert server.deleted == [("u", None)]
