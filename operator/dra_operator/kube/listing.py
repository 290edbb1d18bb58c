"""Lists in pages, decoded object by object. Called by the feeds and the sync guard.

The list is consistent (no `resourceVersion` is sent, so the server answers from its newest state): after a restart, a stale list
would be a stale model. Objects that cannot be decoded are handed back beside the good ones, never dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from dra_operator import model
from dra_operator.errors import ApiUnavailable, ApiWentBack, InvalidObject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from .api import Api
    from .kinds import Kind

PAGE = 500
"""Objects a page, client-go's figure: some hundred kilobytes of pods, some milliseconds of decoding on the event loop."""


class RawMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata of an object whose rest may be unreadable."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class RawObject(msgspec.Struct, frozen=True):
    """Any object, as far as its metadata."""

    metadata: RawMeta = RawMeta()


class _PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _PageMeta = _PageMeta()
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page)
_envelope = msgspec.json.Decoder(RawObject)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An object that cannot be decoded.

    Attributes:
        error: what is wrong where.
        metadata: who it is.
        raw: all of it, as JSON.
    """

    error: InvalidObject
    metadata: RawMeta
    raw: bytes = b""


def newest(one: str, other: str) -> str:
    """The later of two resourceVersions; the first if they are the same, or cannot be compared."""
    comparable = one.isdecimal() and other.isdecimal()
    return other if not one or (comparable and int(other) > int(one)) else one


def check_order(kind: Kind, before: str, now: str) -> None:
    """Make sure that time goes on: a list, which is always of the newest state, must not be older than what was seen before.

    Raises:
        ApiWentBack: it is. Versions of objects compare with nothing that is known then, so all of that has to be forgotten.
    """
    if before.isdecimal() and now.isdecimal() and int(now) < int(before):
        raise ApiWentBack(
            f"the API server's newest {kind.plural} are of resourceVersion {now}, and {before} was seen before: was etcd restored from a "
            "backup? The operator has to start anew, and to forget what it knew"
        )


@dataclass(slots=True)
class Listing:
    """A kind as it was at one moment.

    Attributes:
        version: resourceVersion of that moment; watches go on from here.
        objects: all that could be decoded.
        rejected: the others.
    """

    version: str = ""
    objects: list[model.Value] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def decode_object(kind: Kind, raw: bytes | msgspec.Raw) -> model.Value | Rejected:
    """One object of a kind that the model knows."""
    data = bytes(raw)
    try:
        return model.from_json(model.KINDS[kind.name], data)
    except InvalidObject as error:
        metadata = read_metadata(data)
        return Rejected(
            InvalidObject(f"{kind.name} {metadata.key}", error.path, error.message), metadata, data
        )


def read_metadata(raw: bytes) -> RawMeta:
    """The metadata of any object; empty when even that cannot be read."""
    try:
        return _envelope.decode(raw).metadata
    except msgspec.DecodeError:
        return RawMeta()


async def list_all(
    api: Api,
    kind: Kind,
    *,
    namespace: str = "",
    selector: Mapping[str, str] | None = None,
    page: int = PAGE,
    heard: Callable[[], None] | None = None,
) -> Listing:
    """List a kind.

    Args:
        api: the server.
        kind: one that the model knows.
        namespace: empty for all.
        selector: further query parameters (`labelSelector`, `fieldSelector`).
        page: objects a page; 0 for all in one answer, which no compaction can interrupt.
        heard: called for each page.

    Raises:
        ApiGone: the list was compacted away between two pages; start over.
        ApiError: as `Api.request`.
    """
    listing, token, path = Listing(), "", kind.path(namespace)
    query = {**(selector or {}), **({"limit": str(page)} if page else {})}
    while True:
        answer = await _get_page(api, path, {**query, **({"continue": token} if token else {})})
        if heard is not None:
            heard()
        listing.version = answer.metadata.resource_version
        _collect(listing, kind, answer.items or [])
        token = answer.metadata.continue_token
        if not token:
            return listing


def listed(kind: Kind, items: list[msgspec.Raw]) -> Listing:
    """Objects that come from elsewhere than a server, as if it had listed them."""
    listing = Listing()
    _collect(listing, kind, items)
    return listing


async def list_raw(api: Api, kind: Kind) -> list[dict[str, Any]]:
    """All objects of a kind as parsed JSON, with all their fields.

    Raises:
        ApiGone, ApiError: as `list_all`.
    """
    return [raw async for page in raw_pages(api, kind) for raw in page]


async def raw_pages(api: Api, kind: Kind) -> AsyncIterator[list[dict[str, Any]]]:
    """The same, a page at a time: no more than one is in memory.

    Raises:
        ApiGone, ApiError: as `list_all`.
    """
    token = ""
    while True:
        query = {"limit": str(PAGE), **({"continue": token} if token else {})}
        answer = await _get_page(api, kind.path(), query)
        items = [msgspec.json.decode(raw, type=dict[str, Any]) for raw in answer.items or []]
        # Lists of the API server leave the type of their items to the list.
        yield [{"apiVersion": kind.api_version, "kind": kind.name, **item} for item in items]
        token = answer.metadata.continue_token
        if not token:
            return


async def _get_page(api: Api, path: str, query: dict[str, str]) -> _Page:
    answer = await api.request("GET", path, query=query)
    try:
        return _page.decode(answer.body)
    except msgspec.DecodeError as error:
        raise ApiUnavailable(f"GET {path}: the list cannot be read: {error}") from error


def _collect(listing: Listing, kind: Kind, items: list[msgspec.Raw]) -> None:
    for raw in items:
        decoded = decode_object(kind, raw)
        if isinstance(decoded, Rejected):
            listing.rejected.append(decoded)
        else:
            listing.objects.append(decoded)
