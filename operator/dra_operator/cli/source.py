"""Where a command has the objects from that it looks at: a snapshot, a cluster, or nothing yet. Shared by the commands that take `--from FILE`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from . import snapshots
from .seen import uncollected
from .simulate import begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .simulate import Input
    from .where import Where


@uncollected()
def given(where: Where, flags: Sequence[str] = ()) -> Input:
    """The objects of the snapshot that is named, of the cluster that is named, or none.

    Args:
        where: what the command line names.
        flags: feature gates of the API server, as it takes them.

    Raises:
        InvalidInput: the snapshot cannot be used.
        ApiError: the cluster cannot be asked.
    """
    if where.snapshot is not None:
        return _stored(where.snapshot, where.namespace, flags)
    if where.kubeconfig is None and where.context is None:
        return begin(where.namespace or "default", flags)
    from .live import ask

    return asyncio.run(ask(where, flags))


def _stored(name: str, namespace: str | None, flags: Sequence[str]) -> Input:
    """All that a snapshot has, as `live.ask` gives what a cluster has. Gates that are named now come after those that were named when it was taken."""
    snapshot = snapshots.load(name)
    facts = snapshot.facts
    snapshot.check(*sorted(snapshots.NEEDED))
    read = begin(namespace or facts.namespace, (*facts.feature_gates.named, *flags), facts.minor)
    read.is_empty = False
    read.notes += facts.missing()
    read.notes += [f"{one.message}: left out" for one in facts.left_out]
    for kind in snapshot.kinds():
        for raw in snapshot.raw(kind):
            read.add_stored(raw)
    return read
