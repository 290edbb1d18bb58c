"""Which kinds the API server serves, asked once at start. Nothing runs without the required ones.

Discovery documents are read per group and version, as kubectl does for a known kind; no rights are needed beyond
`system:discovery`, which every authenticated client has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dra_operator.errors import ApiNotFound, ApiNotServed, ApiUnavailable

from .kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .api import Api
    from .kinds import Kind


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""


class _ResourceList(msgspec.Struct, frozen=True):
    resources: list[_Resource] = []


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = "unknown"
    minor: str = ""
    emulation_minor: str = ""

    @property
    def behaves_as(self) -> int | None:
        """The minor version whose feature gates and APIs the server has; vendors write `34+`."""
        found = re.match(r"\d+", self.emulation_minor or self.minor)
        return int(found[0]) if found else None

    def __str__(self) -> str:
        emulates = self.emulation_minor not in {"", self.minor}
        return f"{self.git_version} as 1.{self.emulation_minor}" if emulates else self.git_version


@dataclass(frozen=True, slots=True)
class Served:
    """What was found.

    Attributes:
        server_version: e.g. `v1.37.2`; `v1.37.2 as 1.35` of a server that behaves as an older one.
        kinds: those of the wanted kinds that are served, by name, in the best version that is.
        missing: the others; only optional ones, with what to do about it in their `remedy`.
        minor: the minor version as which the server behaves; None if it does not tell.
    """

    server_version: str
    kinds: dict[str, Kind]
    missing: tuple[Kind, ...] = ()
    minor: int | None = None


async def discover(api: Api, wanted: Iterable[Kind] = tuple(KINDS.values())) -> Served:
    """As `look`, for what cannot do without the required kinds.

    Raises:
        ApiNotServed: a required kind is not served; names all of them and what to do.
        ApiError: the server cannot be asked.
    """
    served = await look(api, wanted)
    if any(kind.required for kind in served.missing):
        raise ApiNotServed(
            _complaint(served.server_version, [kind for kind in served.missing if kind.required])
        )
    return served


async def still_served(api: Api, kind: Kind) -> None:
    """Make sure that a kind is served that was served before; an API server that only just starts says little.

    Raises:
        ApiNotServed: it is not, in any version that we speak.
        ApiError: the server cannot be asked.
    """
    served = await look(api, [kind])
    if served.missing:
        words = f"the API server ({served.server_version}) no longer serves {kind}: {kind.remedy}"
        raise ApiNotServed(f"{words}. The operator has to start anew, to see what is served")


async def look(api: Api, wanted: Iterable[Kind] = tuple(KINDS.values())) -> Served:
    """Find out which kinds are served in a version that we speak; requests of this `api` use that version from then on.

    Raises:
        ApiError: the server cannot be asked.
    """
    kinds = tuple(wanted)
    spoken = {
        kind.name: [replace(kind, version=text) for text in (kind.version, *kind.older)] for kind in kinds
    }
    roots = dict.fromkeys(row.root for rows in spoken.values() for row in rows)
    plurals = {root: await _plurals(api, root) for root in roots}
    served = {
        name: found[0]
        for name, rows in spoken.items()
        if (found := [row for row in rows if row.plural in plurals[row.root]])
    }
    api.kinds = {**api.kinds, **served}
    missing = tuple(kind for kind in kinds if kind.name not in served)
    version = await _server_version(api)
    return Served(str(version), served, missing, version.behaves_as)


async def _plurals(api: Api, root: str) -> frozenset[str]:
    try:
        answer = await api.request("GET", root)
    except ApiNotFound:
        return frozenset()
    try:
        found = msgspec.json.decode(answer.body, type=_ResourceList)
    except msgspec.DecodeError as error:
        raise ApiUnavailable(f"GET {root}: no list of resources: {error}") from error
    return frozenset(resource.name for resource in found.resources)


async def _server_version(api: Api) -> _Version:
    answer = await api.request("GET", "/version")
    try:
        return msgspec.json.decode(answer.body, type=_Version)
    except msgspec.DecodeError as error:
        raise ApiUnavailable(f"GET /version: not a Kubernetes API server: {error}") from error


def _complaint(version: str, missing: list[Kind]) -> str:
    """One line a remedy, naming the kinds that it is for."""
    by_remedy: dict[str, list[str]] = {}
    for kind in missing:
        by_remedy.setdefault(kind.remedy, []).append(str(kind))
    lines = [f"{', '.join(names)}: {remedy}" for remedy, names in by_remedy.items()]
    return f"the API server ({version}) does not serve what the operator needs. " + "; ".join(lines)
