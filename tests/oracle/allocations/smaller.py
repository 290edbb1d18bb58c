"""Makes a problem small on which the answers differ: less is published, taken and asked for, as long as they differ in the same way."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from .batches import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.upstream import Upstream

    from .differences import Difference

Json = dict[str, Any]
Path = tuple[str | int, ...]

KEPT: Final = frozenset(
    {"apiVersion", "kind", "metadata", "name", "driver", "pool", "device", "allocationMode", "count", "deviceClassName", "nodeName", "allNodes",
     "nodeSelector", "perDeviceNodeSelection", "spec", "exactly", "id", "topic", "note", "channel", "features", "node", "value", "generation", "resourceSliceCount", "devices", "sharedDeviceIDs", "aggregatedCapacity",
     "capacity"}
)  # fmt: skip
"""Fields without which objects make no sense."""

AT_ONCE: Final = 150
"""Problems that are tried together."""


def smallest(upstream: Upstream, difference: Difference) -> Difference:
    """The same kind of difference on as little as is found quickly."""
    while True:
        found = next(_smaller(upstream, difference), None)
        if found is None:
            return difference
        difference = found


def _smaller(upstream: Upstream, difference: Difference) -> Iterator[Difference]:
    tried = list(less(difference.problem))
    for start in range(0, len(tried), AT_ONCE):
        for found in judge(upstream, tried[start : start + AT_ONCE]).differences:
            if _is_like(found, difference):
                yield found


def _is_like(found: Difference, difference: Difference) -> bool:
    """Whether it is the same fault, as far as one can tell: errors may have other words, but for those that nobody has foreseen."""
    if difference.kind == "crash":
        return found.signature == difference.signature
    return found.kind == difference.kind and found.theirs["outcome"] == difference.theirs["outcome"]


def less(problem: Json) -> Iterator[Json]:
    """All problems with one thing less, large things first."""
    paths = [
        path
        for part in ("slices", "claims", "classes", "allocated")
        for path in _things(problem[part], (part,))
    ]
    for path in sorted(paths, key=len):
        smaller = copy.deepcopy(problem)
        holder: Any = smaller
        for step in path[:-1]:
            holder = holder[step]
        gone = holder.pop(path[-1])
        if path[0] == "slices" and len(path) == 2:
            _count_one_less(smaller["slices"], gone["spec"])
        yield smaller


def _things(value: Any, path: Path) -> Iterator[Path]:
    """Where something can be left out."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield (*path, index)
            yield from _things(each, (*path, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in KEPT or (key == "capacity" and path[0] != "allocated"):
                yield (*path, key)
            yield from _things(each, (*path, key))


def _count_one_less(slices: list[Json], gone: Json) -> None:
    for each in slices:
        spec = each["spec"]
        if spec["driver"] == gone["driver"] and spec["pool"]["name"] == gone["pool"]["name"]:
            spec["pool"]["resourceSliceCount"] = max(1, spec["pool"]["resourceSliceCount"] - 1)
