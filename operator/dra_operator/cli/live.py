"""What a cluster tells `kubectl dra simulate`, if one is named. Imported only then. It must not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import ApiForbidden, InvalidObject
from dra_operator.kube import Api
from dra_operator.kube.discovery import look as served_by
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.listing import list_raw
from dra_operator.simulation import Given
from dra_operator.simulation.given import GROUPS

if TYPE_CHECKING:
    from .where import Where

NEEDED: Final = frozenset({"DeviceClass", "Pod", "ResourceClaim", "ResourceSlice"})
"""Kinds without which nothing can be told: who holds what must be known whole."""


async def ask(where: Where) -> tuple[Given, list[str]]:
    """All objects of the kinds that count, of all namespaces, and what could not be read, a sentence each.

    Raises:
        ApiForbidden: this user may not list a kind that is needed.
        ApiError: the server cannot be asked.
    """
    async with await Api.connect(where.kubeconfig, where.context) as api:
        given = Given(where.namespace or (await api.credentials.current()).namespace)
        served = (await served_by(api)).kinds
        notes = []
        for name in (name for name in KINDS if name in GROUPS and name in served):
            try:
                found = await list_raw(api, served[name])
            except ApiForbidden as error:
                if name in NEEDED:
                    raise
                notes.append(f"Not read from the cluster: {name}, which you may not list there: {error}")
                continue
            for raw in found:
                try:
                    given.take(raw)
                except InvalidObject as error:
                    notes.append(f"{error}: left out")
                    if name == "ResourceClaim":
                        given.hold_unreadable(raw)
        return given, notes
