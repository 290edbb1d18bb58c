"""Groups of objects under keys, each handed out as a sorted tuple: the one kind of index that the model uses.

Called by the other modules of this package. Sorting is by member name and happens when a changed group is read, so that putting
or dropping a member costs the same however large its group is. It must not know what it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, KeysView

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class Groups(Generic[K, V]):
    """Members by group key; within a group by name. Empty groups do not exist."""

    def __init__(self) -> None:
        self._members: dict[K, dict[str, V]] = {}
        self._sorted: dict[K, tuple[V, ...]] = {}

    def put(self, group: K, name: str, member: V) -> None:
        """Add a member, or replace the one of that name."""
        self._members.setdefault(group, {})[name] = member
        self._sorted.pop(group, None)

    def drop(self, group: K, name: str) -> None:
        """Remove a member that the group holds."""
        members = self._members[group]
        del members[name]
        self._sorted.pop(group, None)
        if not members:
            del self._members[group]

    def move(self, before: Iterable[K], after: Iterable[K], name: str, member: V | None) -> None:
        """Take a member out of the groups `before` and into `after`; None only takes it out."""
        wanted = set() if member is None else set(after)
        for group in set(before) - wanted:
            self.drop(group, name)
        if member is not None:
            for group in wanted:
                self.put(group, name, member)

    def of(self, group: K) -> tuple[V, ...]:
        """The members of a group, sorted by name. The same tuple object until the group changes."""
        found = self._sorted.get(group)
        if found is None:
            members = self._members.get(group)
            if members is None:
                return ()
            found = self._sorted[group] = tuple(members[name] for name in sorted(members))
        return found

    def groups(self) -> KeysView[K]:
        """The keys of all groups, in no promised order."""
        return self._members.keys()

    def size(self, group: K) -> int:
        """How many members a group has."""
        return len(self._members.get(group, ()))
