"""Raw objects as JSON has them, and the two questions that every check asks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Obj = dict[str, Any]
"""One raw Kubernetes object, or a part of one."""


def dig(obj: Any, *path: str) -> Any:
    """The value at `path`, or None where any step is missing."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def dicts(value: Any) -> Iterator[Obj]:
    """The dictionaries in a list that may be missing."""
    return (item for item in value or () if isinstance(item, dict))
