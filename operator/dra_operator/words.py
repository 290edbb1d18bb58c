"""Parts of sentences that several packages need: the first few of many things, and the name that was probably meant.

It must not know what it counts or compares.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMPARED: Final = 64
"""Names that one name is compared with. A comparison may take 0.1 ms where names are as alike as those of a cloud's nodes: all names of
a large cluster would take the event loop seconds. Those next to it in the alphabet are taken."""

SWAPPED: Final = 3
"""Letters of a word from which on two that have changed places are a slip: `gup`."""

MISSED: Final = 4
"""Letters of a word from which on one too many, or too few, is a slip: `gpus`."""

CHANGED: Final = 5
"""Letters of a word from which on another letter is a slip: `modal` for `model`, but `cpu` is not `gpu`."""

TWICE: Final = 8
"""Letters from which on there may be two slips in a word; in a whole name there are no more."""

TELLING: Final = 3
"""Letters of a part of a name from which on it stands for the name: `mem` for `memory`."""

_PART: Final = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")

DIGITS: Final = "0123456789"

REMEMBERED: Final = 1024
"""Answers that are kept, as many waiting pods may ask for one name."""


def listed(things: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` of some things, and how many more there are."""
    rest = f" and {len(things) - most} more" if len(things) > most else ""
    return separator.join(things[:most]) + rest


def numbered(name: str) -> tuple[str, int]:
    """What comes before the number at the end of a name, and that number, -1 without one: sorts `gpu-2` before `gpu-10`."""
    stem = name.rstrip(DIGITS)
    return stem, int(name[len(stem) :] or -1)


def nearest(wanted: str, names: Iterable[str]) -> str:
    """The name that is the same but for a slip of the pen; empty if there is none among its neighbours in the alphabet.

    Case and what stands between words do not count. Numbers do: `node-1` is another thing than `node-2`, as `a100` than `h100`.
    """
    known = sorted(names)
    start = max(0, bisect_left(known, wanted) - COMPARED // 2)
    return _closest(wanted, tuple(known[start : start + COMPARED]))


def akin(wanted: str, names: Iterable[str]) -> str:
    """The nearest name, or the only one that has the wanted one as a part, or is a part of it: `numa` and `numaNode`.

    Good enough for advice to someone whose name is wrong, not for telling that it is.
    """
    known = list(names)
    near = nearest(wanted, known)
    if near:
        return near
    related = [name for name in known if _is_part(wanted, name) or _is_part(name, wanted)]
    return related[0] if len(related) == 1 else ""


@lru_cache(maxsize=REMEMBERED)
def _closest(wanted: str, names: tuple[str, ...]) -> str:
    found = [(slips, name) for name in names if (slips := _slips(wanted, name)) is not None]
    return min(found)[1] if found else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in _PART.findall(name)]


def _is_part(some: str, whole: str) -> bool:
    """Whether the words of one name stand in the other, one after the other, or its first word begins so."""
    few, many = _words(some), _words(whole)
    if len("".join(few)) < TELLING:
        return False
    begun = len(few) == 1 and bool(many) and many[0].startswith(few[0])
    return begun or any(many[at : at + len(few)] == few for at in range(len(many)))


def _slips(one: str, other: str) -> int | None:
    """How many slips lie between two names; None if they are different names."""
    few, many = _words(one), _words(other)
    if "".join(few) == "".join(many):
        return 0 if few else None
    if [word for word in few if word.isdigit()] != [word for word in many if word.isdigit()]:
        return None
    if len(few) != len(many):
        few, many = ["".join(few)], ["".join(many)]
    total = 0
    for left, right in zip(few, many, strict=True):
        slips = _slips_of_word(left, right)
        if slips is None:
            return None
        total += slips
    return total if total <= 2 else None  # noqa: PLR2004 -- twice


def _slips_of_word(one: str, other: str) -> int | None:
    length = max(len(one), len(other))
    if one == other:
        return 0
    if abs(len(one) - len(other)) > 1 + (length >= TWICE):
        return None
    edits = _edits(one, other)
    if edits > 1:
        return edits if length >= TWICE and edits == 2 else None  # noqa: PLR2004 -- twice
    if len(one) != len(other):
        return 1 if length >= MISSED else None
    return 1 if length >= (SWAPPED if sorted(one) == sorted(other) else CHANGED) else None


def _edits(one: str, other: str) -> int:
    """Letters that are too many, too few or others, and neighbours that have changed places."""
    earlier: list[int] = []
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        here = [row]
        for column, against in enumerate(other, start=1):
            cost = min(before[column] + 1, here[-1] + 1, before[column - 1] + (letter != against))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against
            here.append(min(cost, earlier[column - 2] + 1) if swapped else cost)
        earlier, before = before, here
    return before[-1]
