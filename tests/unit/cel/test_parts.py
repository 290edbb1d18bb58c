"""Long texts and lists part by part give what they give whole."""

from __future__ import annotations

import pytest

from dra_operator.cel.types.parts import PART, by_parts, characters, join, length, numbers, split

TEXTS = [
    "",
    "a",
    "é" * PART,
    "ab" * PART,
    "x" + "é," * (PART + 1),
    ("," * (3 * PART)),
    "a,b" * (2 * PART) + ",",
]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_parts_make_the_whole(number: int) -> None:
    text = TEXTS[number]
    assert by_parts(text, str.upper) == text.upper()
    assert characters(text) == tuple(text)
    assert split(text, ",") == tuple(text.split(","))
    assert split(text, "ab") == tuple(text.split("ab"))
    for most in (0, 1, PART - 1, PART, PART + 1, 2 * PART + 1):
        assert split(text, ",", most) == tuple(text.split(",", most))
    assert join("--", characters(text)) == "--".join(text)
    assert length(split(text, ",")) == len(text) - text.count(",")


@pytest.mark.parametrize("count", [0, 1, PART, PART + 1, 3 * PART])
def test_numbers_are_those_of_a_range(count: int) -> None:
    assert numbers(count) == tuple(range(count))
