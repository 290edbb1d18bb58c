"""The answers of one selector for the devices of one slice: true, false, an error, or not known yet.

Sets of devices are bits of an int, by the device's place in the slice. An error is kept with the device that it belongs to and counts only when
an allocation reaches that device in upstream's order (cel.md, section 5.5). It must not evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.errors import CelError

_DIGITS: Final = bytes.maketrans(b"\x00\x01", b"01")


class MatchVector:
    """Answers, which become known bit by bit.

    Threads may share it: what is known changes in one assignment, so that at worst an answer is forgotten. Whoever has just put one must not read it
    from here; who reads takes `state` once.

    Attributes:
        state: devices that have an answer, and those of them that match.
        errors: why others have none, by place; those of devices without an answer mean nothing.
        singly: whether the devices are evaluated one by one, as all at once gave an error.
    """

    __slots__ = ("errors", "singly", "state")

    def __init__(self) -> None:
        self.state = 0, 0
        self.errors: dict[int, CelError] = {}
        self.singly = False

    def put(self, number: int, answer: bool | CelError) -> None:  # noqa: FBT001 -- an answer, no switch
        """An answer for one device."""
        if not isinstance(answer, bool):
            self.errors[number] = answer
        known, true = self.state
        self.state = known | 1 << number, true | (answer is True) << number

    def put_all(self, numbers: Sequence[int], answers: Sequence[bool]) -> None:
        """Answers for some devices, in the order of their places."""
        if len(answers) == numbers[-1] + 1:  # for all of them
            self.state = (1 << len(answers)) - 1, bits(answers)
            return
        for number, answer in zip(numbers, answers, strict=True):
            self.put(number, answer)

    def unknown(self, count: int) -> list[int]:
        """The places without an answer among so many."""
        known, _ = self.state
        return list(places(~known & ((1 << count) - 1))) if known else list(range(count))

    def part(self, mask: int) -> MatchVector:
        """The answers for some devices only."""
        made = MatchVector()
        known, true = self.state
        made.state = known & mask, true & mask
        made.errors = {number: error for number, error in list(self.errors.items()) if mask >> number & 1}
        return made


def bits(answers: Sequence[bool]) -> int:
    """A set of places as an int: those whose answer is true."""
    return int(bytes(answers)[::-1].translate(_DIGITS), 2) if answers else 0


def places(mask: int) -> Iterator[int]:
    """The places in a set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
