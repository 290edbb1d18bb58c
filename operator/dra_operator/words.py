"""Parts of sentences that several packages need: the first few of many things, and the name that was probably meant.

It must not know what it counts or compares.
"""

from __future__ import annotations

from bisect import bisect_left
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMPARED: Final = 64
"""Names that one name is compared with. A comparison takes 0.1 ms where names are as alike as those of a cloud's nodes: all names of
a large cluster would take the event loop seconds. Those next to it in the alphabet are taken."""

ALIKE: Final = 0.8
"""From 0 to 1, as `difflib` has it. Arbitrary: a letter or two in a short name."""

REMEMBERED: Final = 1024
"""Answers that are kept, as many waiting pods may ask for one name."""


def listed(things: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` of some things, and how many more there are."""
    rest = f" and {len(things) - most} more" if len(things) > most else ""
    return separator.join(things[:most]) + rest


def nearest(wanted: str, names: Iterable[str]) -> str:
    """The name that is nearly the same; empty if there is none among its neighbours in the alphabet."""
    known = sorted(names)
    start = max(0, bisect_left(known, wanted) - COMPARED // 2)
    return _closest(wanted, tuple(known[start : start + COMPARED]))


@lru_cache(maxsize=REMEMBERED)
def _closest(wanted: str, names: tuple[str, ...]) -> str:
    return next(iter(get_close_matches(wanted, names, n=1, cutoff=ALIKE)), "")
