"""What a piece of work costs in calls: the same on every machine, and no time. Used by tests of how costs grow."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def calls(work: Callable[[], object], *, of_c: bool = False) -> int:
    """Calls of Python functions that the work makes, and with `of_c` of C functions.

    The collector rests meanwhile: finalizers of what earlier tests have left are calls, too.
    """
    counted = Counter[str]()

    def hear(_frame: FrameType, event: str, _arg: object) -> None:
        counted[event] += 1

    gc.collect()
    gc.disable()
    sys.setprofile(hear)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return counted["call"] + (counted["c_call"] if of_c else 0)
