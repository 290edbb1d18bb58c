"""The entry: all checks, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .constraints import check_constraints
from .devices import check_devices, check_places
from .facts import Facts
from .requests import check_all, check_gates, check_requests
from .use import check_capacity, check_counters, check_use
from .written import check_config, check_fields, check_node_selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .snapshot import Allocated, Broken, Snapshot

CHECKS: Final = (
    check_requests,
    check_gates,
    check_places,
    check_devices,
    check_all,
    check_use,
    check_counters,
    check_capacity,
    check_constraints,
    check_fields,
    check_config,
    check_node_selector,
)


def verify(judged: Sequence[Allocated], snapshot: Snapshot) -> list[Broken]:
    """All rules that allocations break.

    Which of several good allocations it is, is not judged: not that it is the first in upstream's order, nor that a choice came before another.

    Args:
        judged: claims with their allocations, judged together: one after the other has a share of what there is. Those of one call are in its order; calls may
            have come in any order, so it is enough that there is one in which each was allowed.
        snapshot: the cluster, and what claims hold that are not judged.

    Returns:
        Empty if all is well. Rules that depend on a device which there is not are not judged for it.

    Raises:
        WorkLimitReached: the compiler's meter has a limit.
    """
    facts = Facts(judged, snapshot)
    return [broken for check in CHECKS for broken in check(facts)]
