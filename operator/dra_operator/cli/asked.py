"""What a cluster tells `kubectl dra lint`, if one is named. Imported only then, as clients of clusters are most of a command's start.

It must not write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import ApiForbidden
from dra_operator.kube import Api
from dra_operator.kube.discovery import look as served_by
from dra_operator.kube.listing import list_all
from dra_operator.lint import Known

if TYPE_CHECKING:
    from .where import Where

READ: Final = ("DeviceClass", "ResourceSlice", "Namespace", "ResourceClaimTemplate", "ResourceClaim")
"""Kinds that are asked for."""


async def ask(where: Where) -> tuple[Known, dict[str, str]]:
    """What the cluster tells, and the kinds that this user may not read, with the server's words.

    Raises:
        ApiError: the server cannot be asked.
    """
    async with await Api.connect(where.kubeconfig, where.context) as api:
        namespace = where.namespace or (await api.credentials.current()).namespace
        known = Known(namespace=namespace)
        served = (await served_by(api)).kinds
        unseen: dict[str, str] = {}
        for name in READ:
            if name not in served:
                continue
            try:
                listing = await list_all(api, served[name])
            except ApiForbidden as error:
                unseen[name] = str(error)
                continue
            for value in listing.objects:
                known.take(value)
            known.whole |= {name}
        return known, unseen
