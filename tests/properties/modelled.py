"""The rules about several devices as constraints of a CP-SAT model: what `satisfiable` solves. Here nothing is solved.

What devices and requests are like is taken from the verifier's facts. A rule says here what the verifier says, or less; never more, or else a model without
a solution would prove nothing. Rules about one device are not here: only devices that alone break none have a variable.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dra_operator.verification.amounts import amounts
from dra_operator.verification.constraints import applies, lookup, values_of
from dra_operator.verification.requests import LIMIT

from .assignments import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ortools.sat.python.cp_model import CpModel, IntVar

    from dra_operator.model import DeviceId
    from dra_operator.verification.facts import Known, Wanted
    from dra_operator.verification.places import Place, PoolView

    from .assignments import Call

    Terms = dict[Hashable, list[tuple[IntVar, int]]]
    Has = Sequence[tuple[IntVar | None, Iterable[Hashable]]]

LARGEST: Final = 2**50
"""Sums of the model, far from where 64 bits end, as CP-SAT multiplies them."""


class Take(NamedTuple):
    """That a device is taken for a request, or for one of its alternatives.

    Attributes:
        claim: its number in the call.
        known: what the verifier knows of it.
        is_taken: the variable.
    """

    claim: int
    known: Known
    is_taken: IntVar


class Option(NamedTuple):
    """A request, or one of its alternatives.

    Attributes:
        claim: its number in the call.
        wanted: what is asked for.
        is_used: the variable.
        takes: of devices that alone break no rule for it, in order.
    """

    claim: int
    wanted: Wanted
    is_used: IntVar
    takes: tuple[Take, ...]


class Draw(NamedTuple):
    """That a device with counters is drawn on for the first time, whoever takes it."""

    place: Place
    is_drawn: IntVar


@dataclass(frozen=True)
class Model:
    """A call as a model: its variables, to which `RULES` add what they say.

    Args:
        call: what is asked for.
        cp: an empty model.
    """

    call: Call
    cp: CpModel

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """All requests and alternatives."""
        claims = range(len(self.call.claims))
        return tuple(self._option(claim, wanted) for claim in claims for wanted in self.call.wanted(claim))

    @cached_property
    def takes(self) -> tuple[Take, ...]:
        """All that could be taken."""
        return tuple(take for option in self.options for take in option.takes)

    @cached_property
    def draws(self) -> tuple[tuple[PoolView, tuple[Draw, ...]], ...]:
        """By pool. Who only looks draws nothing, nor does a share of which there were others before (alloc K-8)."""
        if not self.call.snapshot.features.partitionable_devices:
            return ()
        drawing = [each for each in self.takes if self._is_drawing(each.known)]
        return tuple(
            (self._pool(takes[0].known), tuple(self._draw(each) for each in _by(takes, _device)))
            for takes in _by(drawing, lambda each: each.known.id.pool_id)
        )

    def _pool(self, known: Known) -> PoolView:
        pool = known.claim.facts.pool(known.id.pool_id, self.call.node)
        assert pool is not None
        return pool

    def _draw(self, takes: Sequence[Take]) -> Draw:
        place = takes[0].known.place
        is_drawn = self.cp.new_bool_var(f"{place.id} is drawn on")
        self.cp.add_max_equality(is_drawn, [each.is_taken for each in takes])
        return Draw(place, is_drawn)

    def _option(self, claim: int, wanted: Wanted) -> Option:
        is_used = self.cp.new_bool_var(f"{claim}/{wanted.ref}")
        parts = (Part(claim, wanted, (device,)) for device in self.call.devices)
        takes = [
            Take(claim, known, self.cp.new_bool_var(f"{is_used.name}/{known.id}"))
            for part in parts
            if self.call.may_go_on([part])
            for known in self.call.known(part)
        ]
        for take in takes:
            self.cp.add_implication(take.is_taken, is_used)
        return Option(claim, wanted, is_used, tuple(takes))

    def _is_drawing(self, known: Known) -> bool:
        is_paid = known.is_share and self.call.snapshot.taken.has_shares(known.id)
        return bool(known.place.device.consumes_counters) and not known.wanted.is_admin and not is_paid


def alternative(model: Model) -> None:
    """One of each request."""
    for options in _by(model.options, lambda each: (each.claim, each.wanted.index)):
        model.cp.add_exactly_one(each.is_used for each in options)


def count(model: Model) -> None:
    """As many as are asked for; at least one where all are."""
    for option in model.options:
        taken = sum(each.is_taken for each in option.takes)
        if option.wanted.entry.allocation_mode == "All":
            model.cp.add(taken >= option.is_used)
        else:
            model.cp.add(taken == option.wanted.entry.count * option.is_used)


def all_selected(model: Model) -> None:
    """All that the verifier misses where there is one, and where there is another: if they cannot be taken, the alternative cannot be used."""
    for option in model.options:
        if option.wanted.entry.allocation_mode != "All":
            continue
        variables = {each.known.id: each.is_taken for each in option.takes}
        for take in option.takes[:2]:
            for device in sorted(model.call.missing(Part(option.claim, option.wanted, (take.known.id,)))):
                variable = variables.get(device, ~option.is_used)
                model.cp.add_implication(option.is_used, variable)


def limit(model: Model) -> None:
    """Devices of a claim."""
    for takes in _by(model.takes, lambda each: each.claim):
        model.cp.add(sum(each.is_taken for each in takes) <= LIMIT)


def double(model: Model) -> None:
    """A dedicated device has one owner, and none after a claim that looks at it."""
    for takes in _dedicated(model):
        owners = [each for each in takes if not each.known.wanted.is_admin]
        looks = [each for each in takes if each.known.wanted.is_admin]
        model.cp.add_at_most_one(each.is_taken for each in owners)
        for look in looks:
            for owner in owners:
                if look.claim < owner.claim:
                    model.cp.add_at_most_one([look.is_taken, owner.is_taken])


def admin_twice(model: Model) -> None:
    """Nobody looks at a dedicated device that the claim has already."""
    for takes in _dedicated(model):
        for one, other in combinations(takes, 2):
            if one.claim == other.claim and (one.known.wanted.is_admin or other.known.wanted.is_admin):
                model.cp.add_at_most_one([one.is_taken, other.is_taken])


def capacity(model: Model) -> None:
    """Of devices that are shared. Looks count in their own call, too (alloc Q-12)."""
    taken = model.call.snapshot.taken
    for takes in _by((each for each in model.takes if each.known.is_share), _device):
        terms: Terms = defaultdict(list)
        device, id_ = takes[0].known.place.device, takes[0].known.id
        for take in takes:
            for each in amounts(take.known.wanted.entry.capacity, device, model.call.snapshot.features):
                terms[each.name].append((take.is_taken, each.amount))
        used = {name: each.nano for name, each in taken.capacity.get(id_, {}).items()}
        free = {name: each.value.nano - used.get(name, 0) for name, each in device.capacity.items()}
        _at_most(model, terms, free)


def counters(model: Model) -> None:
    """Each device that is newly drawn on counts once; those in use have counted before."""
    holds = model.call.snapshot.taken.holds
    for pool, draws in model.draws:
        left: dict[Hashable, int] = {
            (each.name, name): counter.value.nano
            for each in pool.counter_sets
            for name, counter in each.counters.items()
        }
        for place in (*pool.here, *pool.elsewhere):
            for key, amount in _drawn(place):
                left[key] -= amount if holds(place.id) else 0
        terms: Terms = defaultdict(list)
        for draw in draws:
            for key, amount in _drawn(draw.place):
                terms[key].append((draw.is_drawn, 0 if holds(draw.place.id) else amount))
        _at_most(model, terms, left)


def groups(model: Model) -> None:
    """What is drawn on a counter set has a group in common, or none has any. What may join a mixture, nobody can say."""
    if not model.call.snapshot.features.compatibility_groups:
        return
    for pool, draws in model.draws:
        before: dict[str, list[frozenset[str]]] = defaultdict(list)
        for place in (*pool.here, *pool.elsewhere):
            if model.call.snapshot.taken.holds(place.id):
                for name, own in _grouped(place):
                    before[name].append(own)
        newly: dict[str, list[tuple[IntVar | None, frozenset[str]]]] = defaultdict(list)
        for draw in draws:
            for name, own in _grouped(draw.place):
                newly[name].append((draw.is_drawn, own))
        for name, new in newly.items():
            if len({each == UNGROUPED for each in before[name]}) < 2:
                _in_common(model, [*((None, own) for own in before[name]), *new])


UNGROUPED: Final = frozenset({""})
"""What devices without groups have in common."""


def constraint(model: Model) -> None:
    """Devices under `matchAttribute` have a value in common, those under `distinctAttribute` have none."""
    for claim, each in enumerate(model.call.claims):
        for entry in each.spec.devices.constraints:
            takes = [take for take in model.takes if take.claim == claim and applies(entry, take.known)]
            if entry.match_attribute is not None:
                has = [(take.is_taken, _values(take, entry.match_attribute)) for take in takes]
                _in_common(model, [(is_taken, own or {(is_taken.name,)}) for is_taken, own in has])
            else:
                _different(
                    model, [(take.is_taken, _values(take, entry.distinct_attribute or "")) for take in takes]
                )


def _values(take: Take, name: str) -> set[Hashable]:
    """With their type; none where there are none to compare, which only one device under a constraint can afford (alloc C-10)."""
    attribute = lookup(take.known, name)
    lists = take.known.claim.snapshot.features.list_type_attributes
    found = values_of(attribute, lists=lists) if attribute is not None else None
    return {(found[0], value) for value in found[1]} if found is not None else set()


RULES: Final[dict[str, Callable[[Model], None]]] = {
    "alternative": alternative,
    "count": count,
    "all": all_selected,
    "limit": limit,
    "double": double,
    "admin-twice": admin_twice,
    "capacity": capacity,
    "counters": counters,
    "groups": groups,
    "constraint": constraint,
}
"""By the verifier's name for the rule."""


