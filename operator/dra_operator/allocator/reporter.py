"""What a search tells those who listen: candidates refused and why, devices given back, the end.

Implemented by explain, metrics and tests; called by `pools`, `requests` and `search`. The silent reporter is recognised, so that a search
that nobody listens to builds no reasons. Reasons are small values, not sentences: sentences are explain's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from dra_operator.model import DeviceId, PoolId


class Why(StrEnum):
    """Why a device, a pool or a request came to nothing. The comment says what `Rejection.detail` holds."""

    CLASS_SELECTOR = "class selector"  # the CEL expression
    REQUEST_SELECTOR = "request selector"  # the CEL expression
    IN_USE = "in use"  # empty: a claim holds it already
    TAKEN = "taken"  # empty: by another request of the same pod
    NODE = "node"  # empty: a device of a slice with per-device node selection, for other nodes
    TAINT = "taint"  # key=value:effect
    CONSTRAINT = "constraint"  # its path in the claim, matchAttribute <name>, what is missing
    CAPACITY = "capacity"  # name of the capacity, what is short or forbidden
    COUNTERS = "counters"  # set/counter, what is short
    GROUPS = "groups"  # the counter set whose devices it does not go with
    NODE_FEATURE = "node feature"  # name of the feature that the node does not declare
    NOT_BUILT = "not built"  # name of the Kubernetes feature gate
    AVOIDED = "avoided"  # empty: its binding failed lately for this claim
    GATE_OFF = "gate off"  # name of the Kubernetes feature gate
    POOL_INCOMPLETE = "pool incomplete"  # empty: its driver is publishing it
    POOL_INVALID = "pool invalid"  # what is wrong
    NO_MEMBERS = "no members"  # empty: allocationMode All, and no device matches
    TOO_MANY = "too many"  # the limit of devices in a claim


class Rejection(NamedTuple):
    """One reason.

    Attributes:
        why: of which sort.
        detail: as `Why` says.
        partner: the device with which it does not go together, for a constraint.
    """

    why: Why
    detail: str = ""
    partner: DeviceId | None = None


class RequestRef(NamedTuple):
    """A request (`gpu`) or sub-request (`gpu/big`) of a claim (`namespace/name`)."""

    claim: str
    request: str


class Reporter(Protocol):
    """Listens to one call of the allocator. Must not raise and must not call back."""

    def pool(self, pool: PoolId, rejection: Rejection) -> None:
        """Nothing is allocated from that pool on this node."""

    def rejected(self, request: RequestRef, device: DeviceId, rejection: Rejection) -> None:
        """A candidate was refused; may come again for the same device on another path of the search."""

    def failed(self, request: RequestRef, rejection: Rejection) -> None:
        """A request cannot be had on this path for a reason of its own."""

    def backtracked(self, request: RequestRef, device: DeviceId) -> None:
        """A device fitted, but what comes after could not be had with it."""

    def ended(self, steps: int, *, solved: bool) -> None:
        """The search is over after so many steps."""


class Silent:
    """Nobody listens."""

    def pool(self, pool: PoolId, rejection: Rejection) -> None:
        """See Reporter."""

    def rejected(self, request: RequestRef, device: DeviceId, rejection: Rejection) -> None:
        """See Reporter."""

    def failed(self, request: RequestRef, rejection: Rejection) -> None:
        """See Reporter."""

    def backtracked(self, request: RequestRef, device: DeviceId) -> None:
        """See Reporter."""

    def ended(self, steps: int, *, solved: bool) -> None:
        """See Reporter."""


SILENT: Final = Silent()


@dataclass(slots=True)
class Collector:
    """Keeps one reason a device and request, for whoever folds them into sentences.

    Attributes:
        pools: pools that were left out.
        devices: per request the devices that were refused. "Taken by another request" yields to any other reason.
        requests: requests that failed for reasons of their own.
        fitted: per request the devices that fitted, but were given back.
        steps: of the search; 0 when it never began.
    """

    pools: dict[PoolId, Rejection] = field(default_factory=dict)
    devices: dict[RequestRef, dict[DeviceId, Rejection]] = field(default_factory=dict)
    requests: dict[RequestRef, Rejection] = field(default_factory=dict)
    fitted: dict[RequestRef, set[DeviceId]] = field(default_factory=dict)
    steps: int = 0

    def pool(self, pool: PoolId, rejection: Rejection) -> None:
        """See Reporter."""
        self.pools[pool] = rejection

    def rejected(self, request: RequestRef, device: DeviceId, rejection: Rejection) -> None:
        """See Reporter."""
        known = self.devices.setdefault(request, {})
        if device not in known or known[device].why is Why.TAKEN:
            known[device] = rejection

    def failed(self, request: RequestRef, rejection: Rejection) -> None:
        """See Reporter."""
        self.requests[request] = rejection

    def backtracked(self, request: RequestRef, device: DeviceId) -> None:
        """See Reporter."""
        self.fitted.setdefault(request, set()).add(device)

    def ended(self, steps: int, *, solved: bool) -> None:
        """See Reporter."""
        del solved
        self.steps = steps
