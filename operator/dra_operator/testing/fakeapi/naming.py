"""Generated names: generateName plus five characters that make no words.

Called by `machinery`. Random on purpose, as on a real server; tests must not rely on the suffix.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_BASE_LIMIT = 63 - _SUFFIX


def generated(base: str, taken: Callable[[str], bool]) -> str:
    """A free name that starts with `base` (cut to 58 characters).

    Args:
        base: the generateName.
        taken: whether a name is in use.
    """
    while True:
        suffix = "".join(random.choice(_LETTERS) for _ in range(_SUFFIX))
        name = f"{base[:_BASE_LIMIT]}{suffix}"
        if not taken(name):
            return name
