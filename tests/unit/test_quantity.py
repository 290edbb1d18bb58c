"""Quantities: what upstream's parser accepts, how amounts print, and where ours is deliberately better."""

from __future__ import annotations

import pytest

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import NANO, Quantity

CANONICAL = {
    "0": "0",
    "1500m": "1500m",
    "0.5": "500m",
    "1000m": "1",
    "1000": "1k",
    "12345": "12345",
    "0.000001": "1u",
    "1e3": "1e3",
    "1500e-3": "1500e-3",
    "1024Ki": "1Mi",
    "1.5Gi": "1536Mi",
    "1023Mi": "1023Mi",
    "0.5Ki": "512",
    "1.1Ki": "1126400m",
    "-2Gi": "-2Gi",
    "+5": "5",
    "007": "7",
    "5.": "5",
    ".5": "500m",
}


@pytest.mark.parametrize(("text", "printed"), CANONICAL.items())
def test_prints_canonically(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1K", "1ki", "1Q", "1.2.3", "--1", "0x10", "1_000", "1,000", "٣", "nan"]
)
def test_refuses_what_is_no_quantity(text: str) -> None:
    with pytest.raises(InvalidQuantity, match="is not a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize("raw", [True, None, [], {}, b"1"])
def test_refuses_what_is_neither_text_nor_number(raw: object) -> None:
    with pytest.raises(InvalidQuantity):
        Quantity.parse(raw)


@pytest.mark.parametrize("text", ["1e1000000000", "1" * 5000])
def test_refuses_absurd_sizes_instead_of_computing_them(text: str) -> None:
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


def test_json_numbers_are_quantities() -> None:
    assert [Quantity.parse(raw) for raw in (2, 0.5, 1e3)] == [
        Quantity.parse(text) for text in ("2", "500m", "1k")
    ]


@pytest.mark.parametrize("text", ["Gi", "+", "."])
def test_text_without_digits_is_zero_as_upstream_reads_it(text: str) -> None:
    assert Quantity.parse(text).nano == 0


@pytest.mark.parametrize(
    ("text", "nano"), [("0.1n", 1), ("1e-400", 1), ("1.0000000001", NANO + 1), ("-0.1n", -1), ("0e-400", 0)]
)
def test_finer_than_nano_is_rounded_away_from_zero(text: str, nano: int) -> None:
    assert Quantity.parse(text).nano == nano


def test_binary_amounts_are_capped_and_decimal_ones_are_not() -> None:
    assert str(Quantity.parse("2048Ei")) == "9223372036854775807"
    assert str(Quantity.parse("10E")) == "10E"


def test_notations_of_one_amount_are_equal_and_hash_alike() -> None:
    assert {Quantity.parse(text) for text in ("1Ki", "1024", "1024000m", "1.024k", "1024e0")} == {
        Quantity.parse("1Ki")
    }


def test_a_sum_keeps_the_notation_of_its_left_operand_unless_that_is_zero() -> None:
    kibi, kilo, zero = Quantity.parse("1Ki"), Quantity.parse("1k"), Quantity.parse("0")
    assert [str(total) for total in (kibi + kibi, kilo + kibi, zero + kibi)] == ["2Ki", "2024", "1Ki"]
    assert str(kibi - kilo) == "24"


def test_large_multiples_print_their_amount_where_upstream_loses_the_exponent() -> None:
    assert [str(Quantity.parse(text)) for text in ("1000E", "1e21")] == ["1000E", "1e21"]


def test_knows_which_amounts_upstream_holds_as_whole_numbers() -> None:
    texts = ["1", "1k", "40Gi", "10Ti", "1e3", "1000m", "5.0", "100Ti"]
    assert [text for text in texts if Quantity.parse(text).is_integer] == ["1", "1k", "40Gi", "10Ti", "1e3"]
