"""What a cluster tells `kubectl dra simulate`, if one is named. Imported only then. It must not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.errors import ApiForbidden
from dra_operator.kube import Api
from dra_operator.kube.discovery import look as served_by
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.listing import list_raw
from dra_operator.simulation.given import GROUPS

from .simulate import begin
from .snapshots import NEEDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .simulate import Input
    from .where import Where


async def ask(where: Where, flags: Sequence[str] = ()) -> Input:
    """All objects of the kinds that count, of all namespaces; the notes say what could not be read.

    Args:
        where: the cluster.
        flags: feature gates that are named; the others are those that the server's version has on by default, as gates cannot be asked for.

    Raises:
        ApiForbidden: this user may not list a kind that is needed.
        ApiError: the server cannot be asked.
    """
    async with await Api.connect(where.kubeconfig, where.context) as api:
        found = await served_by(api)
        read = begin(where.namespace or (await api.credentials.current()).namespace, flags, found.minor)
        read.is_empty = False
        served = found.kinds
        for name in (name for name in KINDS if name in GROUPS and name in served):
            try:
                objects = await list_raw(api, served[name])
            except ApiForbidden as error:
                if name in NEEDED:
                    raise
                read.notes.append(f"Not read from the cluster: {name}, which you may not list there: {error}")
                continue
            for raw in objects:
                read.add_stored(raw)
        return read
