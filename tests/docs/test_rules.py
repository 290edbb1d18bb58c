"""Every rule that can be seen has a test on a real control plane that is named after it."""

from __future__ import annotations

from .collected import Shown, rules_of, shown
from .rulebook import RULES
from .rules import all_shown


def seen() -> dict[str, list[Shown]]:
    found: dict[str, list[Shown]] = {}
    for test in all_shown():
        for rule in test.rules:
            found.setdefault(rule, []).append(test)
    return found


def test_every_rule_that_can_be_seen_is_shown() -> None:
    assert [rule for rule, (_, unseen) in RULES.items() if not unseen and rule not in seen()] == []


def test_no_test_names_a_rule_that_there_is_not() -> None:
    assert sorted(set(seen()) - set(RULES)) == []


def test_a_rule_that_is_shown_has_no_excuse() -> None:
    assert [rule for rule in seen() if RULES[rule].unseen] == []


def test_both_modes_and_both_ways_are_shown() -> None:
    modes = {mode for test in all_shown() for mode in test.modes}
    ways = {way for test in all_shown() for way in test.ways}
    assert (modes, ways) == ({"cooperate", "replace"}, {"gate", "name"})


def test_rules_are_read_from_names() -> None:
    assert rules_of("test_c2_c46_i50_it_is_so[replace-gate-c9]") == ("C-2", "C-46", "I-50")
    assert rules_of("test_each_entry_is_recorded_c40_c41") == ("C-40", "C-41")
    assert rules_of("test_claims_in_c_and_i_order") == ()


def test_modes_and_ways_are_read_from_ids() -> None:
    ids = [
        "a/test_x.py::test_c1_a[replace-name]",
        "a/test_x.py::test_c1_a[cooperate-gate]",
        "a/test_y.py::test_i2_b",
    ]
    assert shown(ids, {"test_y.py": ("replace", "gate")}) == [
        Shown("a/test_x.py", "test_c1_a", ("replace", "cooperate"), ("name", "gate"), ("C-1",)),
        Shown("a/test_y.py", "test_i2_b", ("replace",), ("gate",), ("I-2",)),
    ]
