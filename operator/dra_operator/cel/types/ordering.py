"""Order of values, and lists sorted by it as Go sorts them.

Go's sort is not stable: where elements are equal, which one comes first hangs on each step that it takes. So the steps are the same here
(pattern-defeating quicksort, https://arxiv.org/pdf/2106.05123, with the choices that Go's standard library has made).
"""

from __future__ import annotations

import math
from typing import Any, Final

from .values import Duration, Timestamp, UInt

_NUMBERS: Final = frozenset({int, UInt, float})
ORDERED: Final = _NUMBERS | {bool, str, bytes, Duration, Timestamp}
"""Types whose values have an order."""

_INSERTED: Final = 12
"""Parts up to this length are sorted by insertion."""

_NINTHER: Final = 50
"""From this length on the pivot is a median of medians, and a nearly sorted part is worth a try."""

_TRIES: Final = 5
"""Elements that are moved in that try before it is given up."""

_SMALLEST: Final = 8
"""Shortest part for which a pivot is looked for."""

_ALL_SWAPPED: Final = 12
"""Comparisons that all went the other way round, when a part is sorted backwards."""


def order(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None where CEL knows no order, as with NaN."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if float in {kind, other}:
            left, right = float(left), float(right)
            if math.isnan(left) or math.isnan(right):
                return None
    elif kind is not other or kind not in ORDERED:
        return None
    return int(left > right) - int(left < right)


def sorted_numbers(keys: tuple[Any, ...]) -> list[int]:
    """The numbers of the keys in the order of the keys, as Go's `sort.Slice` leaves them."""
    sort = _Sort(keys)
    sort.part(0, len(keys), len(keys).bit_length())
    return sort.numbers


class _Sort:
    """Sorts numbers in place by the keys that they stand for."""

    def __init__(self, keys: tuple[Any, ...]) -> None:
        self.numbers = list(range(len(keys)))
        self._keys = keys
        self._swaps = 0

    def _less(self, one: int, other: int) -> bool:
        keys, numbers = self._keys, self.numbers
        return order(keys[numbers[one]], keys[numbers[other]]) == -1

    def _swap(self, one: int, other: int) -> None:
        numbers = self.numbers
        numbers[one], numbers[other] = numbers[other], numbers[one]

    def part(self, start: int, end: int, limit: int) -> None:
        """Sort the places from start up to end; after so many bad pivots, by a heap."""
        is_balanced = is_sorted = True
        while end - start > _INSERTED:
            length = end - start
            if limit == 0:
                self._by_heap(start, end)
                return
            if not is_balanced:
                self._scatter(start, end)
                limit -= 1
            pivot, is_rising = self._pivot(start, end)
            if is_balanced and is_sorted and is_rising and self._nearly_sorted(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._behind_equal(start, end, pivot)
                continue
            middle, is_sorted = self._divided(start, end, pivot)
            is_balanced = min(middle - start, end - middle) >= length // 8
            if middle - start < end - middle:
                self.part(start, middle, limit)
                start = middle + 1
            else:
                self.part(middle + 1, end, limit)
                end = middle
        self._by_insertion(start, end)

    def _by_insertion(self, start: int, end: int) -> None:
        for number in range(start + 1, end):
            self._sink(number, start)

    def _sink(self, number: int, start: int) -> None:
        """Move an element to the left as long as it is smaller than the one before it."""
        while number > start and self._less(number, number - 1):
            self._swap(number, number - 1)
            number -= 1

    def _by_heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift(0, last, start)

    def _sift(self, root: int, length: int, start: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._less(start + child, start + child + 1):
                child += 1
            if not self._less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child

    def _scatter(self, start: int, end: int) -> None:
        """Move three elements about, by a generator of random numbers that starts with the length."""
        length = state = end - start
        middle = start + length // 4 * 2
        for place in (middle - 1, middle, middle + 1):
            for shift in (13, -7, 17):
                state ^= (state << shift if shift > 0 else state >> -shift) & (2**64 - 1)
            other = state & ((1 << length.bit_length()) - 1)
            self._swap(place, start + (other - length if other >= length else other))

    def _pivot(self, start: int, end: int) -> tuple[int, bool]:
        """The place of a pivot, and whether the part seems to be sorted; a part that is sorted backwards is turned round."""
        length, self._swaps = end - start, 0
        places = [start + length // 4 * quarter for quarter in (1, 2, 3)]
        if length >= _NINTHER:
            places = [self._median(place - 1, place, place + 1) for place in places]
        pivot = self._median(*places) if length >= _SMALLEST else places[1]
        if self._swaps < _ALL_SWAPPED:
            return pivot, self._swaps == 0
        self.numbers[start:end] = self.numbers[start:end][::-1]
        return start + end - 1 - pivot, True

    def _median(self, one: int, two: int, three: int) -> int:
        one, two = self._in_order(one, two)
        two, three = self._in_order(two, three)
        return self._in_order(one, two)[1]

    def _in_order(self, one: int, two: int) -> tuple[int, int]:
        if self._less(two, one):
            self._swaps += 1
            return two, one
        return one, two

    def _nearly_sorted(self, start: int, end: int) -> bool:
        """Whether moving a few elements sorted the part."""
        place = start + 1
        for _ in range(_TRIES):
            while place < end and not self._less(place, place - 1):
                place += 1
            if place == end:
                return True
            if end - start < _NINTHER:
                return False
            self._swap(place, place - 1)
            if place - start > 1:
                self._sink(place - 1, 0)
            if end - place > 1:
                self._rise(place + 1, end)
        return False

    def _rise(self, number: int, end: int) -> None:
        """Move the element before this place to the right as long as it is larger than the next one."""
        while number < end and self._less(number, number - 1):
            self._swap(number, number - 1)
            number += 1

    def _divided(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Smaller ones, the pivot, the others: where the pivot is then, and whether they were so before."""
        self._swap(start, pivot)
        left, right = self._misplaced(start + 1, end - 1, start)
        is_sorted = left > right
        while left <= right:
            self._swap(left, right)
            left, right = self._misplaced(left + 1, right - 1, start)
        self._swap(right, start)
        return right, is_sorted

    def _misplaced(self, left: int, right: int, pivot: int) -> tuple[int, int]:
        while left <= right and self._less(left, pivot):
            left += 1
        while left <= right and not self._less(right, pivot):
            right -= 1
        return left, right

    def _behind_equal(self, start: int, end: int, pivot: int) -> int:
        """Put those equal to the pivot before the larger ones; where the larger ones begin."""
        self._swap(start, pivot)
        left, right = start + 1, end - 1
        while True:
            while left <= right and not self._less(start, left):
                left += 1
            while left <= right and self._less(start, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1
