"""Which pools a node can see, in which order, and which of them can be used (alloc section 2).

Called once per node and call by `search`'s caller. Generations, completeness and validity are decided here; selectors, taints and use are
not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from dra_operator.errors import InvalidInput, InvalidPool
from dra_operator.model import DeviceId

from .memory import Memory
from .nodes import node_matches
from .reporter import Rejection, Why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dra_operator.features import Features
    from dra_operator.model import CounterSet, Device, Node, PoolId, ResourceSlice

    from .state import SliceSource

Each = TypeVar("Each")


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as one node sees it. Incomplete and invalid pools have no slices (alloc P-11, P-12).

    Attributes:
        slices: targeting the node and holding devices, in order (alloc P-14, P-16).
        elsewhere: slices of the same generation for other nodes, where completeness had to be checked cluster-wide.
        counter_sets: of the whole pool, by name.
        problem: why nothing can be had from it.
    """

    id: PoolId
    slices: tuple[ResourceSlice, ...] = ()
    elsewhere: tuple[ResourceSlice, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    problem: Rejection | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether its driver has not published all of it."""
        return self.problem is not None and self.problem.why is Why.POOL_INCOMPLETE

    @property
    def is_invalid(self) -> bool:
        """Whether its slices contradict each other."""
        return self.problem is not None and self.problem.why is Why.POOL_INVALID

    @property
    def sort_key(self) -> tuple[bool, bytes, bytes]:
        """Pools with binding conditions last, then by driver and name, bytewise (alloc P-17, P-18)."""
        waits = any(
            device.binding_conditions is not None for slice_ in self.slices for device in slice_.spec.devices
        )
        return waits, self.id.driver.encode(), self.id.pool.encode()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that the search may take.

    Attributes:
        pool_id: of its pool, as pools have it.
    """

    id: DeviceId
    slice_: ResourceSlice
    device: Device
    pool_id: PoolId


@dataclass(frozen=True, slots=True)
class View:
    """What one node sees.

    Attributes:
        pools: all pools, unusable ones included, in order.
        candidates: devices of the usable pools, in order (alloc S-9, S-10).
        by_id: the pools.
        memory: what earlier calls have found out about the candidates.
    """

    node: Node
    pools: tuple[Pool, ...]
    candidates: tuple[Candidate, ...]
    by_id: Mapping[PoolId, Pool]
    memory: Memory = field(default_factory=Memory, compare=False)


def view_of(source: SliceSource, node: Node, features: Features, *, strict: bool = False) -> View:
    """Gather the pools of a node.

    Args:
        source: all slices.
        node: the node.
        features: decides which slices count (alloc P-2).
        strict: a node selector that cannot be parsed fails everything, as upstream has it (alloc E-4); else its pool is invalid.

    Raises:
        InvalidPool: only when strict.
    """
    pools = tuple(sorted(_pools(source, node, features, strict=strict), key=lambda pool: pool.sort_key))
    return View(node, pools, tuple(_candidates(pools)), {pool.id: pool for pool in pools})


def whole_pool(source: SliceSource, pool_id: PoolId, features: Features) -> Pool | None:
    """A pool by its newest generation, whatever nodes it is for (alloc P-7…P-12); None if nobody publishes it."""
    groups: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in source.of_pool(pool_id):
        _collect(groups, slice_)
    return _pool(pool_id, groups[pool_id], source, features) if pool_id in groups else None


def pool_problem(source: SliceSource, pool_id: PoolId, features: Features) -> Rejection | None:
    """Why nothing can be had from a pool on any node; None if all is well with it."""
    pool = whole_pool(source, pool_id, features)
    return pool.problem if pool else None


class ByPool(Generic[Each]):
    """Something of each pool, made when it is needed first.

    Args:
        view: its pools.
        make: out of a pool.
    """

    def __init__(self, view: View, make: Callable[[Pool], Each]) -> None:
        self._view = view
        self._make = make
        self._known: dict[PoolId, Each] = {}

    def of(self, pool_id: PoolId) -> Each:
        """What there is of a pool."""
        found = self._known.get(pool_id)
        if found is None:
            found = self._known[pool_id] = self._make(self._view.by_id[pool_id])
        return found

    def made(self) -> list[tuple[PoolId, Each]]:
        """All that was needed, in order."""
        return sorted(self._known.items(), key=itemgetter(0))


def allocated_devices(view: View, pool: Pool, is_allocated: Callable[[DeviceId], bool]) -> Iterator[Device]:
    """Devices of the pool that draw on counters and are in use, those for other nodes included (alloc K-3); each once, however many shares (K-4)."""
    drawing = view.memory.of(_Drawing, pool.id, lambda: _Drawing(_drawing(pool)))
    return (device for device_id, device in drawing if is_allocated(device_id))


class _Drawing(tuple[tuple[DeviceId, "Device"], ...]):
    """Devices of a pool that draw on counters."""

    __slots__ = ()


def _drawing(pool: Pool) -> Iterator[tuple[DeviceId, Device]]:
    for slice_ in (*pool.slices, *pool.elsewhere):
        for device in slice_.spec.devices:
            if device.consumes_counters:
                yield DeviceId(*pool.id, device.name), device


def _candidates(pools: Iterable[Pool]) -> Iterator[Candidate]:
    for pool in pools:
        for slice_ in pool.slices:
            for device in slice_.spec.devices:
                yield Candidate(DeviceId(*pool.id, device.name), slice_, device, pool.id)


def _pools(source: SliceSource, node: Node, features: Features, *, strict: bool) -> Iterator[Pool]:
    groups: dict[PoolId, list[ResourceSlice]] = {}
    broken: dict[PoolId, str] = {}
    for slices in (source.on_node(node.name), source.shared()):
        for slice_ in slices:
            try:
                relevant = _is_relevant(slice_, node, features, strict=strict)
            except InvalidInput as error:
                broken[slice_.pool_id] = (
                    f"failed to parse node selector of slice {slice_.metadata.name}: {error}"
                )
                if strict:
                    raise InvalidPool(
                        str(slice_.pool_id), f"gather pool information: {broken[slice_.pool_id]}"
                    ) from error
                continue
            if relevant:
                _collect(groups, slice_)
    for pool_id in broken.keys() - groups.keys():
        groups[pool_id] = []
    for pool_id, collected in groups.items():
        if pool_id in broken:
            yield Pool(pool_id, problem=Rejection(Why.POOL_INVALID, broken[pool_id]))
        elif pool := _pool(pool_id, collected, source, features):
            yield pool


def _collect(groups: dict[PoolId, list[ResourceSlice]], slice_: ResourceSlice) -> None:
    """Keep the highest generation among the relevant slices (alloc P-7)."""
    kept = groups.setdefault(slice_.pool_id, [])
    generation = slice_.spec.pool.generation
    if kept and generation > kept[0].spec.pool.generation:
        kept.clear()
    if not kept or generation == kept[0].spec.pool.generation:
        kept.append(slice_)


def _is_relevant(slice_: ResourceSlice, node: Node, features: Features, *, strict: bool) -> bool:
    """Whether the node can use the slice (alloc P-2…P-6).

    Upstream looks at devices up to the first for the node, and a later one whose selector cannot be parsed fails the pod in the search. Unless
    strict, all are parsed here: what is wrong with one stays with its pool.
    """
    spec = slice_.spec
    if not _is_understood(slice_, features):
        return False
    matches = (node_matches(node, device) for device in spec.devices if spec.per_device_node_selection)
    lazy = matches if strict else iter(list(matches))
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec)
    return any(lazy)


