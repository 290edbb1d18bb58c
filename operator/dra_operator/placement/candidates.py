"""Which nodes are worth a search, and in which order they are tried.

Called by `Placer`. Names come sorted, bytewise, as pools and devices are tried; `room` and `preferences` put the better ones first, so that
the same input gives the same node. Everything else here is pruning: a node is left out only when it
surely cannot have enough free matching devices, so no solution is lost. Nodes that no slice of a matching pool names are never looked
at one by one, unless a pool is shared between nodes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .census import SHARED, Wish, wish_of
from .ownership import alternatives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.model import DeviceId, DeviceSubRequest, ExactDeviceRequest, Pod, PoolId, ResourceClaim

    from .census import Census, Fits, SliceFit

ALL_MODE = "All"


def nominated_first(names: Sequence[str], pod: Pod) -> Sequence[str]:
    """The nodes to try in order; before all the one that somebody has nominated the pod to, if it is among them."""
    nominated = pod.status.nominated_node_name
    if not nominated or nominated not in names:
        return names
    return [nominated, *(name for name in names if name != nominated)]


@dataclass(frozen=True, slots=True)
class Form:
    """One form in which a request can be had: name for results, wish, count (0: all that match)."""

    name: str
    wish: Wish
    wanted: int


@dataclass(frozen=True, slots=True)
class Need:
    """One request of a claim, as far as counting devices goes; at least one form.

    `together` marks what all requests with the same wish need as a sum; claim and request are the first of them then. `looks` marks admin
    access, which takes nothing, whoever holds the device.
    """

    claim: str
    request: str
    forms: tuple[Form, ...]
    together: bool = False
    looks: bool = False


def needs_of(claims: Iterable[ResourceClaim]) -> tuple[Need, ...]:
    """The requests that counting can judge: not admin access, and not those that the allocator will call invalid."""
    return tuple(need for need in all_needs(claims) if not need.looks)


def all_needs(claims: Iterable[ResourceClaim]) -> tuple[Need, ...]:
    """The requests that can be told of: those that counting can judge, and admin access."""
    return tuple(need for claim in claims for need in _needs(claim))


def _needs(claim: ResourceClaim) -> Iterator[Need]:
    for request in claim.spec.devices.requests:
        looks = request.exactly is not None and bool(request.exactly.admin_access)
        forms = tuple(Form(name, wish_of(form), _count(form)) for name, form in alternatives(request))
        if forms and all(form.wanted >= 0 for form in forms):
            yield Need(claim.key, request.name, forms, looks=looks)


def _count(form: ExactDeviceRequest | DeviceSubRequest) -> int:
    """Devices wanted: 0 for all, -1 if none are, which is met everywhere (alloc R-4)."""
    if form.allocation_mode == ALL_MODE:
        return 0
    return form.count or -1


class Supply:
    """Free devices of some pools, compared with the needs of one pod.

    Args:
        census: what is published.
        includes: the pools that count.
        taken: devices in use, decisions in flight included.
        needs: what the pod wants of these pools.
    """

    def __init__(
        self,
        census: Census,
        includes: Callable[[PoolId], bool],
        taken: AbstractSet[DeviceId],
        needs: Sequence[Need],
    ) -> None:
        self._census = census
        self._includes = includes
        self._taken = taken
        self._needs = needs
        self._shared: dict[Wish, int] = {}
        # Looked up once for all nodes: a decision may go through thousands that are full.
        self._table = [(need, [(form, census.fits(form.wish)) for form in need.forms]) for need in needs]
        self._sums = Counter[Wish]()
        for need in needs:
            if len(need.forms) == 1:
                self._sums[need.forms[0].wish] += need.forms[0].wanted

    def lacking(self, node_name: str) -> Need | None:
        """The first need that the node surely cannot meet now; None if a search is worth its while."""
        for need, forms in self._table:
            if all(self._free(form.wish, fits, node_name) < max(form.wanted, 1) for form, fits in forms):
                return need
        for need, forms in self._table if len(self._table) > 1 else ():
            form, fits = forms[0]
            wanted = self._sums[form.wish]
            adds_up = len(forms) == 1 and not self._may_share(fits, node_name)
            if adds_up and self._free(form.wish, fits, node_name) < wanted:
                return replace(need, forms=(replace(form, wanted=wanted),), together=True)
        return None

    def is_hopeless(self, need: Need, node_name: str) -> bool:
        """Whether the node would not meet the need even with every device free and untainted."""
        return all(self._published(form.wish, node_name) < max(form.wanted, 1) for form in need.forms)

    def hopeless(self, node_name: str) -> Iterator[Need]:
        """The needs that the node would not meet even with every device free and untainted, as far as counting finds them."""
        for need in self._needs:
            if self.is_hopeless(need, node_name):
                yield need
        for need in self._needs:
            form = need.forms[0]
            if len(need.forms) > 1 or self._may_share(self._census.fits(form.wish), node_name):
                continue
            if self._published(form.wish, node_name) < self._sums[form.wish]:
                yield replace(need, forms=(replace(form, wanted=self._sums[form.wish]),), together=True)

    def _may_share(self, fits: Fits, node_name: str) -> bool:
        """Whether requests may get the same device, so that what they need does not add up."""
        return any(fit.shareable for name in (SHARED, node_name) for fit in fits.on(name))

    def local_nodes(self) -> tuple[Sequence[str], Need] | None:
        """Nodes that slices for the scarcest need name, sorted, and that need; None if slices without a node serve all needs.

        Slices of other pools are among them: leaving those out would cost a look at every node.
        """
        best: tuple[Sequence[str], Need] | None = None
        for need in self._needs:
            if not self._is_shared(need):
                names = self._names(need)
                if best is None or len(names) < len(best[0]):
                    best = names, need
        return best

    def _is_shared(self, need: Need) -> bool:
        return any(True for form in need.forms for _ in self._relevant(form.wish, SHARED))

    def _names(self, need: Need) -> Sequence[str]:
        lists = [self._census.fits(form.wish).node_names for form in need.forms]
        return lists[0] if len(lists) == 1 else sorted(set().union(*lists))

    def _free(self, wish: Wish, fits: Fits, node_name: str) -> int:
        free = self._count(fits, node_name)
        if not fits.on(SHARED):
            return free
        shared = self._shared.get(wish)
        if shared is None:
            shared = self._shared[wish] = self._count(fits, SHARED)
        return shared + free

    def _count(self, fits: Fits, node_name: str) -> int:
        """Free devices there. Written for nodes that are full, which is what a decision walks past: nothing is asked about those."""
        is_taken = self._taken.__contains__
        free = 0
        for fit in fits.on(node_name):
            left = len(fit.usable) - sum(map(is_taken, fit.usable))
            if left and self._includes(fit.slice_.pool_id):
                free += left
        return free

    def _published(self, wish: Wish, node_name: str) -> int:
        names = (SHARED, node_name)
        return sum(fit.within_reach for name in names for fit in self._relevant(wish, name))

    def _relevant(self, wish: Wish, node_name: str) -> Iterator[SliceFit]:
        return (fit for fit in self._census.fits(wish).on(node_name) if self._includes(fit.slice_.pool_id))
