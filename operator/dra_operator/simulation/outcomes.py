"""What a simulation answers, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.placement import Effort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import ResourceClaim
    from dra_operator.quantity import Quantity

POD = "Pod"
CLAIM = "ResourceClaim"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pod, or of a claim that no pod uses.

    Attributes:
        kind: `Pod` or `ResourceClaim`.
        namespace, name: of it.
        node: where it goes; empty if it is not placed.
        claims: its claims as they would be afterwards, in pod order.
        reason: one word in CamelCase why it is not placed, as of the operator's events; empty if it is.
        verdict: `never`, `not now` or `gave up`, where nodes were looked at; else empty.
        message: why it is not placed, and what to do about it.
        by_kube_scheduler: whether all its claims are for kube-scheduler to allocate: the node is one that it could choose.
        effort: what the search for devices cost; nothing for a pod like one that was not placed, which needs none of its own.
        work: units of work on selectors (`cel.meter`).
        takes: what its devices take of its node beside its own requests, by resource, such as `cpu` (node-allocatable resources).
    """

    kind: str
    namespace: str
    name: str
    node: str = ""
    claims: tuple[ResourceClaim, ...] = ()
    reason: str = ""
    verdict: str = ""
    message: str = ""
    by_kube_scheduler: bool = False
    effort: Effort = field(default_factory=Effort)
    work: int = 0
    takes: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_placed(self) -> bool:
        """Whether it got what it asks for."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Report:
    """All of a simulation.

    Attributes:
        outcomes: in the order of the decisions.
        notes: what was supposed where nothing was given, a sentence each.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def all_placed(self) -> bool:
        """Whether everything that waits got what it asks for."""
        return all(outcome.is_placed for outcome in self.outcomes)
