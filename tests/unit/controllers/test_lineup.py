"""Who is next in a queue: by rank, then as they came, and nobody waits for ever."""

from __future__ import annotations

from dra_operator.controllers.lineup import LONG, SLACK, TURNS, Lineup

from .clocks import HandClock


def by_number(key: str) -> tuple[int]:
    """The rank of `a-3` is 3."""
    return (int(key.rpartition("-")[2]),)


def make(*keys: str) -> tuple[Lineup, HandClock]:
    clock = HandClock()
    line = Lineup(clock)
    line.rank_by(by_number)
    for key in keys:
        line.push(key)
    return line, clock


def test_ranks_go_first_and_equals_leave_as_they_came() -> None:
    line, _ = make("c-2", "b-1", "a-1", "d-0")
    assert [line.pop()[0] for _ in range(len(line))] == ["d-0", "b-1", "a-1", "c-2"]


def test_who_has_waited_long_gets_a_turn_among_others_that_come_again_and_again() -> None:
    line, clock = make("low-9")
    clock.advance(LONG + 1)
    left: list[str] = []
    for number in range(TURNS):
        line.push(f"high-{number % 2}")
        left.append(line.pop()[0])
    assert left.index("low-9") == TURNS - 1


def test_who_has_not_waited_long_gets_none() -> None:
    line, clock = make("low-9")
    clock.advance(LONG - 1)
    for _ in range(2 * TURNS):
        line.push("high-0")
        assert line.pop()[0] == "high-0"


def test_a_key_that_left_out_of_turn_comes_again_in_its_new_place() -> None:
    line, clock = make(*(f"k-{number}" for number in range(TURNS - 1)), "last-9")
    for _ in range(TURNS - 1):
        line.pop()
    clock.advance(LONG + 1)
    assert line.pop() == ("last-9", LONG + 1)
    line.push("first-0")
    line.push("last-9")
    assert [line.pop()[0] for _ in range(2)] == ["first-0", "last-9"]
    assert len(line) == 0


def test_places_that_nobody_holds_are_cleared_away() -> None:
    """Whoever always leaves out of turn would fill the memory."""
    line, clock = make()
    for _ in range(TURNS * SLACK):
        line.push("low-9")
        clock.advance(LONG + 1)
        for _ in range(TURNS):
            line.push("high-0")
            line.pop()
            if "high-0" in line._waiting:
                line.pop()
    assert len(line._heap) <= 2 * SLACK


def test_the_oldest_is_the_one_that_came_first_whatever_its_rank() -> None:
    line, clock = make("low-9")
    clock.advance(2)
    line.push("high-0")
    assert line.oldest == 2
    line.pop()
    assert line.oldest == 2
    line.pop()
    assert line.oldest == 0


def test_a_rank_that_has_become_worse_meanwhile_counts() -> None:
    line, _ = make()
    owing: set[str] = set()
    line.rank_by(lambda key: (key in owing, key))
    for key in ("a", "b", "c"):
        line.push(key)
    owing |= {"a", "b"}
    assert [line.pop()[0] for _ in range(3)] == ["c", "a", "b"]
