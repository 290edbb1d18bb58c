"""Pods that fare no better than those that they replace come ever more seldom."""

from __future__ import annotations

from dra_operator.controllers.replacing import FORGOTTEN, LONGEST, Waves

PATIENCE = 60.0


def test_pods_that_were_stranded_together_go_together() -> None:
    waves = Waves(PATIENCE)
    assert waves.delay("set", 0.0) == PATIENCE
    waves.replaced("set", 0.0, now=60.0)
    assert waves.delay("set", 1.0) == PATIENCE
    waves.replaced("set", 1.0, now=61.0)
    assert waves.delay("set", 59.0) == PATIENCE
    assert waves.delay("other", 100.0) == PATIENCE


def test_each_wave_waits_twice_as_long_as_the_one_before() -> None:
    waves, now, delays = Waves(PATIENCE), 0.0, []
    for _ in range(9):
        since = now
        delays.append(waves.delay("set", since))
        now += delays[-1]
        waves.replaced("set", since, now)

    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert max(delays) == LONGEST


def test_a_late_one_of_an_earlier_wave_starts_no_new_one() -> None:
    waves = Waves(PATIENCE)
    waves.replaced("set", 0.0, now=60.0)
    waves.replaced("set", 50.0, now=110.0)
    assert waves.delay("set", 70.0) == 2 * PATIENCE


def test_a_controller_that_has_been_calm_is_suspected_no_more() -> None:
    waves = Waves(PATIENCE)
    waves.replaced("set", 0.0, now=60.0)
    waves.replaced("other", 0.0, now=60.0 + FORGOTTEN)
    assert waves.delay("set", 70.0 + FORGOTTEN) == PATIENCE


def test_a_patience_beyond_the_longest_wait_holds() -> None:
    waves = Waves(2 * LONGEST)
    waves.replaced("set", 0.0, now=1.0)
    assert waves.delay("set", 2.0) == 2 * LONGEST