# --- what they are made of


def _by(things: Iterable[Any], key: Callable[[Any], Hashable]) -> list[list[Any]]:
    """Those of one key together, in order."""
    found: dict[Hashable, list[Any]] = {}
    for each in things:
        found.setdefault(key(each), []).append(each)
    return list(found.values())


def _device(take: Take) -> DeviceId:
    return take.known.id


def _dedicated(model: Model) -> list[list[Take]]:
    """By device, who could take one that is not shared."""
    return _by((each for each in model.takes if not each.known.is_share), _device)


def _drawn(place: Place) -> Iterator[tuple[Hashable, int]]:
    for each in place.device.consumes_counters:
        for name, counter in each.counters.items():
            yield (each.counter_set, name), counter.value.nano


def _grouped(place: Place) -> Iterator[tuple[str, frozenset[str]]]:
    for each in place.device.consumes_counters:
        yield each.counter_set, frozenset(each.compatibility_groups) or UNGROUPED


def _at_most(model: Model, terms: Terms, most: dict[Hashable, int]) -> None:
    """Sums, in units of their common divisor; in larger ones, each amount rounded down, where they would be too large."""
    for key, each in terms.items():
        total = sum(abs(amount) for _, amount in each)
        unit = max(math.gcd(*(amount for _, amount in each)), total // LARGEST + 1)
        left = max(min(most[key] // unit, total), -total - 1)
        model.cp.add(sum(variable * (amount // unit) for variable, amount in each) <= left)


def _in_common(model: Model, has: Has) -> None:
    """Those whose variable is true, or that have none, have an element in common."""
    elements = sorted({each for _, own in has for each in own}, key=repr)
    chosen = {each: model.cp.new_bool_var(f"in common: {each}") for each in elements}
    model.cp.add_at_most_one(chosen.values())
    for variable, own in has:
        if variable is not None:
            model.cp.add_bool_or([~variable, *(chosen[each] for each in sorted(own, key=repr))])
        else:
            for each in elements:
                if each not in own:
                    model.cp.add(chosen[each] == 0)


def _different(model: Model, has: Sequence[tuple[IntVar, Iterable[Hashable]]]) -> None:
    """No two whose variables are true have an element in common, or both none at all."""
    by_element: dict[Hashable, list[IntVar]] = defaultdict(list)
    for variable, own in has:
        for each in sorted(own, key=repr) or [None]:
            by_element[each].append(variable)
    for variables in by_element.values():
        model.cp.add_at_most_one(variables)
