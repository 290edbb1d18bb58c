"""Laws of quantities, over random texts and amounts."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dra_operator.quantity import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, NANO, Quantity

FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
    "e-3": Fraction(1, 1000),
    "E6": Fraction(10**6),
}
CAP = 2**63 - 1

whole = st.integers(0, 10**12)
suffixes = st.sampled_from(sorted(FACTORS))
quantities = st.builds(
    Quantity,
    st.integers(-(10**30), 10**30),
    st.sampled_from([DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT]),
)


def amount(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nano, NANO)


@given(whole, suffixes, st.sampled_from(["", "+", "-"]))
def test_text_means_its_number_times_its_suffix(number: int, suffix: str, sign: str) -> None:
    exact = number * FACTORS[suffix]
    expected = min(exact, Fraction(CAP)) if suffix.endswith("i") else exact
    assert amount(Quantity.parse(f"{sign}{number}{suffix}")) == (-expected if sign == "-" else expected)


@given(st.text(alphabet="0123456789", min_size=1, max_size=20), st.text(alphabet="0123456789", max_size=15))
def test_fractions_round_up_at_the_ninth_place(units: str, places: str) -> None:
    exact = Fraction(int(f"{units}{places}"), 10 ** len(places))
    parsed = amount(Quantity.parse(f"{units}.{places}"))
    assert exact <= parsed < exact + Fraction(1, NANO)


@given(quantities)
def test_printing_loses_nothing_but_what_the_cap_takes(quantity: Quantity) -> None:
    read = Quantity.parse(str(quantity))
    if quantity.notation != BINARY_SI or abs(amount(quantity)) <= CAP:
        assert read == quantity
    assert str(read) == str(Quantity.parse(str(read)))


@given(quantities, quantities)
def test_order_is_the_order_of_the_amounts(one: Quantity, other: Quantity) -> None:
    left, right = amount(one), amount(other)
    assert [one < other, one <= other, one == other, one >= other, one > other] == [
        left < right,
        left <= right,
        left == right,
        left >= right,
        left > right,
    ]


@given(quantities, quantities)
def test_sums_and_differences_are_exact(one: Quantity, other: Quantity) -> None:
    assert amount(one + other) == amount(one) + amount(other)
    assert amount(one - other) == amount(one) - amount(other)
    assert (one + other) - other == one


@given(quantities, quantities)
def test_equal_amounts_hash_alike(one: Quantity, other: Quantity) -> None:
    assert hash(one) == hash(Quantity(one.nano, other.notation))
