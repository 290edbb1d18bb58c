"""What calls on one view leave for the next ones.

Kept with the view (`pools`); who finds something out says how it is found again. It must not hold anything that depends on what is allocated or taken,
nor on whose claim asks: errors, which name the claim, are never kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Kept = TypeVar("Kept")


class Memory:
    """What is known of one view. Bounded by what is asked of it: whoever keeps a view for long gives it up now and then."""

    def __init__(self) -> None:
        self._kept: dict[type, dict[Hashable, object]] = {}

    def of(self, kind: type[Kept], key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under the key, or else is made now and kept.

        Args:
            kind: the class of it, of which each has its keys.
            key: what it hangs on.
            make: finds it out.
        """
        of_kind = self._kept.setdefault(kind, {})
        found = of_kind.get(key)
        if found is None:
            found = of_kind[key] = make()
        assert isinstance(found, kind)
        return found