def _is_understood(slice_: ResourceSlice, features: Features) -> bool:
    """Whether the gates allow for the slice's features (alloc P-2; for groups oracle 7 no. 9)."""
    spec = slice_.spec
    if not features.partitionable_devices and (
        spec.per_device_node_selection is not None or spec.shared_counters
    ):
        return False
    return _has_known_groups(slice_, features)


def _has_known_groups(slice_: ResourceSlice, features: Features) -> bool:
    """Without the gate a slice whose devices name groups is as good as unpublished: its pool stays incomplete."""
    return features.compatibility_groups or not any(
        taken.compatibility_groups for device in slice_.spec.devices for taken in device.consumes_counters
    )


def _pool(
    pool_id: PoolId, relevant: list[ResourceSlice], source: SliceSource, features: Features
) -> Pool | None:
    """Decide completeness (alloc P-8…P-11) and validity; None for an obsolete pool."""
    generation, expected = relevant[0].spec.pool.generation, relevant[0].spec.pool.resource_slice_count
    everything = relevant
    if len(relevant) != expected:
        published = source.of_pool(pool_id)
        if any(slice_.spec.pool.generation > generation for slice_ in published):
            return None
        everything = [
            slice_
            for slice_ in published
            if slice_.spec.pool.generation == generation and _has_known_groups(slice_, features)
        ]
    if len(everything) != expected:
        return Pool(
            pool_id,
            problem=Rejection(Why.POOL_INCOMPLETE, _miscount(len(everything), expected)),
        )
    names = {slice_.metadata.name for slice_ in relevant}
    others = [slice_ for slice_ in everything if slice_.metadata.name not in names]
    return _validated(pool_id, relevant, others, features)


