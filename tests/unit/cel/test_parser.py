"""Text to meaning: what CEL's grammar takes, what it refuses and where, and how deep it goes (cel-go's limits)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.cel.parsing.parser import MAX_BYTES, parse
from dra_operator.errors import CelCompileError

from .build import matches

if TYPE_CHECKING:
    from collections.abc import Callable

TRUE = [
    # numbers
    "-1 == 0 - 1", "- 1 == -1", "--1 == 1", "---1 == -1", "-(-1) == 1", "- -1 == 1", "1 - -1 == 2", "1-1 == 0", "!!true", "!!!false",
    "-9223372036854775808 < 0", "- 9223372036854775808 < 0", "9223372036854775807 > 0", "0x7fffffffffffffff == 9223372036854775807",
    "-0x8000000000000000 == -9223372036854775808", "0xffffffffffffffffu == 18446744073709551615U", "0xFFU == 255u",
    "0" * 5000 + "7 == 7", ".5 == 0.5", "-.5 < 0.0", "1e5 == 100000.0", "1E-5 > 0.0", "1e+5 == 1e5", "1.5e1 == 15.0", "1e-400 == 0.0",
    # strings and bytes
    "'\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\\"\\`\\?'.size() == 12", "'\\x41\\101\\u0041\\U00000041\\X42' == 'AAAAB'", "'\\377' == '\\u00ff'",
    "r'\\n' == '\\\\n'", 'R"\\q".size() == 2', "'''a'b''c''' == \"a'b''c\"", "''''a''' == \"'a\"", '"""a""b""" == \'a""b\'',
    "''.size() == 0", "''''''.size() == 0", "r'''\\''' == '\\\\'", "'''a\nb''' == 'a\\nb'", "'''a\r\nb\rc''' == 'a\\nb\\nc'",
    "r'''a\r\nb''' == 'a\\nb'", "b'\\xff\\377'.size() == 2", "B'é'.size() == 2", "br'\\x'.size() == 2", "bR'''a''' == b'a'", "b'''\r\n''' == b'\\n'",
    "'é😀'.size() == 2", "'// no comment' != ''", "'a' + 'b' == \"ab\"",
    # operators
    "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "10 - 2 - 3 == 5", "100 / 10 / 5 == 2", "7 % 4 * 2 == 6", "2 * 3 % 4 == 2", "1 + 1 == 2 == true",
    "false && false || true", "true || false && false", "!false && true", "1 < 2 && 2 in [2] || false", "true ? true : false ? false : false",
    "false ? false : true ? true : false", "(true ? 1 : 2) == 1", "[true ? 1 : 2, 3] == [1, 3]", "{true ? 'a' : 'b': 1}['a'] == 1", "-[1, 2][1] == -2", "!{'a': false}.a",
    "-1.5 + 1.5 == 0.0", "2 - 1 == 1", "[1, 2].map(x, -x) == [-1, -2]",
    # selection, calls, literals
    ".device.driver == device.driver", "[1].all(device, device == 1 && .device.driver != '')", "dyn(true)", "device.`driver` == device.driver",
    "device.attributes.?`a.b/c-d e`.hasValue()", "{'a b': {'c-d': 1}}.`a b`.`c-d` == 1", "{'as': 1}.as == 1", "{'if': 1}.if == 1", "{'in': 1}.`in` == 1",
    "[1, 2,] == [1, 2]", "[,] == []", "{,} == {}", "{'a': 1,} == {'a': 1}", "[?optional.of(1), ?optional.none(),] == [1]", "{?'a': optional.of(1)}.a == 1",
    "[[1]][0][0] == 1", "[1][?0].hasValue()", "'a'.lowerAscii().size() == 1", "size([1, 2]) == 2", "1.0 == 1.0", "null == null",
    "[1].exists(x, x == 1)", "[1].all((x), x == 1)", "has({'a': 1}.a)", "has((({'a': 1}).a))", "has(has({'a': 1}.a))", "cel.bind(x, 1, x == 1)",
    # space and comments
    "true // comment", "// comment\n true", "true // a\n // b\n && true", "\t\r\n\ftrue", "true//", "1\n==\n1",
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_means_what_it_means_upstream(expression: str) -> None:
    assert matches(expression)


OPERANDS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
REFUSED = {
    "": f"1:0: Syntax error: mismatched input '<EOF>' expecting {OPERANDS}",
    "true &&": f"1:8: Syntax error: mismatched input '<EOF>' expecting {OPERANDS}",
    "&& true": f"1:1: Syntax error: extraneous input '&&' expecting {OPERANDS}",
    "\n\n  true &&\n x y": "4:4: Syntax error: extraneous input 'y' expecting <EOF>",
    "true and true": "1:6: Syntax error: mismatched input 'and' expecting <EOF>\n | true and true\n | .....^\nhint: write && for a logical and",
    "not true": "1:5: Syntax error: extraneous input 'true' expecting <EOF>\n | not true\n | ....^\nhint: write ! for a logical not",
    "1 = 1": "1:3: Syntax error: token recognition error at: '= '\n | 1 = 1\n | ..^\nERROR: <input>:1:5: Syntax error: extraneous input '1' expecting <EOF>\n | 1 = 1\n | ....^\nhint: compare with ==",
    "true & true": "1:6: Syntax error: token recognition error at: '& '",
    "true ? 1": "1:9: Syntax error: mismatched input '<EOF>' expecting ':'",
    "true ? true ? 1 : 2 : 3": "1:13: Syntax error: mismatched input '?' expecting ':'",
    "(true": "1:6: Syntax error: missing ')' at '<EOF>'",
    "true)": "1:5: Syntax error: extraneous input ')' expecting <EOF>",
    "[1": "1:3: Syntax error: mismatched input '<EOF>' expecting {']', ','}",
    "[1 2]": "1:4: Syntax error: extraneous input '2' expecting {']', ','}",
    "{1}": "1:3: Syntax error: mismatched input '}' expecting ':'",
    "{'a': 1, 'b' 2}": "1:14: Syntax error: missing ':' at '2'",
    "[,1]": "1:3: Syntax error: extraneous input '1' expecting ']'",
    "[1,": "1:4: Syntax error: missing ']' at '<EOF>'\n | [1,\n | ...^\nhint: ] is missing before the end",
    "[1, )": "1:5: Syntax error: mismatched input ')' expecting ']'",
    "([1, )": "1:6: Syntax error: missing ']' at ')'",
    "f([1,,2)": "1:6: Syntax error: missing ']' at ','",
    "f([1,": "1:6: Syntax error: mismatched input '<EOF>' expecting ']'",
    "{,1: 1}": "1:3: Syntax error: mismatched input '1' expecting '}'",
    "{1: 1, *}": "1:8: Syntax error: extraneous input '*' expecting '}'",
    "{[1, : 2}": "1:6: Syntax error: missing ']' at ':'",
    "a.B{1}": "1:5: Syntax error: extraneous input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    "a.B{1: 2}": "1:5: Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    "a.B{?}": "1:6: Syntax error: mismatched input '}' expecting {IDENTIFIER, ESC_IDENTIFIER}",
    "a.B{b c: 1}": "1:7: Syntax error: extraneous input 'c' expecting ':'",
    "a.B{b 1}": "1:7: Syntax error: missing ':' at '1'",
    "a.B{b == 1}": "1:7: Syntax error: mismatched input '==' expecting ':'",
    "a.B{b: 1, 1}": "1:11: Syntax error: extraneous input '1' expecting '}'",
    "a.B{b: 1,": "1:10: Syntax error: missing '}' at '<EOF>'\n | a.B{b: 1,\n | .........^\nhint: } is missing before the end",
    "f(,)": "1:3: Syntax error: extraneous input ',' expecting {'[', '{', '(', ')', '.', '-'",
    "f(1,)": f"1:5: Syntax error: mismatched input ')' expecting {OPERANDS}",
    "a[]": "1:3: Syntax error: mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', 'true'",
    "a.": "1:3: Syntax error: no viable alternative at input '.'",
    "1. > 0.1": "1:4: Syntax error: no viable alternative at input '. >'",
    "a.1": "1:2: Syntax error: extraneous input '.1' expecting <EOF>",
    "a.?b()": "1:5: Syntax error: mismatched input '(' expecting <EOF>",
    "device.in == 1": "1:8: Syntax error: no viable alternative at input '.in'",
    "device.null == 1": "1:8: Syntax error: mismatched input 'null' expecting IDENTIFIER",
    "-!true": "1:2: Syntax error: no viable alternative at input '-!'",
    "!-x": "1:3: Syntax error: no viable alternative at input '-x'",
    "'abc": "1:1: Syntax error: token recognition error at: ''abc'",
    "'\\q' == ''": "1:1: Syntax error: token recognition error at: ''\\q'",
    "rb'a' == b''": "1:3: Syntax error: mismatched input ''a'' expecting <EOF>",
    "“abc” == 'a'": "1:1: Syntax error: token recognition error at: '“'\n | “abc” == 'a'\n | \uff3e",
    "aé": "1:2: Syntax error: token recognition error at: 'é'\n | aé\n | .\uff3e",
    "'é' + ": "1:7: Syntax error: mismatched input '<EOF>'",
    "\ttrue\t!": "1:7: Syntax error: extraneous input '!' expecting <EOF>\n |  true !\n | ......^",
    "if (true) true": "1:1: reserved identifier: if\n | if (true) true\n | ^\nERROR: <input>:1:11: Syntax error: extraneous input 'true' expecting <EOF>",
    "[1].all(as, true)": "1:9: reserved identifier: as\n | [1].all(as, true)\n | ........^\nERROR: <input>:1:9: argument must be a simple name",
    "9223372036854775808 > 1": "1:1: invalid int literal",
    "-(9223372036854775808) < 1": "1:3: invalid int literal",
    "--9223372036854775808 < 1": "1:3: invalid int literal",
    "9" * 9000 + " > 1": "1:1: invalid int literal",
    "9" * 9000 + "u > 1u": "1:1: invalid uint literal",
    "1e999 > 1.0": "1:1: invalid double literal",
    "'\\ud800' == ''": "1:1: invalid unicode code point",
    "'\\U00110000' == ''": "1:1: invalid unicode code point",
    "b'\\u00ff' == b''": "1:1: unable to unescape string",
    "has(device)": "1:5: invalid argument to has() macro",
    "Foo{a: 1} == 1": "1:4: undeclared reference to 'Foo' (in container '')",
    "a.b.Foo{?a: 1,} == 1": "1:8: undeclared reference to 'a.b.Foo' (in container '')",
    ".Foo{} == 1": "1:5: undeclared reference to '.Foo' (in container '')",
    "string{} == 'a'": "1:7: 'string' is not a message type",
    "Foo{1: 2}": "1:5: Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
    "'a'{}": "1:4: Syntax error: mismatched input '{' expecting <EOF>",
    "\ud83d": "1:1: Syntax error: token recognition error at: '\ufffd'",
}  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_is_refused_where_upstream_refuses_it_and_in_its_words(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        matches(expression)
    assert REFUSED[expression] in str(caught.value)


def test_halves_of_characters_are_what_go_reads_in_json() -> None:
    assert matches("'\ud83d' == '\ufffd'")
    assert matches("'\ud83d\ude00' == '😀'")


def test_length_is_counted_in_bytes() -> None:
    room = MAX_BYTES - len("'' != ''")
    parse(f"'{'x' * room}' != ''")
    parse(f"'{'é' * (room // 2)}' != ''")
    for text in ("x" * (room + 1), "é" * (room // 2 + 1)):
        with pytest.raises(CelCompileError, match="Too long: may not be more than 10240 bytes"):
            parse(f"'{text}' != ''")


DEPTHS: dict[str, tuple[int, Callable[[int], str]]] = {
    "parentheses": (249, lambda n: "(" * n + "true" + ")" * n),
    "lists": (249, lambda n: "[" * n + "1" + "]" * n),
    "empty lists": (250, lambda n: "[" * n + "]" * n),
    "maps": (249, lambda n: "{1:" * n + "1" + "}" * n),
    "calls": (249, lambda n: "dyn(" * n + "1" + ")" * n),
    "indices in one another": (249, lambda n: "[0][" * n + "0" + "]" * n),
    "not": (249, lambda n: "!(" * n + "true" + ")" * n),
    "choices": (249, lambda n: "true ? 1 : " * n + "1"),
    "choices in parentheses": (249, lambda n: "true ? (" * n + "1" + ") : 1" * n),
    "sums in parentheses": (124, lambda n: "1 + (" * n + "1" + ")" * n),
    "comparisons in parentheses": (124, lambda n: "1 < (" * n + "1" + ")" * n),
    "macros": (249, lambda n: "[1].all(x, " * n + "true" + ")" * n),
    "everything in lists": (124, lambda n: "[false || true && !(" * n + "[]" + ")]" * n),
    "sums": (250, lambda n: "1" + " + 1" * n),
    "products": (250, lambda n: "1" + " * 1" * n),
    "comparisons": (250, lambda n: "true" + " == true" * n),
    "selections": (250, lambda n: "a" + ".a" * n),
    "optional selections": (250, lambda n: "a" + ".?a" * n),
    "indices": (250, lambda n: "a" + "[1]" * n),
    "methods": (250, lambda n: "a" + ".a()" * n),
    "selections and indices": (125, lambda n: "a" + ".a[1]" * n),
}


@pytest.mark.parametrize("name", DEPTHS)
def test_nesting_ends_where_upstreams_does(name: str) -> None:
    deepest, make = DEPTHS[name]
    parse(make(deepest))
    with pytest.raises(CelCompileError, match=r"<input>:-1:0: .* exceeded"):
        parse(make(deepest + 1))


@pytest.mark.parametrize("name", DEPTHS)
def test_far_deeper_nesting_is_refused_as_well(name: str) -> None:
    make = DEPTHS[name][1]
    with pytest.raises(CelCompileError, match=r"<input>:-1:0: .* exceeded"):
        parse(make((MAX_BYTES - 10) // len(make(1))))


@pytest.mark.parametrize(
    "text", ["!" * 10000 + "true", "-" * 10001 + "(1)", " || ".join(["a"] * 2000), " && ".join(["a"] * 2000)]
)
def test_chains_have_no_depth(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("unit", ["(", "[", "{", "a.", "a[", "f(", "-", "!", "1+", "true?", "'", "'''", '"', "`", "\\", "{1:", "[?", "a.?", "&", "é", "\x00", "//", "1e", "0x", "b'", "r'''", "'\\q"])  # fmt: skip
def test_broken_text_is_refused_however_long_it_is(unit: str) -> None:
    with pytest.raises(CelCompileError):
        parse(unit * (MAX_BYTES // len(unit.encode())))
