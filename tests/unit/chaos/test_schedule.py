"""The storm's schedule comes of its seed alone, and holds what a storm has to hold."""

from __future__ import annotations

from collections import Counter

from dra_operator.testing.fakeapi.faults import WEATHER
from tests.chaos.__main__ import in_turn
from tests.chaos.mutant import GUARDS
from tests.chaos.schedule import LIKELY, churn, outages, signals, weather
from tests.chaos.storm import EVERYTHING, NEEDED

SECONDS = 120.0


def test_the_same_seed_gives_the_same_storm_and_another_another() -> None:
    for make in (churn, outages, weather):
        assert list(make(7, SECONDS)) == list(make(7, SECONDS)) != list(make(8, SECONDS))
    assert signals(7, SECONDS, 2) == signals(7, SECONDS, 2) != signals(8, SECONDS, 2)


def test_everything_changes_and_at_the_rate_of_a_storm() -> None:
    steps = list(churn(1, SECONDS))
    kinds = Counter(step.what for step in steps)
    assert set(kinds) == {
        *("create_pod", "end_pod", "touch_pod", "touch_claim"),
        *("publish", "node", "remake_template", "remake_claim"),
    }
    assert len(steps) / SECONDS > 35
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert steps[-1].at < SECONDS


def test_pods_end_only_after_they_came_and_only_once() -> None:
    alive: set[int] = set()
    for step in churn(2, SECONDS):
        if step.what == "create_pod":
            assert step.number not in alive
            alive.add(step.number)
        if step.what == "end_pod":
            alive.remove(step.number)
    assert 20 < len(alive) < 80


def test_every_weather_comes_and_within_the_storm() -> None:
    assert set(LIKELY) == set(WEATHER)
    spells = weather(3, SECONDS)
    assert {spell.name for spell in spells} == set(WEATHER)
    assert max(spell.at for spell in spells) < SECONDS


def test_operators_get_every_signal_and_the_server_goes_at_least_once() -> None:
    steps = signals(4, 600.0, 2)
    assert {step.what for step in steps} == {"kill", "pause", "end"}
    assert {step.number for step in steps} == {0, 1}
    assert len(outages(4, 40.0)) == 1
    assert len(outages(4, 600.0)) == 6


def test_each_guard_has_its_turn() -> None:
    assert {in_turn(number) for number in range(1234, 1234 + len(GUARDS))} == set(GUARDS)


def test_guards_are_those_of_the_issue() -> None:
    assert set(GUARDS) == {"resource-version", "in-flight", "relist-diff", "epoch-touch", "sync-guard"}


def test_for_each_guard_it_is_known_what_has_to_blow() -> None:
    assert set(NEEDED) == {"", *GUARDS}
    assert NEEDED[""] == EVERYTHING
