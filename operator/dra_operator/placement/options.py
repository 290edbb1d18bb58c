"""How a `Placer` behaves; set once by the wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .room import NodeScore

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.model import PoolId

DEFAULT_MAX_STEPS: Final = 50_000
"""Search steps for one node. The search runs on the event loop: this bounds the pause to a few tenths of a second a node, while every hard problem that is known is
solved or refuted in some hundred steps (docs/decisions/0017-bounded-search.md)."""

DEFAULT_TOTAL_STEPS: Final = 200_000
"""Search steps for one decision, over all nodes: a few seconds at worst, or one hard claim on a few hundred nodes would stop
everything else (and fail the liveness probe). A decision that runs out of them says that it gave up."""

DEFAULT_MAX_LOOKS: Final = 100_000
"""Looks at devices for one node: a step looks at all devices that are left, thousands where nodes share them, and each constraint is a look
of its own. 5 µs each (measured)."""

DEFAULT_TOTAL_LOOKS: Final = 150_000
"""Looks at devices for one decision and side, over all nodes: three quarters of a second."""

DEFAULT_SELECTOR_WORK: Final = 1_000_000
"""Units of work on selectors for one decision (`cel.meter`), in portions or not: a quarter of a second. A decision that runs out of them is taken up
again later, where it ended. What people write costs some ten units for a device and
5,000 for an expression that is new, so 50,000 devices take a look or two when the operator starts."""


def always(_: PoolId) -> bool:
    """Every pool may be allocated from."""
    return True


def unhindered(_: PoolId) -> str:
    """Waiting helps."""
    return ""


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """How to place.

    Args:
        replace: the operator stands in for the stock parts: all pools are ours (architecture, section 2).
        allocatable: whether an owned pool may be allocated from now: settled, and its policy not being removed. Asked anew for
            every decision.
        hindrance: why waiting does not help with an owned pool that may not be allocated from; empty if it does.
        node_score: which of several nodes that can take a pod gets it, as far as the pod prefers none.
        max_steps: search steps for one node; None for no limit.
        total_steps: search steps for one decision and side; None for no limit.
        max_looks: looks at devices for one node; None for no limit.
        total_looks: looks at devices for one decision and side; None for no limit.
        selector_work: units of work on selectors for one look that cannot be taken up again; None for no limit.
        selector_portion: units for what goes on where it ended when it is asked again; None for `selector_work`.
        selector_patience: units that a single evaluation, or compiling, may take there; what takes more becomes an errand; None for no limit.
    """

    replace: bool = False
    allocatable: Callable[[PoolId], bool] = always
    hindrance: Callable[[PoolId], str] = unhindered
    node_score: NodeScore = NodeScore.NAME
    max_steps: int | None = DEFAULT_MAX_STEPS
    total_steps: int | None = DEFAULT_TOTAL_STEPS
    max_looks: int | None = DEFAULT_MAX_LOOKS
    total_looks: int | None = DEFAULT_TOTAL_LOOKS
    selector_work: int | None = DEFAULT_SELECTOR_WORK
    selector_portion: int | None = None
    selector_patience: int | None = None
