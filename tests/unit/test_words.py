"""The first few of many, and the name that was meant."""

from __future__ import annotations

import pytest

from dra_operator.words import COMPARED, listed, nearest


@pytest.mark.parametrize(
    ("things", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b"), "a; b"),
        (("a", "b", "c"), "a; b and 1 more"),
        (("a", "b", "c", "d"), "a; b and 2 more"),
    ],
)
def test_the_first_few_are_named_and_the_others_counted(things: tuple[str, ...], text: str) -> None:
    assert listed(things, 2, "; ") == text


@pytest.mark.parametrize(
    ("wanted", "names", "meant"),
    [
        ("gpus", ["gpu", "nic"], "gpu"),
        ("gpu.exmple.com", ["gpu.example.com", "gpu.other.com"], "gpu.example.com"),
        ("later", ["gpu", "nic"], ""),
        ("gpu", [], ""),
    ],
)
def test_a_name_that_is_nearly_the_same_is_meant(wanted: str, names: list[str], meant: str) -> None:
    assert nearest(wanted, names) == meant


def test_only_neighbours_in_the_alphabet_are_compared() -> None:
    names = [f"node-{number:05}" for number in range(50_000)]
    assert nearest("node-3000x", names) in names[30_000 - COMPARED : 30_000 + COMPARED]
    assert nearest("xode-30000", names) == ""
