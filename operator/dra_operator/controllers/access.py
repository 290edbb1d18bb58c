"""What controllers need of the API server: read one object afresh, and write so that the model knows at once.

Every patch carries the uid and resourceVersion of the object that it was computed from, every deletion and apply at least the uid
(they say why), and the answer is put into the model ("assumed", architecture section 3). Wraps `kube`; must not decide anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from dra_operator.errors import ApiNotFound
from dra_operator.model import Kubernetes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import Pod, Value

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Reader(Protocol):
    """Reads of single objects, past all caches."""

    async def get(self, kind: str, namespace: str, name: str) -> Value:
        """One object, decoded."""
        ...

    async def get_raw(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """One object as parsed JSON, with all its fields."""
        ...

    async def list(self, kind: str, namespace: str) -> list[Value]:
        """All objects of a namespace ("" for all), decoded."""
        ...


class Writes(Protocol):
    """Writes, bounded in number."""

    def api_version(self, kind: str) -> str:
        """The apiVersion by which the server knows a kind."""
        ...

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        content_type: str = MERGE,
    ) -> Value:
        """Patch one object; the answer."""
        ...

    async def create(self, kind: str, namespace: str, body: Mapping[str, Any]) -> Value:
        """Create one object; the answer."""
        ...

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str | None = None
    ) -> None:
        """Delete one object, if it still is the one of that uid."""
        ...

    async def apply(
        self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str = ""
    ) -> Value:
        """Server-side apply as our field manager, by force; the answer."""
        ...

    async def bind(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        """Bind a pod; `body` holds the preconditions and the target."""
        ...


class Model(Protocol):
    """Where accepted writes are recorded."""

    def assume(self, obj: Value) -> None:
        """Take the answer to an accepted write."""
        ...

    def apply(self, event: str, obj: Value) -> None:
        """Take the word that an object is gone (`DELETED`)."""
        ...


K = TypeVar("K", bound=Kubernetes)


class Access:
    """Reads and writes of controllers."""

    def __init__(self, reader: Reader, writer: Writes, model: Model) -> None:
        self._reader = reader
        self._writer = writer
        self._model = model

    def api_version(self, kind: str) -> str:
        """The apiVersion by which the server knows a kind: for references to its objects."""
        return self._writer.api_version(kind)

    async def fresh(self, kind: str, obj: K) -> K | None:
        """The object as the server has it now; None if it is gone or another one took its name. The model learns of either."""
        meta = obj.metadata
        try:
            found = await self._reader.get(kind, meta.namespace, meta.name)
        except ApiNotFound:
            self._model.apply("DELETED", cast("Value", obj))
            return None
        self._model.assume(found)
        same = cast("K", found)
        return same if same.metadata.uid == meta.uid else None

    async def raw(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """The object with all its fields, for what must be passed on unread."""
        return await self._reader.get_raw(kind, namespace, name)

    async def list(self, kind: str, namespace: str) -> list[Value]:
        """A live list."""
        return await self._reader.list(kind, namespace)

    async def patch(
        self, kind: str, obj: K, body: Mapping[str, Any], *, subresource: str = "", content_type: str = MERGE
    ) -> K:
        """Patch exactly the version that `obj` is.

        Raises:
            ApiConflict: the object changed since, or is another one.
            ApiNotFound: it is gone, or has no such subresource; the model knows what is true.
        """
        meta = obj.metadata
        guarded = {
            **body,
            "metadata": {
                **body.get("metadata", {}),
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
        }
        try:
            answer = await self._writer.patch(
                kind, meta.namespace, meta.name, guarded, subresource=subresource, content_type=content_type
            )
        except ApiNotFound:
            # Its DELETED may be late, or lost in a gap of a watch: without this, every next pass would fail in the same way.
            await self.fresh(kind, obj)
            raise
        after = cast("K", answer)
        if _ended(body, after):
            self._model.apply("DELETED", answer)
        else:
            self._model.assume(answer)
        return after

    async def create(self, kind: str, namespace: str, body: Mapping[str, Any]) -> Value:
        """Create an object."""
        answer = await self._writer.create(kind, namespace, body)
        self._model.assume(answer)
        return answer

    async def delete(self, kind: str, obj: Kubernetes, *, any_version: bool = False) -> None:
        """Delete exactly this object in the version that `obj` is; gone already is as good.

        The model learns of it by the feed: a finalizer may keep the object.

        Args:
            kind: of the object.
            obj: as it was when its end was decided.
            any_version: only where the decision came of something else than the object's own state.

        Raises:
            ApiConflict: it changed since, so that it may be in use by now (cp C-65), or is another one.
        """
        meta = obj.metadata
        version = None if any_version else meta.resource_version
        try:
            await self._writer.delete(kind, meta.namespace, meta.name, uid=meta.uid, resource_version=version)
        except ApiNotFound:
            return

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind exactly the version of a pod that `pod` is. The answer is no pod: the model learns of it by the feed.

        Raises:
            ApiConflict: the pod changed since, has gates, is bound or being deleted, or is another one (real-control-plane 6f).
            ApiNotFound: it is gone; the model knows.
        """
        meta = pod.metadata
        exactly = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        body = {
            "metadata": {**exactly, "resourceVersion": meta.resource_version},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._writer.bind(meta.namespace, meta.name, body)
        except ApiNotFound:
            await self.fresh("Pod", pod)
            raise

    async def apply(self, kind: str, obj: K, body: Mapping[str, Any], *, subresource: str = "") -> K:
        """Server-side apply onto an object that must still be the one of that uid, in any version.

        Upstream records claims by a forced apply (cp C-40), and so do we: it says what our fields have to be, whatever happened to
        the others. Others write pods often; a resourceVersion would make conflicts of those writes and protect nothing of theirs, as
        only the entries that we name are set. Another claim that somebody recorded for such an entry in between is overwritten.
        """
        meta = obj.metadata
        owned = {**body, "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}}
        answer = await self._writer.apply(kind, meta.namespace, meta.name, owned, subresource=subresource)
        self._model.assume(answer)
        return cast("K", answer)


def _ended(body: Mapping[str, Any], answer: Kubernetes) -> bool:
    """Whether a write took the last finalizer off an object that was being deleted: it is gone then.

    The answer has the version that the object had before (no newer one was stored), so taken as a state it would be no news, and the
    next pass would write to what no longer exists.
    """
    meta = answer.metadata
    return (
        "finalizers" in body.get("metadata", {})
        and meta.deletion_timestamp is not None
        and not meta.finalizers
    )
