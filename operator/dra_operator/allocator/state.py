"""What the allocator is given: slices, classes, what is taken, the compiler of selectors, and options.

Built by `cluster` (live state), by explain's what-if questions and by tests; read by every module of the allocator. Values only: nothing
here decides, and nothing here is changed by an allocation (alloc I-5).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.features import Features
    from dra_operator.model import DeviceClass, DeviceId, PoolId, ResourceSlice
    from dra_operator.quantity import Quantity

RESULTS_LIMIT: Final = 32
"""Devices that one claim can hold (alloc X-1, E-8, S-8)."""

DEFAULT_MAX_STEPS: Final = 500_000
"""Steps after which a search gives up, be it pruned; problems out of reports need some hundred, the hardest of random ones 50,000 (docs/decisions/0017-bounded-search.md). Meant for tools
and comparisons; placement, which runs on the event loop, sets far less. Upstream has no limit of its own and ends by the scheduler's 10 s time-out."""

DEFAULT_MAX_LOOKS: Final = 4_000_000
"""Looks at devices after which a search gives up: some 20 s, where many kinds of devices make each step dear (docs/decisions/0017-bounded-search.md)."""

DEFAULT_PATIENCE: Final = 40
"""Devices given back. Upstream's own test table needs less for nearly all cases; what follows costs as much as some hundred steps."""


class SliceSource(Protocol):
    """The slices of the cluster, taints of DeviceTaintRules already merged in (alloc I-2, section 15)."""

    def on_node(self, node_name: str) -> Sequence[ResourceSlice]:
        """Slices whose `spec.nodeName` is that node, in a stable order."""
        ...

    def shared(self) -> Sequence[ResourceSlice]:
        """Slices with no or an empty `spec.nodeName`, in a stable order."""
        ...

    def of_pool(self, pool_id: PoolId) -> Sequence[ResourceSlice]:
        """All slices of that pool in the cluster, whatever node they are for (alloc P-9)."""
        ...


class SliceList:
    """A slice source over a plain list: for what-if questions, conformance and tests."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._on_node: dict[str, list[ResourceSlice]] = defaultdict(list)
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[PoolId, list[ResourceSlice]] = defaultdict(list)
        for slice_ in slices:
            node_name = slice_.spec.node_name
            (self._on_node[node_name] if node_name else self._shared).append(slice_)
            self._of_pool[slice_.pool_id].append(slice_)

    def on_node(self, node_name: str) -> Sequence[ResourceSlice]:
        """See SliceSource."""
        return self._on_node.get(node_name, ())

    def shared(self) -> Sequence[ResourceSlice]:
        """See SliceSource."""
        return self._shared

    def of_pool(self, pool_id: PoolId) -> Sequence[ResourceSlice]:
        """See SliceSource."""
        return self._of_pool.get(pool_id, ())


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """What all claims of the cluster hold, in-flight decisions included (alloc section 14).

    Attributes:
        devices: dedicated devices.
        shared: devices of which there are shares.
        capacity: what the shares of a device take of it, added up.
    """

    devices: AbstractSet[DeviceId] = frozenset()
    shared: AbstractSet[DeviceId] = frozenset()
    capacity: Mapping[DeviceId, Mapping[str, Quantity]] = field(default_factory=dict)

    def is_shared(self, device_id: DeviceId) -> bool:
        """Whether a share of the device is in use, with or without capacity (alloc K-8)."""
        return device_id in self.shared or device_id in self.capacity

    def is_allocated(self, device_id: DeviceId) -> bool:
        """Whether any claim holds the device or a share of it (alloc K-4)."""
        return device_id in self.devices or self.is_shared(device_id)


@dataclass(frozen=True, slots=True)
class Inputs:
    """One consistent view of the cluster (alloc I-1, A-5). Can serve many nodes and many calls.

    Attributes:
        avoided: devices that are free and must not be taken all the same: those whose binding failed lately for the claims at hand
            (cp S-65; upstream may choose them again).
    """

    features: Features
    classes: Mapping[str, DeviceClass]
    slices: SliceSource
    allocated: AllocatedState
    selectors: CelCompiler
    avoided: AbstractSet[DeviceId] = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """How to allocate.

    Attributes:
        upstream_0_37: upstream's scopes of errors and its open bugs BUG-9 and BUG-10, for comparison with it; off in the product
            (docs/decisions/0004-errors-by-scope.md).
        upstream_experimental: together with `upstream_0_37`, what upstream's experimental copy does differently (oracle 7 no. 6).
        ignored_taints: keys of device taints that do not matter to this allocator: the mark on its own pools.
        max_steps: search steps before `SearchLimitReached`; None for no limit.
        max_looks: the same for looks at a device, of which one step takes as many as there are devices; None for no limit.
        patience: devices that the search gives back as upstream's does, before it is worth the cost to find out what can be left out
            (docs/decisions/0017-bounded-search.md); -1 for at once.
        past_conflicts: whether the search goes on where a constraint refuses a device of mode All, which ends it else (alloc
            S-17). For telling whether there is anything to wait for: with other devices in use it would not meet that conflict.
    """

    upstream_0_37: bool = False
    upstream_experimental: bool = False
    ignored_taints: frozenset[str] = frozenset()
    max_steps: int | None = DEFAULT_MAX_STEPS
    max_looks: int | None = DEFAULT_MAX_LOOKS
    past_conflicts: bool = False
    patience: int = DEFAULT_PATIENCE
