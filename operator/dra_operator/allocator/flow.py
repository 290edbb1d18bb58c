"""How many devices requests can get together at most: the largest flow of a small network.

Used by `bounds`. Requests draw from cells of like devices; cells may be in groups that share a bound. Numbers only: it must not know what they stand for.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Cell(NamedTuple):
    """Like devices.

    Attributes:
        room: how often they can be given out, all in all.
        group: index of the bound that they share with other cells; None for none.
    """

    room: int
    group: int | None = None


def suffices(needs: list[int], edges: list[dict[int, int]], cells: list[Cell], groups: list[int]) -> bool:
    """Whether all needs can be met at once.

    Args:
        needs: by request, how many it wants.
        edges: by request, the cells that it can use, each with how many of them.
        cells: all of them.
        groups: bounds that cells share.
    """
    network = _Network(needs, edges, cells, groups)
    return all(network.send(request, need) for request, need in enumerate(needs))


class _Network:
    """Nodes are numbered: requests, cells, groups, the sink. What can still flow is kept for both directions."""

    def __init__(
        self, needs: list[int], edges: list[dict[int, int]], cells: list[Cell], groups: list[int]
    ) -> None:
        self._cells_at = len(needs)
        self._groups_at = self._cells_at + len(cells)
        self._sink = self._groups_at + len(groups)
        self._left: list[dict[int, int]] = [{} for _ in range(self._sink + 1)]
        for request, usable in enumerate(edges):
            for cell, number in usable.items():
                self._join(request, self._cells_at + cell, number)
        for number, cell_ in enumerate(cells):
            end = self._sink if cell_.group is None else self._groups_at + cell_.group
            self._join(self._cells_at + number, end, cell_.room)
        for number, bound in enumerate(groups):
            self._join(self._groups_at + number, self._sink, bound)

    def _join(self, start: int, end: int, number: int) -> None:
        self._left[start][end] = number
        self._left[end].setdefault(start, 0)

    def send(self, request: int, need: int) -> bool:
        """Have so much flow from the request to the sink, beside what flows already."""
        while need:
            path = self._path(request)
            if path is None:
                return False
            amount = min(need, *(self._left[start][end] for start, end in path))
            for start, end in path:
                self._left[start][end] -= amount
                self._left[end][start] += amount
            need -= amount
        return True

    def _path(self, request: int) -> list[tuple[int, int]] | None:
        """The shortest way to the sink on which something can flow."""
        before = {request: request}
        waiting = deque([request])
        while waiting:
            node = waiting.popleft()
            for end, left in self._left[node].items():
                if not left or end in before:
                    continue
                before[end] = node
                if end == self._sink:
                    return self._way(before, request)
                waiting.append(end)
        return None

    def _way(self, before: dict[int, int], request: int) -> list[tuple[int, int]]:
        path = []
        node = self._sink
        while node != request:
            path.append((before[node], node))
            node = before[node]
        return path
