"""What does not compile, and in which words (alloc L-4; upstream's checker and validators)."""

from __future__ import annotations

import pytest

from dra_operator.cel import Compiler
from dra_operator.cel.checking.checks import Checked, check
from dra_operator.cel.checking.environment import new_expressions, stored_expressions
from dra_operator.cel.parsing import syntax
from dra_operator.errors import CelCompileError
from dra_operator.features import DEFAULT_1_37, Features

from .build import COMPILER

REFUSED = {
    "noSuchVar": "1:1: undeclared reference to 'noSuchVar' (in container '')",
    "True": "undeclared reference to 'True'",
    "undefinedFn(1)": "1:12: undeclared reference to 'undefinedFn'",
    "device.driver.foo()": "1:18: undeclared reference to 'foo'",
    "math.abs(-1) == 1": "1:1: undeclared reference to 'math'",
    "[1].all(x, x > 0) && x > 0": "undeclared reference to 'x'",
    "device.name == 'x'": "1:7: undefined field 'name'",
    "has(device.nothing)": "1:4: undefined field 'nothing'",
    "device.driver.x": "type 'string' does not support field selection",
    "ip('::').x == 1": "type 'net.IP' does not support field selection",
    "has(device.capacity['d'].memory.value)": "unexpected failed resolution of 'kubernetes.Quantity'",
    "semver('1.0.0').major == 1": "unexpected failed resolution of 'kubernetes.Semver'",
    "url('/a').?host.hasValue()": "unexpected failed resolution of 'kubernetes.URL'",
    "device.driver": "must evaluate to bool or the unknown type, not string",
    "device": "must evaluate to bool or the unknown type, not kubernetes.DRADevice",
    "1": "must evaluate to bool or the unknown type, not int",
    "device.attributes": "must evaluate to bool or the unknown type, not map(string, map(string, dyn))",
    "1 == 1.0": "1:3: found no matching overload for '_==_' applied to '(int, double)'",
    "[1] == [1.0]": "applied to '(list(int), list(double))'",
    "device.driver + 1 == 'x'": "found no matching overload for '_+_' applied to '(string, int)'",
    "1 < 2 < 3": "applied to '(bool, int)'",
    "device['driver'] == 'x'": "found no matching overload for '_[_]' applied to '(kubernetes.DRADevice, string)'",
    "device.attributes[1].size() == 0": "applied to '(map(string, map(string, dyn)), int)'",
    "device.capacity['d'].m > quantity('1')": "applied to '(kubernetes.Quantity, kubernetes.Quantity)'",
    "device.capacity['d'].m.sign() == 1": "found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
    "quantity('1').compareTo('1') == 0": "applied to 'kubernetes.Quantity.(string)'",
    "true && 1": "1:9: expected type 'bool' but found 'int'",
    "[1].all(x, x)": "expected type 'bool' but found 'int'",
    "1 ? true : false": "found no matching overload for '_?_:_' applied to '(int, bool, bool)'",
    "true ? 1 : 'a'": "found no matching overload for '_?_:_'",
    "[1, 'a'].size() == 2": "1:5: expected type 'int' but found 'string'",
    "[1, device.attributes['d'].x].size() == 2": "expected type 'int' but found 'dyn'",
    "{1: 'a', 'b': 'c'}.size() == 2": "expected type 'int' but found 'string'",
    "device.driver.all(x, x == 'a')": "cannot be range of a comprehension",
    "device.driver.matches('[')": "1:23: invalid matches argument",
    "int('x') == 1": "program instantiation failed: type conversion error from 'string' to 'int'",
    "has(device)": "invalid argument to has() macro",
    "[1].all(x.y, true)": "argument must be a simple name",
    "9223372036854775808 > 1": "1:1: invalid int literal",
    "18446744073709551616u > 1u": "invalid uint literal",
    "1e999 > 1.0": "invalid double literal",
    "if": "reserved identifier: if",
    "?!": "1:1: Syntax error",
    "device.attributes['x'": "1:22: Syntax error",
    "not true": "1:5: Syntax error",
    "device.in == 1": "Syntax error",
    "'open": "Syntax error",
    "": "Syntax error",
    "[1].optMap(x, x).hasValue()": "found no matching overload for 'hasValue'",
    "[?1].size() == 1": "expected type 'optional_type(int)' but found 'int'",
    "'x' == '" + "x" * 10240 + "'": "Too long: may not be more than 10240 bytes",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_does_not_compile(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    assert message in str(caught.value)


def test_a_fault_shows_the_line_and_a_caret() -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile("true &&\n  noSuchVar", DEFAULT_1_37)
    assert str(caught.value) == (
        "compilation failed: ERROR: <input>:2:3: undeclared reference to 'noSuchVar' (in container '')\n"
        " |   noSuchVar\n"
        " | ..^\n"
        "hint: text stands in quotes"
    )


GATED = {
    "device.allowMultipleAllocations": "undefined field 'allowMultipleAllocations'",
    "device.attributes['d'].x.includes(1)": "undeclared reference to 'includes'",
    "device.attributes['d'].x.exists(y, y == 1)": "expression of type 'any' cannot be range of a comprehension",
    "device.attributes['d'].x.y": "must evaluate to bool or the unknown type, not dyn",
}


@pytest.mark.parametrize(("expression", "message"), GATED.items())
def test_new_expressions_honour_gates_and_stored_ones_do_not(expression: str, message: str) -> None:
    """Alloc L-6, L-9: the scheduler compiles stored expressions whatever the gates say."""
    new = Compiler(new_expressions)
    everything = Features(consumable_capacity=True, list_type_attributes=True)
    with pytest.raises(CelCompileError) as caught:
        new.compile(expression, Features())
    assert message in str(caught.value)
    for compiler, features in ((new, everything), (COMPILER, Features())):
        compiler.compile(expression, features)


def checked(expression: str) -> Checked:
    """What the checker finds out about an expression."""
    return check(expression, stored_expressions())


def fitting(expression: str) -> list[str]:
    """The overloads of the outermost call, in words."""
    found = checked(expression)
    assert isinstance(found.node, syntax.Call)
    return [
        f"{'.' * overload.method}{overload.name}({', '.join(map(str, overload.params))})"
        for overload in found.calls[found.node]
    ]


@pytest.mark.parametrize(
    ("expression", "overloads"),
    [
        ("1 + 2", ["_+_(int, int)"]),
        ("'a'.contains('b')", [".contains(string, string)"]),
        ("optional.of(1)", ["optional.of(A)"]),
        ("size(device.attributes['a'].b)", ["size(bytes)", "size(list(A))", "size(map(A, B))", "size(string)"]),
        ("device.attributes['a'].b.compareTo(quantity('1'))", [
            ".compareTo(kubernetes.Quantity, kubernetes.Quantity)",
        ]),
    ],
)  # fmt: skip
def test_a_call_knows_all_overloads_that_fit(expression: str, overloads: list[str]) -> None:
    assert fitting(expression) == overloads


def test_every_node_knows_its_type_whenever_it_was_found() -> None:
    found = checked("cel.bind(a, [], a == [1] && has(device.capacity.x))")
    shown = {type(node).__name__: str(kind) for node, kind in found.kinds.items()}
    assert shown == {
        "Bind": "bool",
        "Logic": "bool",
        "Call": "bool",
        "Has": "bool",
        "ListLiteral": "list(int)",
        "Literal": "int",
        "Select": "map(string, map(string, kubernetes.Quantity))",
        "Ident": "kubernetes.DRADevice",
    }
    assert [str(kind) for node, kind in found.kinds.items() if isinstance(node, syntax.ListLiteral)] == [
        "list(int)",
        "list(int)",
    ]


FIRST_FAULTS = {
    '"a".matches("[") && duration("x") == duration("1s")': "<input>:1:13: invalid matches argument",
    'timestamp("x") == timestamp(0) && "a".matches("[")': "<input>:1:11: invalid timestamp argument",
    'duration("x") == duration("1s") || [1, "a"] == []': "<input>:1:10: invalid duration argument",
    'duration("x") == duration("1s") || 1 + "a" == 2': "<input>:1:38: found no matching overload for '_+_'",
    # `matches` as a function: upstream looks at the text instead of the pattern, and finds the pattern when it plans.
    'matches("[", "a")': "<input>:1:9: invalid matches argument",
    'matches("a", "[")': "program instantiation failed: error parsing regexp",
    '"a".find("[") == ""': "program instantiation failed: error parsing regexp",
    '"a".findAll("[", 1) == []': "program instantiation failed: error parsing regexp",
}


@pytest.mark.parametrize(("expression", "message"), FIRST_FAULTS.items())
def test_literals_that_can_only_fail_are_reported_by_place_once_the_types_are_right(
    expression: str, message: str
) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    assert message in str(caught.value)


SEVERAL = {
    "foo && bar || device.nope": ["1:1: undeclared reference to 'foo'", "1:8: undeclared reference to 'bar'", "1:21: undefined field 'nope'"],
    "foo.bar(baz)": ["1:1: undeclared reference to 'foo'", "1:8: undeclared reference to 'bar'", "1:9: undeclared reference to 'baz'"],
    "1 && 'a'": ["1:1: expected type 'bool' but found 'int'", "1:6: expected type 'bool' but found 'string'"],
    "!1 && !2": ["1:1: found no matching overload for '!_' applied to '(int)'", "1:7: found no matching overload for '!_' applied to '(int)'"],
    "1.all(x, x.y == z)": ["1:1: expression of type 'int' cannot be range", "1:17: undeclared reference to 'z'"],
    "foo ? 1 : 'a'": ["1:1: undeclared reference to 'foo'", "1:5: found no matching overload for '_?_:_' applied to '(!error!, int, string)'"],
    "[?foo] == []": ["1:3: undeclared reference to 'foo'", "1:3: expected type 'optional_type(!error!)' but found '!error!'"],
    "foo.optMap(x, x)": ["1:1: undeclared reference to 'foo'", "1:1: undeclared reference to 'foo'"],
    "{1: 'a', 'b': 2} == {}": ["1:10: expected type 'int' but found 'string'", "1:15: expected type 'string' but found 'int'"],
    "'a'.matches('[') && 'b'.matches('(')": ["1:13: invalid matches argument", "1:33: invalid matches argument"],
    "foo.a.b == 1": ["1:1: undeclared reference to 'foo'"],
    "device.foo.bar == 1": ["1:7: undefined field 'foo'"],
    "[1, foo].all(x, x == 1)": ["1:5: undeclared reference to 'foo'"],
    "size(foo) + 1 == bar\n|| baz": ["1:6: undeclared reference to 'foo'", "1:18: undeclared reference to 'bar'", "2:4: undeclared reference to 'baz'"],
}  # fmt: skip


@pytest.mark.parametrize("expression", SEVERAL)
def test_all_faults_are_told_in_the_order_of_the_text_and_each_once(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    found = [f"{fault.line}:{fault.column}: {fault.message}" for fault in caught.value.faults]
    assert len(found) == len(SEVERAL[expression])
    for fault, wanted in zip(found, SEVERAL[expression], strict=True):
        assert fault.startswith(wanted)
    assert str(caught.value).count("ERROR: <input>:") == len(found)


def test_faults_are_the_same_when_they_are_raised_again() -> None:
    faults = []
    for _ in range(2):
        with pytest.raises(CelCompileError) as caught:
            COMPILER.compile("foo == 'again'", DEFAULT_1_37)
        faults.append(caught.value.faults)
    assert faults[0] == faults[1] != ()


HINTS = {
    "device.name == 'x'": "expressions do not see the name of a device",
    "device.attribute['d'].x == 1": "did you mean attributes?",
    "device.atributes['d'].x == 1": "did you mean attributes?",
    "device.capacities['d'].x == 1": "did you mean capacity?",
    "devise.driver == 'x'": "did you mean device?",
    "attributes['d'].x == 1": "did you mean device.attributes?",
    "True": "did you mean true?",
    "device.driver == gpu.example.com": "text stands in quotes",
    "device.capacity['d'].memory == '10Gi'": 'quantities are not compared with text or a number by ==, but with each other: x.compareTo(quantity("1Gi")) == 0',
    "device.capacity['d'].memory >= 10": 'x.compareTo(quantity("1Gi")) >= 0',
    "device.capacity['d'].memory >= quantity('1Gi')": 'x.compareTo(quantity("1Gi")) >= 0',
    "device.capacity['d'].memory.compareTo('1Gi') >= 0": "the argument has to be one, too: quantity(…)",
    "device.attributes.model == 'a'": 'device.attributes["domain"].name',
    "device.attributes['d/model'] == 'a'": 'device.attributes["domain"].name',
    "device.capacity['memory'] == 1": "attributes and capacities stand below their domain",
    "device.attributes['d'].version.isLessThan('1.0.0')": "semver(…), quantity(…)",
    "device.driver eq 'x'": "compare with ==",
    "true # all": "comments begin with //",
    "device.capacity['d'].memory.value == quantity('1Gi')": "a capacity is a quantity",
    "semver('1.0.0') < '2.0.0'": 'versions are compared with each other: x.compareTo(semver("1.0.0")) < 0',
    "device.attributes['d'].?x == 'a'": ".orValue(other) gives the value",
    "device.attributes['d'].?x + 'a' == 'a'": ".orValue(other) gives the value",
    "1 == 1.0": "numbers of different types are compared after a conversion",
    "device.driver == 1": "text and numbers are compared after a conversion",
    "1 < 2 < 3": "comparisons are joined by &&",
    "device['driver'] == 'x'": "fields of the device are selected with a point",
    "'a' in device.driver": "text.contains(other)",
    "'a'.length() == 1": "did you mean size()?",
    "'a'.lowerAsci() == 'a'": "did you mean lowerAscii?",
    "'a'.startWith('a')": "did you mean startsWith?",
    "[1].all(x > 0)": "all(variable, condition) is a macro",
    "[1].any(x, x > 0)": "did you mean exists()?",
    "true ? 1 : 'a'": "both branches have to be of one type",
    "'a' + 1 == 'a1'": "texts are joined with texts: string(x)",
    "device.driver": "a selector is a condition",
    "device.attributes['d'].?x": ".orValue(other) gives the value",
    "1 = 1": "compare with ==",
    "true and true": "write && for a logical and",
    "true & true": "write && for a logical and",
    "true or true": "write || for a logical or",
    "not true": "write ! for a logical not",
    "device.foo": "there are: allowMultipleAllocations, attributes, capacity, driver",
    "device.driver == 'x')": "this ) closes nothing: there is no ( for it",
    "['a']] == []": "this ] closes nothing: there is no [ for it",
    "true }": "this } closes nothing: there is no { for it",
    "('a'] == 'a'": ") is missing before this ]",
    "['a') == []": "] is missing before this )",
    "'a'.matches('(?!small)')": "RE2 has no look-ahead",
    "'a'.matches('^(?=a)b')": "RE2 has no look-ahead",
    "'a'.matches('(?<=a)b')": "RE2 has no look-behind",
    "'a'.matches('(?<!a)b')": "RE2 has no look-behind",
    "'a'.matches('(?>a)')": "RE2 has no atomic groups",
    "'a'.matches(r'(a)\\1')": "RE2 has no back-references",
    "'a'.matches(r'(?P<n>a)\\k<n>')": "RE2 has no back-references",
    "'a'.matches('a++')": "RE2 has no possessive repetitions",
    "'a'.matches(r'a\\Z')": "write \\z, or $",
    "'a'.matches('(la')": ") is missing",
    "'a'.matches('[a')": "] is missing",
    "'a'.matches('a)')": "there is a ) too many",
    "'a'.matches('*a')": "there is nothing before * to be repeated: any text is .*",
    "'a'.matches('a**')": "RE2 says: invalid nested repetition operator: **",
    "'a'.matches('a{2,1}')": "{2,1} is no repetition: at most 1000",
    "'a'.matches('a{1001}')": "{1001} is no repetition: at most 1000",
    "'a'.matches('[z-a]')": "RE2 says: invalid character class range: z-a",
    "'a'.matches('a\\\\')": "RE2 says: trailing backslash at end of expression",
    "duration('1day') == duration('24h')": 'h, m, s, ms, us, ns: did you mean "24h"?',
    "duration('2w') == duration('24h')": 'did you mean "336h"?',
    "duration('1.5 days') == duration('24h')": 'did you mean "36h"?',
    "duration('90 min') == duration('24h')": 'did you mean "90m"?',
    "duration('30') == duration('24h')": 'did you mean "30s"?',
    "duration('5 S') == duration('24h')": 'did you mean "5s"?',
    "duration('soon') == duration('24h')": "a duration is numbers with the units h, m, s, ms, us, ns",
    "timestamp('2026-01-31') == timestamp(0)": 'did you mean "2026-01-31T00:00:00Z"?',
    "timestamp('2026-01-31 12:30') == timestamp(0)": 'did you mean "2026-01-31T12:30:00Z"?',
    "timestamp('2026-01-31T12:30:05') == timestamp(0)": 'did you mean "2026-01-31T12:30:05Z"?',
    "timestamp('2026-02-31') == timestamp(0)": 'a timestamp is written like "2026-01-31T12:00:00Z"',
}  # fmt: skip


@pytest.mark.parametrize(
    "expression", ["timestamp(-99999999999999) == timestamp(0)", "device.driver == ')' ']'"]
)
def test_nothing_is_guessed_where_nothing_is_known(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    assert "hint" not in str(caught.value)


@pytest.mark.parametrize("expression", HINTS)
def test_what_is_likely_meant_is_told(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    assert HINTS[expression] in str(caught.value).partition("\nhint: ")[2]


def test_an_attribute_may_be_a_list_only_with_the_gate() -> None:
    without = Compiler(lambda _: new_expressions(Features(list_type_attributes=False)))
    with pytest.raises(CelCompileError, match="hint: attributes can be lists with the feature gate"):
        without.compile("device.attributes['d'].x.exists(y, y == 1)", DEFAULT_1_37)


HIDDEN = ["isIP(1 || true)", "isIP(true || false || 1)"]
TOLD = [
    "isIP(true || 1 || false)",
    "isIP(true || false || false || 1)",
    "isIP(true || (1 && true))",
]


@pytest.mark.parametrize("expression", HIDDEN + TOLD)
def test_a_term_that_is_no_bool_hides_what_is_wrong_with_the_whole_where_cel_go_has_it_at_the_top(
    expression: str,
) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile(expression, DEFAULT_1_37)
    assert "expected type 'bool' but found 'int'" in str(caught.value)
    assert ("overload for 'isIP' applied to '(bool)'" in str(caught.value)) is (expression in TOLD)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("[].map(x, -x)", "list(double)"),
        ("[].map(x, x + x)", "list(bytes)"),
        ("[].map(x, x % x)", "list(int)"),
        ("[].filter(x, x.size() == 1)", "list(bytes)"),
        ("[].filter(x, x < x)", "list(bool)"),
        ("[].filter(x, x.getHours() == 1)", "list(google.protobuf.Timestamp)"),
    ],
)
def test_the_first_overload_upstream_decides_about_open_types(expression: str, kind: str) -> None:
    assert str(checked(expression).kind) == kind
