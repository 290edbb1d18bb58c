"""The operator with one of its guards switched off, to see that the check of the storm would notice: `python -m tests.chaos.mutant GUARD run …`.

The only part of the storm that imports the operator. It changes the program in this process and nowhere else: no setting does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def without_resource_version() -> None:
    """Writes go out without the version that they were computed from; but for the lease, which is another guard."""
    from dra_operator.kube.api import Api

    whole = Api.request

    async def request(self: Api, method: str, path: str, *, body: Any = None, **how: Any) -> Any:
        if method in {"PATCH", "POST", "DELETE"} and isinstance(body, dict) and "/leases" not in path:
            body = {key: _without(value) for key, value in body.items()}
        return await whole(self, method, path, body=body, **how)

    Api.request = request  # type: ignore[method-assign]  # that is the point


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if key != "resourceVersion"}
    return value


def without_in_flight() -> None:
    """Decisions that are being written do not count for the next ones."""
    from dra_operator.cluster import Cluster

    Cluster.reserve = lambda *_: None  # type: ignore[method-assign]  # that is the point


def without_relist_diff() -> None:
    """What went while nobody watched is never missed."""
    from dra_operator.cluster.store import Store

    def replace(self: Store[Any], objects: Iterable[Any], _: int | None) -> None:
        for obj in objects:
            self.upsert(obj)

    Store.replace = replace  # type: ignore[method-assign, assignment]  # that is the point


def without_epoch_touch() -> None:
    """A new leader lets be what the one before it may have been writing."""
    from dra_operator.controllers.takeover import Takeover

    async def run(self: Takeover) -> None:
        return

    Takeover.run = run  # type: ignore[method-assign]  # that is the point


def without_sync_guard() -> None:
    """Decides before it knows all there is: neither the first lists are waited for, nor are there any once it leads."""
    from dra_operator.kube.sync import SyncGuard

    async def at_once(self: SyncGuard, *_: Any) -> None:
        return

    SyncGuard.until_synced = at_once  # type: ignore[method-assign]  # that is the point
    SyncGuard.freshen = at_once  # type: ignore[method-assign, assignment]  # that is the point


GUARDS: dict[str, Callable[[], None]] = {
    "resource-version": without_resource_version,
    "in-flight": without_in_flight,
    "relist-diff": without_relist_diff,
    "epoch-touch": without_epoch_touch,
    "sync-guard": without_sync_guard,
}
"""Guards by name, and what switches each off."""


def main() -> None:
    """Switch the guard off, and be the operator."""
    guard = sys.argv.pop(1)
    GUARDS[guard]()
    from dra_operator.app import main as operate

    operate()


if __name__ == "__main__":
    main()
