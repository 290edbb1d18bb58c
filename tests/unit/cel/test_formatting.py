"""`format` and `strings.quote`: verbs, numbers as upstream's printer makes them, faults found before and while running."""

from __future__ import annotations

import re

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

TEXTS = {
    '"%s and %s".format(["a", 1])': "a and 1",
    '"100%%".format([])': "100%",
    '"%s".format([1234567.5])': "1.2345675e+06",
    r'"%s".format([[1.5, "é\n", b"x", null, int, true]])': r'[1.500000, "é\n", b"x", null, int, true]',
    '"%s".format([{"b": 1, "a": [2u]}])': '{"a":[2], "b":1}',
    '"%s".format([{10: 1, 9: 2}])': "{10:1, 9:2}",
    r'"%s".format([["\u007f\u00ad\U000e0001"]])': r'["\x7f\u00ad\U000e0001"]',
    '"%s".format([[double("inf"), -0.0]])': '["+Inf", -0.000000]',
    '"%d %x %X %o %b %b".format([-5, -255, 255u, 8, 5, true])': "-5 -ff FF 10 101 1",
    r'"%x %X".format(["aé", b"\xff"])': "61c3a9 FF",
    '"%f".format([1234567.891])': "1,234,567.891000",
    '"%.0f %.0f".format([0.5, 1.5])': "0 2",
    '"%.2f".format([-1234.005])': "-1,234.01",
    '"%.3f %.3f".format([-0.0, -0.0001])': "0.000 -0.000",
    '"%f %f %f".format(["NaN", "Infinity", "-Infinity"])': "NaN ∞ -∞",
    '"%e".format([-1234.5])': "-1.234500×10⁰³",  # noqa: RUF001 -- upstream's sign
    '"%e".format([1e-300])': "1.000000×10⁻³⁰⁰",  # noqa: RUF001 -- upstream's sign
    '"%.15e".format([1.5])': "  1.500000×10⁰⁰",  # noqa: RUF001 -- upstream's sign
    '"%e".format([double("nan")])': "   NaN",
    '"%.10000010f".format([1.5])': "%!(NOVERB)",
    '"%.65537f".format([1.25])': "1.2",
    '"%.40000f".format([1.25])': "1.25" + "0" * 62,
    '"%.2s".format(["abc"])': "abc",
    'dyn("%s").format(["a", "b"])': "a",
    r'strings.quote("a\"b\n\\é\u0001")': '"a\\"b\\n\\\\é\x01"',
}


@pytest.mark.parametrize(("expression", "text"), TEXTS.items())
def test_text_as_upstream_makes_it(expression: str, text: str) -> None:
    escaped = "".join(f"\\U{ord(char):08x}" for char in text)
    assert matches(f'{expression} == "{escaped}"')


REFUSED = {
    '"%".format([])': "1:11: unexpected end of string",
    '"%q".format([1])': '1:12: could not parse formatting clause: unrecognized formatting clause "q"',
    '"%é".format([1])': 'unrecognized formatting clause "Ã"',
    '"%.".format([1])': "error while parsing precision: could not find end of precision specifier",
    '"%.f".format([1.0])': 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    '"%.9223372036854775808f".format([1.0])': 'parsing "9223372036854775808": value out of range',
    '"%s %s".format(["a"])': "1:15: index 1 out of range",
    '"%s".format(["a", "b"])': "1:12: too many arguments supplied to string.format (expected 1, got 2)",
    '"%s".format([[quantity("1")]])': "1:23: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
    "lists, types, durations, and timestamps, was given kubernetes.Quantity",
    '"%d".format([1.5])': "1:14: error during formatting: decimal clause can only be used on integers, was given double",
    '"%f".format([1])': "1:14: error during formatting: fixed-point clause can only be used on doubles, was given int",
    '"%x".format([1.5])': "only integers, byte buffers, and strings can be formatted as hex, was given double",
    # Only inside of format() may lists be mixed.
    '"%s".format([[1, "a"]]) == string([1, "a"].size())': "1:39: expected type 'int' but found 'string'",
    # The first fault in the text is told, whoever finds it.
    '["a".matches("[")] == [true, "x".matches("y")] && "%d".format(["a"]) == ""': "1:14: invalid matches argument",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_literal_formats_are_looked_at_beforehand(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError, match=re.escape(message)):
        matches(expression if "==" in expression else f'{expression} == ""')


FAILS = {
    'dyn("%").format([])': "index 0 out of range",
    'dyn("%").format([1])': "unexpected end of string",
    '"%f".format(["x"])': "error during formatting: fixed-point clause can only be used on doubles, was given string",
    'dyn("%s").format([[quantity("1")]])': "error during formatting: no formatting function for kubernetes.Quantity",
    'dyn("%s").format([{null: 1}])': "error during formatting: no formatting function for map key of type null_type",
    r'"%s".format([b"\xff"])': 'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string',
    '"%s".format(dyn("a"))': "no such overload: format(string, string)",
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_in_upstreams_words(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=re.escape(message)):
        matches(f'{expression} == ""')
