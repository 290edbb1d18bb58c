"""What upstream's ways of holding numbers let expressions see: quantities, versions, doubles out of text."""

from __future__ import annotations

import re

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError, CelUnsupported

from .build import matches

TRUE = [
    # A quantity is a 64-bit number times a power of ten, or a decimal; as a double, each of the two is rounded.
    'quantity("1n").asApproximateFloat() == 1e-9 && quantity("3n").asApproximateFloat() == 3.0000000000000004e-9',
    'quantity("1.1").asApproximateFloat() == 1.1 && quantity("0.3").asApproximateFloat() == 0.30000000000000004',
    'quantity("123456789012345678901").asApproximateFloat() == 1.2345678901234568e20',
    'quantity("1.5Gi").asApproximateFloat() == 1610612736.0 && quantity("100Ti").asApproximateFloat() == 109951162777600.0',
    'quantity("1e300").asApproximateFloat() == 1e300 && quantity("1e310").asApproximateFloat() == double("inf")',
    'quantity("10Ti").isInteger() && !quantity("100Ti").isInteger() && !quantity("1000m").isInteger()',
    'quantity("1m").add(quantity("1")).isInteger() == false && quantity("0m").add(quantity("1")).isInteger()',
    'quantity("1").add(quantity("0m")).isInteger() && quantity("9223372036854775807").sub(quantity("1")).isInteger() == false',
    'quantity("999999999999999999").add(1).asInteger() == 1000000000000000000',
    'quantity("1").sub(-9223372036854775808).asInteger() == -9223372036854775807',
    'quantity(".").asInteger() == 0 && quantity("Gi").asInteger() == 0 && quantity("1e4294967296").asInteger() == 1',
    'isQuantity("1e500") && !isQuantity("Ei") && !isQuantity("1e9223372036854775808")',
    'semver("18446744073709551615.0.0").major() == -1',
    # An optional index into what has no members finds nothing.
    "dyn(1)[?0] == optional.none() && dyn(null)[?'a'] == optional.none() && $a.model[?0] == optional.none()",
    "dyn([1])[?0.0] == optional.of(1)",
    'semver("1.0.0-" + $a.model).major() == 1',
    'double("0x1p-2") == 0.25 && double("-0X1.8p+1") == -3.0 && double("0x_1_0.8p0") == 16.5 && double("1_0e1_0") == 1e11',
    'double("0x1p-9999999999999999999999") == 0.0 && double("0x0p99999") == 0.0',
]


@pytest.mark.parametrize("expression", TRUE)
def test_true_upstream(expression: str) -> None:
    assert matches(expression)


def test_long_versions_are_versions() -> None:
    assert matches(f'semver("1.0.0-{"a" * 5000}").isLessThan(semver("1.0.0"))')
    assert not matches(f'isSemver("{"1" * 5000}.0.0") || isSemver("1.0.0-{"1" * 5000}")')


FAILS = {
    'quantity("x")': "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    'quantity("1Kii")': "unable to parse quantity's suffix",
    f'quantity("{"1" * 300}x")': "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    'quantity("Ei")': "unable to parse numeric part of quantity",
    'quantity("1000m").asInteger()': "cannot convert value to integer",
    "dyn([1])[?1.5]": "unsupported index value 1.5 in list",
    "dyn([1])[1e300]": "unsupported index value 1e+300 in list",
    "dyn([1])[?'a']": "unsupported index type 'string' in list",
    'semver("")': "Version string empty",
    'semver("1.0")': "No Major.Minor.Patch elements found",
    'semver("01.0.0")': 'Major number must not contain leading zeroes "01"',
    'semver("1.a.0")': 'Invalid character(s) found in minor number "a"',
    'semver("1.0.")': 'strconv.ParseUint: parsing "": invalid syntax',
    'semver("1.0.18446744073709551616")': 'strconv.ParseUint: parsing "18446744073709551616": value out of range',
    'semver("1.0.0-")': "Prerelease is empty",
    'semver("1.0.0-01")': 'Numeric PreRelease version must not contain leading zeroes "01"',
    'semver("1.0.0-é")': 'Invalid character(s) found in prerelease "é"',
    'semver("1.0.0+")': "Build meta data is empty",
    'semver("1.0.0+a+b")': 'Invalid character(s) found in build meta data "a+b"',
    'semver("vv1.0", true)': 'Invalid character(s) found in major number "0v1"',
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_in_upstreams_words(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=f"{re.escape(message)}$"):
        matches(f"dyn({expression}) == 1")


@pytest.mark.parametrize(
    "text", ["0x1", "0xp1", "0x1p", "0x1p99999", "0x1.fffffffffffff8p1023", "_1", "1_", "1__0", "1_.5"]
)
def test_text_that_is_no_double(text: str) -> None:
    with pytest.raises(CelCompileError, match="type conversion error from 'string' to 'double'"):
        matches(f'double("{text}") == 1.0')


@pytest.mark.parametrize("text", ["1e500", "1" * 300])
def test_absurd_quantities_are_a_bound_of_ours(text: str) -> None:
    with pytest.raises(CelUnsupported, match="CEL: so l"):
        matches(f'quantity("{text}").isInteger()')