def _miscount(found: int, expected: int) -> str:
    if found > expected:
        return f"{found} slices are published, but their spec.pool.resourceSliceCount is {expected}"
    return f"{found} of {expected} slices are published"


def _by_name(slices: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    return tuple(sorted(slices, key=lambda slice_: slice_.metadata.name.encode()))


def _validated(
    pool_id: PoolId, relevant: list[ResourceSlice], others: list[ResourceSlice], features: Features
) -> Pool:
    """Split by use and look for contradictions (alloc P-12…P-14)."""
    counters = features.partitionable_devices
    targeting = _by_name(slice_ for slice_ in relevant if not (counters and slice_.spec.shared_counters))
    elsewhere = tuple(slice_ for slice_ in others if counters and not slice_.spec.shared_counters)
    sets = (
        [found for slice_ in _by_name((*relevant, *others)) for found in slice_.spec.shared_counters]
        if counters
        else []
    )
    problem = _duplicate_device(targeting)
    if not problem and counters:
        problem = _counter_problem(sets, (*targeting, *elsewhere))
    if problem:
        return Pool(pool_id, problem=Rejection(Why.POOL_INVALID, problem))
    return Pool(pool_id, targeting, elsewhere, tuple(sets))


def _duplicate_device(slices: Iterable[ResourceSlice]) -> str:
    seen: dict[str, str] = {}
    for slice_ in slices:
        for index, device in enumerate(slice_.spec.devices):
            if device.name in seen:
                place = f"ResourceSlice {slice_.metadata.name} has it in spec.devices[{index}]"
                return (
                    f"duplicate device name {device.name}: {place}, ResourceSlice {seen[device.name]} as well"
                )
            seen[device.name] = slice_.metadata.name
    return ""


def _counter_problem(sets: Sequence[CounterSet], slices: Iterable[ResourceSlice]) -> str:
    known = {found.name: found.counters for found in sets}
    if len(known) < len(sets):
        names = [found.name for found in sets]
        return f"duplicate counter set name {next(name for name in names if names.count(name) > 1)}"
    for slice_ in slices:
        for device in slice_.spec.devices:
            for taken in device.consumes_counters:
                if taken.counter_set not in known:
                    return f"counter set {taken.counter_set} not found"
                for name in taken.counters:
                    if name not in known[taken.counter_set]:
                        return f"counter {name} not found in counter set {taken.counter_set}"
    return ""
