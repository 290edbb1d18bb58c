"""Reads of single objects and live lists, past the model, from the server's newest state. For controllers after a conflict.

Decisions are made from the model; whoever reads here does so because the model may lag behind a write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dra_operator import model
from dra_operator.errors import ApiUnavailable

from .brake import Brake
from .listing import list_all

if TYPE_CHECKING:
    from .api import Answer, Api


class Reader:
    """Live reads.

    Args:
        api: the server.
        brake: has them wait while the server is away; one of its own if it is None.
    """

    def __init__(self, api: Api, brake: Brake | None = None) -> None:
        self._api = api
        self._brake = brake or Brake(api.timing)

    async def get(self, kind: str, namespace: str, name: str) -> model.Value:
        """One object, decoded.

        Raises:
            ApiNotFound: there is none of that name.
            InvalidObject: it cannot be decoded.
            ApiError: as `Api.request`.
        """
        answer = await self._get(self._api.kinds[kind].path(namespace, name))
        return model.from_json(model.KINDS[kind], answer.body)

    async def get_raw(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """One object as parsed JSON, with all its fields.

        Raises:
            ApiNotFound: there is none of that name.
            ApiError: as `Api.request`.
        """
        path = self._api.kinds[kind].path(namespace, name)
        answer = await self._get(path)
        try:
            return msgspec.json.decode(answer.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ApiUnavailable(f"GET {path}: no object: {error}") from error

    async def list(self, kind: str, namespace: str = "") -> list[model.Value]:
        """All objects of a namespace (empty: of all), without those that cannot be decoded.

        Raises:
            ApiError: as `Api.request`.
        """
        async with self._brake.turn():
            return (await list_all(self._api, self._api.kinds[kind], namespace=namespace)).objects

    async def _get(self, path: str) -> Answer:
        async with self._brake.turn():
            return await self._api.request("GET", path)
