"""Checks of use: what two cannot have, counters, groups, capacities (alloc sections 5, 7, 8 and 10)."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from .amounts import AmountError, amounts
from .requests import missing_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.model import CounterSet, DeviceId, PoolId

    from .amounts import Amount
    from .facts import Facts, Known
    from .places import Place, PoolView
    from .snapshot import Broken, Snapshot

    _Groups = dict[str, list[frozenset[str]]]


def check_use(facts: Facts) -> Iterator[Broken]:
    """Rules `in-use`, `shared`, `double`, `admin-twice`."""
    taken = facts.snapshot.taken
    for known in facts.known:
        if known.wanted.is_admin:
            continue
        if known.id in taken.devices:
            yield known.broken("in-use", "another claim holds it")
        elif (
            not known.is_share
            and known.claim.snapshot.features.consumable_capacity
            and taken.has_shares(known.id)
        ):
            yield known.broken("shared", "other claims hold shares of it")
    whole: dict[DeviceId, list[Known]] = defaultdict(list)
    for known in facts.known:
        if not known.is_share:
            whole[known.id].append(known)
    for holders in whole.values():
        yield from _doubles(holders)


def _doubles(holders: list[Known]) -> Iterator[Broken]:
    owners = [each for each in holders if not each.wanted.is_admin]
    for again in owners[1:]:
        yield again.broken("double", f"{owners[0].claim.key} has it as well")
    for index, owner in enumerate(holders):
        before = (each for each in holders[:index] if each.wanted.is_admin and not owner.wanted.is_admin)
        if any(each.call == owner.call and each.claim.key != owner.claim.key for each in before):
            yield owner.broken("double", "a claim before it, of the same call, looks at it")
    for index, looks in enumerate(holders):
        others = (each for each in holders[:index] if each.claim.key == looks.claim.key)
        if any(looks.wanted.is_admin or each.wanted.is_admin for each in others):
            yield looks.broken("admin-twice", "the claim has it already")


def check_counters(facts: Facts) -> Iterator[Broken]:
    """Rules `counters` and `groups`: each physical device counts once, whatever is held of it. Who only looks draws nothing."""
    drawing: dict[PoolId, list[Known]] = defaultdict(list)
    for known in facts.known:
        paid = known.is_share and facts.snapshot.taken.has_shares(known.id)
        if known.place.device.consumes_counters and not known.wanted.is_admin and not paid:
            drawing[known.id.pool_id].append(known)
    if not facts.snapshot.features.partitionable_devices:
        return
    for newcomers in drawing.values():
        pools = [facts.pool(each.id.pool_id, each.claim.node) for each in newcomers]
        pool = max((each for each in pools if each is not None), key=lambda each: len(each.elsewhere))
        before = [place for place in _places(pool) if facts.snapshot.taken.holds(place.id)]
        added = {each.id: each.place for each in newcomers}
        everything = [
            *before,
            *(place for id_, place in added.items() if not facts.snapshot.taken.holds(id_)),
        ]
        for detail in _overdrawn(pool.counter_sets, everything):
            yield newcomers[-1].broken("counters", detail)
        if facts.snapshot.features.compatibility_groups:
            for detail in _incompatible(_groups(added.values()), _groups(before), _groups(everything)):
                yield newcomers[-1].broken("groups", detail)


def _places(pool: PoolView) -> Iterable[Place]:
    return (*pool.here, *pool.elsewhere)


def _overdrawn(sets: Iterable[CounterSet], places: Iterable[Place]) -> Iterator[str]:
    left = {(each.name, name): counter.value.nano for each in sets for name, counter in each.counters.items()}
    for place in places:
        for drawn in place.device.consumes_counters:
            for name, counter in drawn.counters.items():
                left[drawn.counter_set, name] -= counter.value.nano
    for (set_, name), amount in left.items():
        if amount < 0:
            yield f"counter {name} of {set_} is overdrawn"


def _groups(places: Iterable[Place]) -> _Groups:
    """By counter set, the groups of each device."""
    on: dict[str, list[frozenset[str]]] = defaultdict(list)
    for place in places:
        for drawn in place.device.consumes_counters:
            on[drawn.counter_set].append(frozenset(drawn.compatibility_groups))
    return on


def _incompatible(added: _Groups, before: _Groups, after: _Groups) -> Iterator[str]:
    """Counter sets that devices joined with which they have nothing in common.

    Where some of those that were there have groups and some have not, nobody can say what may join.
    """
    for name in added:
        is_mixed = len({bool(each) for each in before.get(name, ())}) > 1
        if not is_mixed and any(after[name]) and not frozenset.intersection(*after[name]):
            yield f"the devices on counter set {name} have no compatibility group in common"


def check_capacity(facts: Facts) -> Iterator[Broken]:
    """Rules `capacity`, `capacity-name`, `capacity-policy`, `share-id`, `consumed-capacity`."""
    if not facts.snapshot.features.consumable_capacity:
        for known in facts.known:
            yield from _recorded(known, [])
        return
    shares: dict[tuple[DeviceId, str], list[_Share]] = defaultdict(list)
    ids: set[str] = set()
    for known in facts.known:
        if missing := missing_names(known.wanted, known.place):
            yield known.broken("capacity-name", f"it has no {' and no '.join(missing)}")
        found, problem = _amounts(known)
        if problem:
            yield known.broken("capacity-policy", problem)
        for name, amount, _ in found:
            shares[known.id, name].append(_Share(known, amount))
        yield from _recorded(known, found)
        if known.result.share_id:
            if known.result.share_id in ids:
                yield known.broken("share-id", "another share has the same id")
            ids.add(known.result.share_id)
    for (_, name), each in shares.items():
        yield from _exceeded(name, each)


class _Share(NamedTuple):
    """What a result takes of one capacity."""

    known: Known
    amount: int


class _Sums(NamedTuple):
    """What a call takes of one capacity of a device: what it keeps, and what it only looks at."""

    kept: int
    looked: int


def _amounts(known: Known) -> tuple[list[Amount], str]:
    try:
        found = list(amounts(known.wanted.entry.capacity, known.place.device, known.claim.snapshot.features))
    except AmountError as error:
        return [], str(error)
    return found, "; ".join(f"{each.name}: {each.problem}" for each in found if each.problem)


def _exceeded(name: str, shares: list[_Share]) -> Iterator[Broken]:
    """Rule `capacity`: of one capacity of one device.

    Looks count in their own call as if they took something, and are forgotten by the next one (alloc Q-12, A-2). If there is any order of calls in which
    each sees enough left, there is this one: those that look at most come first.
    """
    known = shares[-1].known
    free = known.place.device.capacity[name].value.nano - _in_use(known.claim.snapshot, known.id, name)
    if not known.is_share:
        broken = any(share.amount > free for share in shares)
    else:
        calls = sorted(_by_call(shares), key=lambda each: each.looked, reverse=True)
        kept = accumulate(each.kept for each in calls)
        broken = any(sums + each.looked > free for sums, each in zip(kept, calls, strict=True))
    if broken:
        yield known.broken("capacity", f"more of {name} is taken than there is")


def _by_call(shares: Iterable[_Share]) -> list[_Sums]:
    calls: dict[str, _Sums] = {}
    for known, amount in shares:
        kept, looked = calls.get(known.call, _Sums(0, 0))
        calls[known.call] = (
            _Sums(kept, looked + amount) if known.wanted.is_admin else _Sums(kept + amount, looked)
        )
    return list(calls.values())


def _in_use(snapshot: Snapshot, device: DeviceId, name: str) -> int:
    amount = snapshot.taken.capacity.get(device, {}).get(name)
    return amount.nano if amount is not None else 0


def _recorded(known: Known, found: list[Amount]) -> Iterator[Broken]:
    """What is written about a share (alloc Q-9)."""
    if bool(known.result.share_id) != known.is_share:
        text = "a share needs an id" if known.is_share else "a whole device has no share id"
        yield known.broken("share-id", text)
    right = {each.name: each.amount for each in found} if known.is_share else {}
    written = {name: amount.nano for name, amount in known.result.consumed_capacity.items()}
    if written != right:
        yield known.broken(
            "consumed-capacity", f"it takes {right}, and {written} are written, in units of 10^-9"
        )
