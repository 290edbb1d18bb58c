"""Room on Python's stack for expressions that are nested as deeply as CEL allows.

The parser and the checker have no depth. Planning, estimating and evaluating call themselves for each level of the tree, a few frames each. The
parser bounds the levels, so the frames are bounded, too, and this module has Python allow them; its default is made for programs that
are not told how deep their data may be. Must not do anything for expressions as people write them.
"""

from __future__ import annotations

import sys
from typing import Final

SHALLOW: Final = 60
"""Levels that Python's own limit of 1,000 frames has room for, whatever has been called before."""

FRAMES: Final = 12_000
"""Frames for the deepest of all expressions: 1,250 levels (250 of each rule of the grammar that makes a node), twice as many once macros and chains
are written out, up to four frames for a level. Of these at most one in three is on the stack of C, where one takes half a KiB: 2 MiB of
the 8 that a thread has (measured: `tests/unit/cel/test_bad_input.py` has it done in 4)."""


def make_room(levels: int) -> None:
    """Have Python allow the frames that an expression of so many levels needs; they stay allowed."""
    if levels > SHALLOW and sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
