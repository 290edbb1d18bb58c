"""Whether what is left can still be enough: bounds that hold whatever devices are chosen, so that no solution is lost.

Asked by `pruning` before a request is tried. Counted are devices that each request can still get, together over all requests that come, with what shares,
counters and constraints leave of them. Requests beyond the outlook's horizon count as met. It must not change what was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dra_operator.cel.vectors import places

from .constraints import UNUSABLE, Values
from .counters import Counter, draws
from .flow import Cell, suffices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from dra_operator.model import PoolId

    from .constraints import Constraint
    from .outlook import Outlook
    from .requests import Wanted
    from .taking import Taking


@dataclass(slots=True)
class Option:
    """A way to meet a slot.

    Attributes:
        wanted: the request or alternative.
        need: how many devices it still wants.
        mask: the devices that it can have.
    """

    wanted: Wanted
    need: int
    mask: int

    @property
    def is_open(self) -> bool:
        """Whether there are enough, and for mode All each single one, of which there must be some (alloc S-6)."""
        return self.mask.bit_count() >= self.need and bool(self.wanted.number or not self.wanted.is_all)


Ways: TypeAlias = list[Option]
"""The ways to meet one slot, one of which it takes."""

Name: TypeAlias = "tuple[Hashable, str]"
"""What amounts are added up by: a counter of a pool, or a capacity, by their names."""

Amounts: TypeAlias = "dict[Name, tuple[int, dict[Hashable, int]]]"
"""By name what a device takes, and what there is of it where it takes it; in units of 10^-9."""


class CellKey(NamedTuple):
    """Devices that are in one cell have all of this in common.

    Attributes:
        users: by slot, whether it can have them.
        counter_set: of which they draw; None if of none.
        is_shareable: whether several may use one.
    """

    users: tuple[bool, ...]
    counter_set: Hashable
    is_shareable: bool


class Bounds:
    """The bounds of a call.

    Args:
        outlook: what requests can ever get.
        taking: what was taken.

    Attributes:
        looks: looks at kinds of devices so far, as a measure of work.
    """

    def __init__(self, outlook: Outlook, taking: Taking) -> None:
        self._outlook = outlook
        self._taking = taking
        self._gone = 0
        self._shared = 0
        self._drawing = [  # kinds of devices that have to be paid for with counters, each with one of them; shares may be free
            (outlook.view.candidates[(mask & -mask).bit_length() - 1], mask)
            for mask in outlook.kinds
            if mask & outlook.drawing
        ]
        self.looks = 0

    def is_hopeless(self, slot: int, wanted: Wanted, device: int, start: int) -> bool:
        """Whether the search cannot succeed from here.

        Args:
            slot: the request that it is at.
            wanted: the request, or the chosen alternative.
            device: how many devices it has.
            start: the position from which on it may have more.
        """
        self.looks += 1 + len(self._outlook.kinds)
        self._gone, self._shared = self._exhausted(), self._in_shares()
        slots = [[self._current(slot, wanted, device, start)]]
        slots += [self._coming(at) for at in range(slot + 1, self._outlook.horizon)]
        if not self._narrow(slot, slots):
            return True
        sharing = [ways for ways in slots if not ways[0].wanted.is_admin and min(way.need for way in ways)]
        return not (self._has_room(sharing) and self._has_volume(sharing))

    # --- what each slot can have

    def _current(self, slot: int, wanted: Wanted, device: int, start: int) -> Option:
        mask = self._available(slot, wanted)
        if wanted.members is None:
            return Option(wanted, wanted.number - device, mask >> start << start)
        left = sum(1 << position for position in wanted.members[device:])
        return Option(wanted, wanted.number - device, mask & left)

    def _coming(self, slot: int) -> Ways:
        request = self._outlook.slots[slot].request
        return [
            Option(wanted, wanted.number, self._available(slot, wanted)) for wanted in request.alternatives
        ]

    def _available(self, slot: int, wanted: Wanted) -> int:
        usable = self._outlook.chances[wanted].usable
        if wanted.is_admin:
            return usable & ~self._of_claim(self._outlook.slots[slot].claim)
        mask = usable & self._taking.free & ~self._gone
        for position in places(mask & self._shared):
            if self._taking.outrun(position, self._outlook.judge.share(wanted, position)):
                mask &= ~(1 << position)
        return mask

    def _of_claim(self, claim: int) -> int:
        """Devices that the claim has already, those that can be shared aside."""
        return sum(1 << taken.position for taken in self._taking.taken[claim] if taken.share is None)

    def _in_shares(self) -> int:
        """Devices of which shares are in flight."""
        found = 0
        for taken_ in self._taking.taken:
            for taken in taken_:
                if taken.share is not None:
                    found |= 1 << taken.position
        return found

    def _exhausted(self) -> int:
        """Devices that draw more than is left, or do not go together with those that are taken."""
        found = 0
        groups = self._taking.groups
        for candidate, mask in self._drawing:
            is_short = self._taking.counters.of(candidate.pool_id).shortage(candidate.device) is not None
            if is_short or (groups is not None and not groups.of(candidate.pool_id).admits(candidate.device)):
                found |= mask
        return found

    # --- constraints

    def _narrow(self, slot: int, slots: list[Ways]) -> bool:
        """Leave what constraints leave; whether each slot has a way."""
        if not _drop(slots):
            return False
        for number, constraints in self._constraints(slot, len(slots)).items():
            of_claim = [
                ways for at, ways in enumerate(slots, start=slot) if self._outlook.slots[at].claim == number
            ]
            for constraint in constraints:
                narrow = self._keep_apart if constraint.is_distinct else self._keep_together
                if not narrow(constraint, of_claim) or not _drop(of_claim):
                    return False
        return True

    def _constraints(self, slot: int, count: int) -> dict[int, list[Constraint]]:
        """By claim, those that apply to slots that come."""
        found: dict[int, list[Constraint]] = {}
        for at in range(slot, slot + count):
            here = found.setdefault(self._outlook.slots[at].claim, [])
            for wanted in self._outlook.slots[at].request.alternatives:
                here.extend(each for each in wanted.constraints if each not in here)
        return found

    def _keep_together(self, constraint: Constraint, slots: list[Ways]) -> bool:
        """Only values that enough devices of every constrained slot share can be what all have in common."""
        bound = [
            ways
            for ways in slots
            if all(constraint in way.wanted.constraints for way in ways) and _need(ways)
        ]
        state = constraint.state()
        assert not isinstance(state, frozenset)
        allowed = self._common(constraint, bound, state)
        if bound and not allowed:
            return False
        if not bound and state is None:
            return True
        for way in _constrained(constraint, slots):
            masks = self._outlook.chances[way.wanted].values.get(constraint, {})
            fits = allowed if bound else {state} if state is not None else set()
            way.mask &= _union(
                mask for values, mask in masks.items() if any(values.common(each) for each in fits)
            )
        return True

    def _common(self, constraint: Constraint, bound: Sequence[Ways], state: Values | None) -> set[Values]:
        """Single values that all slots could have in common."""
        if not bound:
            return set()
        tables = [[(way, self._by_element(constraint, way)) for way in ways] for ways in bound]
        elements = set[Values]().union(*(table for _, table in tables[0]))
        self.looks += len(elements) * len(bound)
        total = sum(map(_need, bound))
        return {
            element
            for element in elements
            if (state is None or element.common(state))
            and (element.kind != UNUSABLE or (state is None and total == 1))
            and all(
                any((way.mask & table.get(element, 0)).bit_count() >= way.need for way, table in tables_)
                for tables_ in tables
            )
        }

    def _by_element(self, constraint: Constraint, way: Option) -> dict[Values, int]:
        """Devices that the way can have, by each single value of theirs."""
        found: dict[Values, int] = {}
        for values, mask in self._outlook.chances[way.wanted].values.get(constraint, {}).items():
            if mask & way.mask:
                for each in values.values:
                    element = Values(values.kind, frozenset((each,)))
                    found[element] = found.get(element, 0) | mask
        return found

    def _keep_apart(self, constraint: Constraint, slots: list[Ways]) -> bool:
        """There must be as many values as devices, beside those that are taken."""
        state = constraint.state() or frozenset()
        assert isinstance(state, frozenset)
        for way in _constrained(constraint, slots):
            for values, mask in self._outlook.chances[way.wanted].values.get(constraint, {}).items():
                if any(values.common(taken) for taken in state) or (state and values.kind == UNUSABLE):
                    way.mask &= ~mask
        bound = [ways for ways in slots if all(constraint in way.wanted.constraints for way in ways)]
        elements = {
            element for ways in bound for way in ways for element in self._by_element(constraint, way)
        }
        self.looks += len(elements)
        return len(elements) >= sum(map(_need, bound))

    # --- all slots together

    def _has_room(self, slots: Sequence[Ways]) -> bool:
        """Whether the slots could have devices together, each device once, or as often as it can be shared."""
        asks = [(_need(ways), _union(way.mask for way in ways)) for ways in slots]
        cells, masks, groups = self._cells(slots, _union(mask for _, mask in asks))
        edges = [
            {number: (mask & cell).bit_count() for number, cell in enumerate(masks) if mask & cell}
            for _, mask in asks
        ]
        self.looks += len(asks) * (1 + len(masks))
        return suffices([need for need, _ in asks], edges, cells, groups)

    def _cells(self, slots: Sequence[Ways], usable: int) -> tuple[list[Cell], list[int], list[int]]:
        """Devices that the same slots can have, and the bounds of their counter sets."""
        found: dict[CellKey, int] = {}
        for mask in self._outlook.kinds:
            if part := mask & usable:
                for key, cell in self._split(slots, part):
                    found[key] = found.get(key, 0) | cell
        cells: list[Cell] = []
        sets: dict[Hashable, int] = {}
        for key, cell in found.items():
            room = cell.bit_count()
            if key.is_shareable:
                room = sum(self._most(slots, position) for position in places(cell))
            group = None
            if key.counter_set is not None:
                sets[key.counter_set] = sets.get(key.counter_set, 0) | cell
                group = list(sets).index(key.counter_set)
            cells.append(Cell(room, group))
        return cells, list(found.values()), [self._most_of_set(mask) for mask in sets.values()]

    def _split(self, slots: Sequence[Ways], part: int) -> Iterator[tuple[CellKey, int]]:
        """Devices of one kind by the slots that can have them: the current one begins somewhere among them."""
        position = (part & -part).bit_length() - 1
        counter_set: Hashable = None
        if part & self._outlook.drawing:
            candidate = self._outlook.view.candidates[position]
            counter_set = candidate.pool_id, candidate.device.consumes_counters[0].counter_set
        is_shareable = bool(part & self._outlook.shareable)
        masks = [_union(way.mask for way in ways) & part for ways in slots]
        for border in sorted({mask for mask in masks if mask}, key=int.bit_count):
            if cell := part & border:
                yield CellKey(tuple(bool(mask & cell) for mask in masks), counter_set, is_shareable), cell
                part &= ~border

    def _most(self, slots: Sequence[Ways], position: int) -> int:
        """How often a device can be shared at most, among these slots."""
        users = [way.wanted for ways in slots for way in ways if way.mask >> position & 1]
        most = len(slots)
        candidate = self._outlook.view.candidates[position]
        for name in candidate.device.capacity:
            least = min(self._outlook.judge.share(wanted, position).amounts[name].nano for wanted in users)
            if least > 0:
                most = min(most, self._left(position, name) // least)
        return max(most, 0)

    def _left(self, position: int, name: str) -> int:
        candidate = self._outlook.view.candidates[position]
        in_flight = self._taking.shares.uses(candidate.id).get(name, 0)
        return self._outlook.judge.left(position, name) - in_flight

    def _most_of_set(self, mask: int) -> int:
        """How many devices that draw on one counter set can be had at most: the smallest first, counter by counter."""
        position = (mask & -mask).bit_length() - 1
        pool = self._taking.counters.of(self._outlook.view.candidates[position].pool_id)
        drawn: dict[Counter, list[int]] = {}
        count = mask.bit_count()
        for each in places(mask):
            for counter, amount in draws(self._outlook.view.candidates[each].device.consumes_counters):
                drawn.setdefault(counter, []).append(amount)
        return min(
            (
                count - len(amounts) + _fitting(sorted(amounts), pool.left[counter])
                for counter, amounts in drawn.items()
            ),
            default=count,
        )

    # --- amounts

    def _has_volume(self, slots: Sequence[Ways]) -> bool:
        """Whether the least that all slots take of counters and capacities of one name is there, wherever they take it."""
        draw = self._has_volume_of(slots, self._outlook.drawing, self._counters_of)
        return draw and self._has_volume_of(slots, self._outlook.shareable, self._capacities_of)

    def _has_volume_of(
        self, slots: Sequence[Ways], takers: int, amounts: Callable[[Wanted, int], Amounts]
    ) -> bool:
        """`takers` are the devices that take something of the sort; a slot that can have others need not."""
        needed: dict[Name, int] = {}
        left: dict[Name, dict[Hashable, int]] = {}
        for ways in slots:
            if any(way.mask & ~takers for way in ways):
                continue
            least: dict[Name, int] | None = None
            for way, part in self._parts(ways):
                found = amounts(way.wanted, part)
                for name, (_, there) in found.items():
                    left.setdefault(name, {}).update(there)
                taken = {name: way.need * amount for name, (amount, _) in found.items()}
                least = taken if least is None else _least(least, taken)
            for name, amount in (least or {}).items():
                needed[name] = needed.get(name, 0) + amount
        return all(amount <= sum(left[name].values()) for name, amount in needed.items())

    def _parts(self, ways: Ways) -> Iterator[tuple[Option, int]]:
        """What each way can have, by kind."""
        for way in ways:
            for kind in self._outlook.kinds:
                if part := kind & way.mask:
                    self.looks += 1
                    yield way, part

    def _counters_of(self, wanted: Wanted, part: int) -> Amounts:
        candidate = self._outlook.view.candidates[(part & -part).bit_length() - 1]
        found: Amounts = {}
        if not self._taking.draws(wanted, candidate):
            return found
        pool_id: PoolId = candidate.pool_id
        left = self._taking.counters.of(pool_id).left
        for counter, amount in draws(candidate.device.consumes_counters):
            before, there = found.get((pool_id, counter.name), (0, {}))
            found[pool_id, counter.name] = before + amount, {**there, counter: max(left[counter], 0)}
        return found

    def _capacities_of(self, wanted: Wanted, part: int) -> Amounts:
        found: Amounts = {}
        for position in places(part):
            candidate = self._outlook.view.candidates[position]
            for name, amount in self._outlook.judge.share(wanted, position).amounts.items():
                before, there = found.get((None, name), (amount.nano, {}))
                left = max(self._left(position, name), 0)
                found[None, name] = min(before, amount.nano), {**there, candidate.id: left}
        return found


def _need(ways: Ways) -> int:
    return min(way.need for way in ways)


def _drop(slots: Iterable[Ways]) -> bool:
    """Forget ways that are closed; whether each slot keeps one."""
    for ways in slots:
        ways[:] = [way for way in ways if way.is_open]
        if not ways:
            return False
    return True


def _constrained(constraint: Constraint, slots: Iterable[Ways]) -> Iterator[Option]:
    return (way for ways in slots for way in ways if constraint in way.wanted.constraints)


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _least(one: dict[Name, int], other: dict[Name, int]) -> dict[Name, int]:
    """Name by name, what both take at least."""
    return {name: min(amount, other[name]) for name, amount in one.items() if name in other}


def _fitting(amounts: Sequence[int], left: int) -> int:
    """How many of the amounts, the smallest first, fit."""
    for number, amount in enumerate(amounts):
        left -= amount
        if left < 0:
            return number
    return len(amounts)
