"""What is of use on some nodes only, by a label that those nodes must have: a look for one node costs what is near it, not all there is.

Used by `storage` for volumes and for the room that drivers report, of which there may be one or several a node. Coarse on purpose: whether a
node is really meant is for who asks to find out. It must not know what it holds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from .index import Groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dra_operator.model import LabelSelector, NodeSelector

V = TypeVar("V")


class Shelf(NamedTuple):
    """Members of a group that only nodes with this label can use; without a label any node might."""

    group: str
    label: str = ""
    value: str = ""


class Shelves(Generic[V]):
    """The members by shelf, each shelf sorted by name."""

    def __init__(self) -> None:
        self._members: Groups[Shelf, V] = Groups()
        self._labels: dict[str, Counter[str]] = {}

    def near(self, group: str, labels: Mapping[str, str]) -> Iterator[Shelf]:
        """The shelves of a group that a node with these labels might use."""
        yield Shelf(group)
        for label in self._labels.get(group, ()):
            if label in labels:
                yield Shelf(group, label, labels[label])

    def of(self, shelf: Shelf) -> Sequence[V]:
        """What is on a shelf."""
        return self._members.of(shelf)

    def move(self, before: Collection[Shelf], after: Collection[Shelf], name: str, member: V | None) -> None:
        """Take a member off the shelves `before` and put it on those `after`; None only takes it off."""
        wanted = set() if member is None else set(after)
        self._members.move(before, wanted, name, member)
        for sign, shelves in ((-1, set(before) - wanted), (1, wanted - set(before))):
            for shelf in shelves:
                self._count(shelf, sign)

    def _count(self, shelf: Shelf, sign: int) -> None:
        if not shelf.label:
            return
        labels = self._labels.setdefault(shelf.group, Counter())
        labels[shelf.label] += sign
        if not labels[shelf.label]:
            del labels[shelf.label]
        if not labels:
            del self._labels[shelf.group]


def shelves_by_terms(group: str, selector: NodeSelector | None) -> frozenset[Shelf]:
    """Where to put what nodes of a selector can use, all nodes without one. A node that no shelf is near to meets no term."""
    if selector is None:
        return frozenset({Shelf(group)})
    found: set[Shelf] = set()
    for term in selector.node_selector_terms:
        need = next((item for item in term.match_expressions if item.operator == "In"), None)
        if need is None:
            return frozenset({Shelf(group)})
        found |= {Shelf(group, need.key, value) for value in need.values}
    return frozenset(found)


def shelves_by_labels(group: str, selector: LabelSelector | None) -> frozenset[Shelf]:
    """Where to put what is about nodes with certain labels."""
    if selector is None:
        return frozenset({Shelf(group)})
    for key, value in selector.match_labels.items():
        return frozenset({Shelf(group, key, value)})
    need = next((item for item in selector.match_expressions if item.operator == "In"), None)
    if need is None:
        return frozenset({Shelf(group)})
    return frozenset(Shelf(group, need.key, value) for value in need.values)
