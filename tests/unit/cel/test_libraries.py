"""String, regular expression, quantity, version and list functions (cel.md, section 3.3; alloc L-9)."""

from __future__ import annotations

import pytest

from dra_operator.errors import CelRuntimeError, CelUnsupported

from .build import matches

TRUE = [
    # strings
    '$a.model.startsWith("a1") && $a.model.endsWith("sxm") && $a.model.contains("00-")',
    '$a.model.upperAscii() == "A100-SXM" && "ÄB".lowerAscii() == "Äb"',
    '$a.model.split("-") == ["a100", "sxm"] && "abc".split("") == ["a", "b", "c"]',
    '"a,b,c".split(",", 2) == ["a", "b,c"] && "a,b".split(",", 0) == [] && "a,b".split(",", -1).size() == 2',
    '"abc".split("", 2) == ["a", "bc"] && "ab".split("", 5) == ["a", "b"]',
    '"aaa".replace("a", "b") == "bbb" && "aaa".replace("a", "b", 2) == "bba" && "ab".replace("", "-") == "-a-b-"',
    '"hello".substring(1) == "ello" && "hello".substring(1, 3) == "el" && "Grüße".substring(4) == "e"',
    '"hello".indexOf("l") == 2 && "hello".indexOf("l", 3) == 3 && "hello".indexOf("z") == -1',
    '"hello".indexOf("", 9) == 5 && "hello".indexOf("o", 9) == -1',
    '"hello".lastIndexOf("l") == 3 && "hello".lastIndexOf("l", 2) == 2 && "hello".lastIndexOf("") == 5',
    '"hello".charAt(4) == "o" && "hello".charAt(5) == ""',
    '"\\t x\\u3000".trim() == "x"',
    '["a", "b"].join() == "ab" && ["a", "b"].join(",") == "a,b" && $a.names.join("-") == "a-b"',
    # regular expressions
    '$a.model.matches("^a[0-9]+-") && !$a.model.matches("^a100$") && matches($a.model, "sxm$")',
    '"abc 123".find("[0-9]+") == "123" && "abc".find("[0-9]+") == ""',
    '"1 2 3".findAll("[0-9]") == ["1", "2", "3"] && "1 2 3".findAll("[0-9]", 2) == ["1", "2"]',
    '"a1 b2".findAll("[a-z]([0-9])", -1) == ["a1", "b2"]',
    '"x,y,z".findAll("x*") == ["x", "", "", "", ""] && "x,y,z".findAll("x*", 2) == ["x", ""]',
    '"xx".findAll("|x") == ["", "", ""] && "".findAll("x*") == [""] && "xx".findAll("x*") == ["xx"]',
    '"éaé".findAll("é*") == ["é", "é"] && "ab".findAll("b|$") == ["b"] && "aab".findAll("a|") == ["a", "a", ""]',
    # quantities
    '$c.memory.compareTo(quantity("40Gi")) == 0 && $c.memory == quantity("40960Mi")',
    '$c.memory.isGreaterThan(quantity("39Gi")) && $c.memory.isLessThan(quantity("41Gi"))',
    "$c.memory.isInteger() && $c.memory.asInteger() == 42949672960 && !$c.cores.isInteger()",
    "$c.cores.asApproximateFloat() == 1.5 && $c.memory.asApproximateFloat() == 42949672960.0",
    '$c.memory.add(quantity("1Gi")) == quantity("41Gi") && $c.memory.sub(1).isLessThan($c.memory)',
    '$c.memory.add(1).isGreaterThan($c.memory) && $c.memory.sub($c.memory) == quantity("0")',
    'sign($c.memory) == 1 && sign(quantity("-1")) == -1 && sign(quantity("0")) == 0',
    'isQuantity("1Gi") && !isQuantity("1 Gi")',
    # versions
    '$a.driverVersion.isLessThan(semver("550.54.15")) && $a.driverVersion.isGreaterThan(semver("550.0.0"))',
    '$a.driverVersion == semver("550.54.15-rc.1") && $a.driverVersion.compareTo(semver("550.54.15-rc.1+x")) == 0',
    "$a.driverVersion.major() == 550 && $a.driverVersion.minor() == 54 && $a.driverVersion.patch() == 15",
    'semver("v1.0", true).minor() == 0 && semver("01.02.03", true).minor() == 2 && semver("1", true).patch() == 0',
    'isSemver("1.0.0") && !isSemver("1.0") && isSemver("1.0", true) && !isSemver("1.0.0-a..1") && !isSemver("1-a", true)',
    'semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))',
    '!isSemver("18446744073709551616.0.0") && !isSemver("")',
    'semver("2.0.0") in $a.versions && $a.driverVersion != "550.54.15"',
    '[semver("1.0.0")] == dyn(["1.0.0"]) && dyn(["1.0.0"]) != [semver("1.0.0")]',  # upstream skips what it cannot compare
    # lists
    "$a.numbers.indexOf(2) == 1 && $a.numbers.lastIndexOf(9) == -1",
    "$a.numbers.includes(2) && !$a.numbers.includes(4) && $a.index.includes(3.0) && !$a.model.includes(3)",
    "$a.flags.includes(true) && !$a.driverVersion.includes('550.54.15')",
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_holds(expression: str) -> None:
    assert matches(expression) is True


ERRORS = {
    '"abc".substring(4) == ""': "index out of range: 4",
    '"abc".substring(2, 1) == ""': "invalid substring range. start: 2, end: 1",
    '"abc".charAt(9) == ""': "index out of range: 9",
    '"abc".indexOf("a", -1) == 0': "index out of range: -1",
    '"abc".lastIndexOf("", -1) == 0': "index out of range: -1",
    '"abc".substring(5, 2) == ""': "invalid substring range. start: 5, end: 2",
    '[dyn("a"), dyn({"k": [dyn(b"ab"), dyn(null), dyn(int), dyn(quantity("1Gi"))]})].join() == ""': r"join: invalid input: \{k: \[\[97 98\], 0, int, 1Gi\]\}",
    '"a".matches($a.model + "[")': "error parsing regexp",
    'quantity("bad") == quantity("1")': "quantities must match the regular expression",
    "$c.cores.asInteger() == 1": "cannot convert value to integer",
    'semver("1.0").major() == 1': "No Major.Minor.Patch elements found",
    'semver("v1.0.0").major() == 1': "Invalid character.s. found in major number",
    'semver("1.0-a", true).major() == 1': "short version cannot contain PreRelease/Build meta data",
    '$a.driverVersion == "550.54.15"': "no such overload",
    "$a.numbers.join() == ''": "no such overload",
}


@pytest.mark.parametrize(("expression", "message"), ERRORS.items())
def test_fails_on_this_device(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=message):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 7 + '.contains("b")',
    ],
)
def test_huge_results_are_refused(expression: str) -> None:
    with pytest.raises(CelUnsupported):
        matches(expression)


def test_what_re2_finds_within_a_character_is_not_answered() -> None:
    r"""`\B` is found between the bytes of `é`, where Go has no place for it."""
    with pytest.raises(CelUnsupported, match=r"\\B in a regular expression"):
        matches(r'"AéA".matches(r"\B")')
    assert matches(r'"AA".matches(r"\B") && "AéA".matches(r"\bA\b") && "AéA".findAll(r"\\B") == []') is True
