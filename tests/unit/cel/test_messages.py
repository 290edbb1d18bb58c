"""Messages of protocol buffers that expressions build: types, values, faults and costs, as upstream has them."""

from __future__ import annotations

import pytest

from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.costs.estimate import estimate
from dra_operator.cel.evaluation.counted import counted
from dra_operator.cel.types.values import device_input
from dra_operator.errors import CelCompileError, CelRuntimeError, CelUnsupported

from .build import DRIVER, GPU, matches, slice_of

P = "google.protobuf."

HOLDS = {
    # what is wrapped
    "$pInt64Value{value: 5} == 5": 41,
    "$pInt64Value{} == 0": 41,
    "$pInt64Value{value: $a.index} + 1 == 4": 46,
    "$pInt32Value{value: -7} == -7": 41,
    "$pUInt64Value{value: 5u} == 5u && type($pUInt32Value{}) == uint": 83,
    "$pDoubleValue{value: 1.1} == 1.1 && $pFloatValue{value: 1.1} != 1.1": 82,
    "$pFloatValue{value: 1e300} == 1.0 / 0.0": 42,
    "$pBoolValue{value: true}": 40,
    '$pStringValue{value: "abc"}.size() == 3': 42,
    '$pBytesValue{value: b"abc"} == b"abc"': 41,
    "type($pInt64Value{value: 5}) == int": 42,
    # conversions that only values of open type have
    '$pStringValue{value: dyn(quantity("1Gi"))} == "1Gi"': 43,
    '$pStringValue{value: dyn(semver("1.0.0"))} == "1.0.0"': 43,
    '$pStringValue{value: dyn(cidr("10.0.0.1/8"))} == "10.0.0.1/8"': 43,
    "$pInt64Value{value: dyn(optional.of(3))} == 3": 43,
    '$pBytesValue{value: dyn([1u, 2u])} == b"\\x01\\x02"': 41,
    # times
    '$pDuration{seconds: 3600, nanos: -5} < duration("1h")': 41,
    '$pDuration{seconds: 9223372036854775807} > duration("2540400h")': 41,
    "$pTimestamp{seconds: 1, nanos: -1000000000} == timestamp(0)": 41,
    "$pTimestamp{seconds: 253402300800}.getFullYear() == 10000": 42,
    'string($pTimestamp{seconds: -62198755200}) == "-0001-01-01T00:00:00Z"': 44,
    "$pTimestamp{seconds: 9223372036854775807} < timestamp(0)": 41,
    "int($pTimestamp{seconds: 9223372036854775807}) == 9223372036854775807": 42,
    "$pTimestamp{seconds: 9223372036854775807}.getHours() == 15": 42,
    # JSON
    '$pStruct{fields: {"a": 1}}.a == 1.0': 43,
    "$pStruct{} == {}": 40,
    '$pStruct{fields: device.attributes["other.example.com"]}.name == "x"': 46,
    "$pStruct{fields: {'a': $a.numbers}}.a[1] == 2": 78,
    "$pValue{} == null": 41,
    "$pValue{null_value: $pNullValue.NULL_VALUE} == null": 41,
    "$pValue{number_value: 1.0} == 1": 41,
    '$pValue{struct_value: {"a": [1]}} == {"a": [1.0]}': 41,
    '$pListValue{values: [b"abc"]}[0] == "YWJj"': 43,
    '$pListValue{values: [duration("1h")]}[0] == "3600s"': 43,
    '$pListValue{values: [9007199254740992]}[0] == "9007199254740992"': 44,
    "$pListValue{values: [9007199254740991]}[0] == 9007199254740991": 43,
    "$pListValue{values: [$pEmpty{}]}[0] == {}": 92,
    # messages that are no other values
    "$pEmpty{} == $pEmpty{}": 81,
    "dyn(1) != $pEmpty{}": 41,
    "type($pEmpty{}) == $pEmpty": 42,
    "{$pEmpty{}: 1}.size() == 1": 72,
    "!optional.ofNonZeroValue($pEmpty{}).hasValue()": 43,
    '$pStruct.FieldsEntry{key: "a", value: 1}.value == 1': 43,
    "$pStruct.FieldsEntry{}.value == null && !has($pStruct.FieldsEntry{}.value)": 85,
    # what is packed
    '$pAny{type_url: "x/$pInt64Value", value: b"\\x08\\x05"} == 5': 41,
    '$pAny{type_url: "/$pDuration", value: b"\\x08\\x01\\x10\\x05"} == duration("1.000000005s")': 41,
    '$pAny{type_url: "$pStruct", value: b"\\x0a\\x07\\x0a\\x01a\\x12\\x02\\x20\\x01"} == dyn({"a": true})': 41,
    '$pAny{type_url: "$pListValue", value: b"\\x0a\\x00\\x0a\\x02\\x20\\x01"} == dyn([dyn(null), dyn(true)])': 41,
    '$pAny{type_url: "$pValue", value: b"\\x2a\\x00\\x2a\\x09\\x0a\\x07\\x0a\\x01a\\x12\\x02\\x20\\x01"} == dyn({"a": true})': 41,
    '$pAny{type_url: "$pInt32Value", value: b"\\x08\\x80\\x80\\x80\\x80\\x10"} == 0': 41,
    '$pAny{type_url: "$pAny", value: b"\\x0a\\x1a$pInt64Value\\x12\\x02\\x08\\x05"} == 5': 41,
    # fields
    "$pInt64Value{?value: optional.of(3)} == 3": 42,
    "$pInt64Value{value: 3, ?value: optional.none()} == 0": 42,
    "$pInt64Value{value: 1, `value`: 2,} == 2": 41,
    ".$pInt64Value{value: 5} == 5": 41,
    "list{values: [1]} == [1] || true": 41,
    'duration{seconds: 1} == duration("1s") || true': 41,
    # wrappers are their types
    "[$pInt64Value{value: 5}, 1] == [5, 1]": 51,
    "[1, 2][$pInt64Value{value: 1}] == 2": 43,
    "$pInt64Value{value: 5} != null": 41,
    '"%d".format([$pInt64Value{value: 5}]) == "5"': 52,
    # durations of open type
    '-dyn(duration("1h")) == duration("-1h")': 2,
    '[duration("1h")].map(x, -dyn(x)) == [duration("-1h")]': 17,
}
"""Expression that holds → what it costs; `$p` stands for the package."""

FAILS = {
    "$pInt32Value{value: 2147483648} == 1": "field type conversion error for $pInt32Value.value value type: integer overflow",
    "$pUInt32Value{value: 4294967296u} == 1u": "field type conversion error for $pUInt32Value.value value type: unsigned integer overflow",
    "$pValue{null_value: dyn(null)} == null": "field type conversion error for $pValue.null_value value type: type conversion error from 'null_type' to 'protoreflect.EnumNumber'",
    "$pInt64Value{value: dyn(1.0)} == 3": "field type conversion error for $pInt64Value.value value type: type conversion error from Double to 'int64'",
    "$pInt64Value{value: dyn([1])} == 3": "field type conversion error for $pInt64Value.value value type: type conversion error from list to 'int64'",
    "$pInt64Value{value: dyn($pEmpty{})} == 3": "field type conversion error for $pInt64Value.value value type: type conversion error from '*dynamicpb.Message' to 'int64'",
    "$pStringValue{value: dyn(duration('1h'))} == ''": "field type conversion error for $pStringValue.value value type: type conversion error from 'Duration' to 'string'",
    "$pStringValue{value: dyn(int)} == ''": "field type conversion error for $pStringValue.value value type: type conversion not supported for 'type'",
    "$pStringValue{value: dyn(b'')} == ''": "field type conversion error for $pStringValue.value value type: type conversion error from Bytes to 'string'",
    "$pStringValue{value: dyn(format.dns1123Label())} == ''": "field type conversion error for $pStringValue.value value type: type conversion error from 'Format' to 'string'",
    "$pBytesValue{value: dyn([1u, 256u])} == b''": "field type conversion error for $pBytesValue.value value type: unsigned integer overflow",
    "$pBytesValue{value: dyn('a')} == b''": "field type conversion error for $pBytesValue.value value type: unsupported native conversion from string to '[]uint8'",
    "$pDoubleValue{value: dyn(1u)} == 1.0": "field type conversion error for $pDoubleValue.value value type: unsupported type conversion from 'uint' to float64",
    "$pBoolValue{value: dyn(optional.none())}": "field type conversion error for $pBoolValue.value value type: optional.none() dereference",
    "$pInt64Value{?value: dyn(3)} == 0": "cannot initialize optional entry 'value' from non-optional value 3",
    "$pInt64Value{value: 1 / ($a.index - 3)} == 0": "division by zero",
    "$pListValue{values: dyn(1)} == []": "unsupported field type for $pListValue.values: int",
    "$pStruct{fields: dyn({1: 1})} == {}": "field type conversion error for $pStruct.fields value type: unsupported type conversion from 'int' to string",
    "$pStruct{fields: $a}.size() == 1": "field type conversion error for $pStruct.fields value type: type conversion error from 'Semver' to '*structpb.Value'",
    "$pValue{struct_value: dyn(null)} == null": "field type conversion error for $pValue.struct_value value type: type conversion error from 'null_type' to '*structpb.Struct'",
    "$pListValue{values: [$pStruct.FieldsEntry{value: 0.0 / 0.0}]}.size() == 1": "field type conversion error for $pListValue.values value type: proto: $pValue.number_value: invalid NaN value",
    "$pAny{} == dyn(1)": "unsupported conversion to ref.Val: (*dynamicpb.Message)",
    "$pAny{type_url: '$pFieldMask'} == dyn(1)": 'unsupported conversion to ref.Val: (*dynamicpb.Message)type_url:"$pFieldMask"',
    "list{} == []": "unknown type 'list'",
    "timestamp{seconds: 1} == timestamp(1)": "unknown type 'timestamp'",
    "kubernetes.DRADevice{driver: ''} == device": "unknown type 'kubernetes.DRADevice'",
    "dyn($pEmpty{}).x == 1": "no such field 'x'",
    "dyn($pEmpty{})[0] == 1": "no such overload",
    "dyn($pEmpty{}).size() == 1": "no such overload: size",
    "dyn($pEmpty{})": "CEL result of type $pEmpty could not be converted to bool: type conversion error from '*dynamicpb.Message' to 'bool'",
    "$pTimestamp{seconds: 253402300800} + duration('1s') > timestamp(0)": "timestamp overflow",
    "$pTimestamp{seconds: 253402300800} - timestamp(0) > duration('1s')": "integer overflow",
    "-dyn(duration('-2562047h47m16.854775808s')) == duration('0')": "integer overflow",
    "-dyn(timestamp(0)) == 1": "no such overload",
    "-dyn(true) == 1": "no such overload",
    "-dyn(null) == 1": "no such overload: -_",
    "!dyn(1)": "no such overload",
}

"""Expression that fails on a device → upstream's words."""

REFUSED = {
    "$pInt64Value{value: 5}": "must evaluate to bool or the unknown type, not wrapper(int)",
    "$pEmpty{}": "must evaluate to bool or the unknown type, not $pEmpty",
    "$pInt64Value{value: 'a'} == 5": "1:33: expected type of field 'value' is 'int' but provided type is 'string'",
    "$pInt64Value{val: 5, value: null, foo: bar} == 5": "1:31: undefined field 'val'\n1:41: expected type of field 'value' is 'int' but provided type is 'null'\n1:52: undefined field 'foo'\n1:54: undeclared reference to 'bar' (in container '')",
    "$pInt64Value{?value: 3} == 5": "1:36: expected type 'optional_type(int)' but found 'int'",
    "$pInt64Value{?value: optional.of('a')} == 5": "1:34: expected type of field 'value' is 'int' but provided type is 'string'",
    "$pInt64Value{value: 5} == 'a'": "1:38: found no matching overload for '_==_' applied to '(wrapper(int), string)'",
    "$pInt64Value{value: 5}.foo == 1": "1:37: type 'wrapper(int)' does not support field selection",
    "[1, $pInt64Value{value: 5}] == [null]": "1:43: found no matching overload for '_==_' applied to '(list(int), list(null))'",
    "$pEmpty{}.x == 1": "1:24: undefined field 'x'",
    "has($pEmpty{}.x)": "1:4: undefined field 'x'",
    "$pStruct{fields: {1: 1}} == {}": "1:30: expected type of field 'fields' is 'map(string, dyn)' but provided type is 'map(int, int)'",
    "$pStruct{fields: null} == {}": "1:30: expected type of field 'fields' is 'map(string, dyn)' but provided type is 'null'",
    "$pNullValue{} == null": "1:26: undeclared reference to '$pNullValue' (in container '')",
    "$pNope{a: b} == null": "1:21: undeclared reference to '$pNope' (in container '')",
    ".nope{} == 1": "1:6: undeclared reference to '.nope' (in container '')",
    "int{a: 1, b: c} == 1": "1:4: 'int' is not a message type\n1:6: undefined field 'a'\n1:12: undefined field 'b'\n1:14: undeclared reference to 'c' (in container '')",
    "map{a: 1} == {}": "1:4: 'map' is not a message type",
    "net.IP{a: 1} == ip('::1')": "1:7: 'net.IP' is not a message type\n1:9: unexpected failed resolution of 'net.IP'",
    "null_type{a: 1} == null": "1:12: unexpected failed resolution of '$pNullValue'",
    "duration{second: 1} == duration('1s')": "1:16: undefined field 'second'",
    "kubernetes.DRADevice{nope: 1, capacity: null} == device": "1:26: undefined field 'nope'\n1:39: expected type of field 'capacity' is 'map(string, map(string, kubernetes.Quantity))' but provided type is 'null'",
    "$pListValue{values: [1]}.sortBy(x, x) == []": "1:26: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    "$pInt64Value.foo == 1": "1:27: type 'type(wrapper(int))' does not support field selection",
    "-duration('1h') == duration('1h')": "1:1: found no matching overload for '-_' applied to '(duration)'",
}
"""Expression that does not compile → upstream's faults, by line and column."""

ESTIMATES = {
    "$pInt64Value{value: 5} == 5": 41,
    "$pInt64Value{value: $a.index, ?value: optional.of(1)} == 5": 46,
    "$pStringValue{value: device.driver} == device.driver": 51,
    "$pStringValue{value: 'a'} == 'b'": 41,
    "[$pStringValue{value: 'a'}].join() == 'a'": 1844674407370955315,
    "$pListValue{values: [1]}.all(x, x == 1.0)": 18446744073709551615,
    "$pStruct.FieldsEntry{key: 'a'}.key == 'a'": 42,
    "[1, 2].all(x, $pBoolValue{value: true})": 97,
    "-dyn(duration('1h')) == duration('1h')": 5,
}
"""Expression → upstream's estimate of its cost."""

MALFORMED = [
    r"b'\x08'",
    r"b'\x00\x01'",
    r"b'\x27\x01'",
    r"b'\x14'",
    r"b'\x13\x08\x05\x1c\x20\x01'",
    r"b'\x13\x08\x05'",
    r"b'\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02'",
    r"b'\x1a\x05a'",
    r"b'\x1a\x01\xff'",
    r"b'\x11\x00'",
]
"""Bytes that are no `google.protobuf.Value`."""


def written(text: str) -> str:
    """With the package's name."""
    return text.replace("$p", P)


@pytest.mark.parametrize("expression", HOLDS)
def test_a_message_is_the_value_that_it_stands_for_at_upstreams_cost(expression: str) -> None:
    assert matches(written(expression)) is True
    slice_ = slice_of(GPU)
    text = written(expression).replace("$a", f'device.attributes["{DRIVER}"]')
    program = counted(check(text, stored_expressions()), stored_expressions().functions)
    device = device_input(DRIVER, slice_.spec.devices[0])
    assert program.measure(device) == (True, HOLDS[expression])


@pytest.mark.parametrize("expression", FAILS)
def test_a_field_takes_what_upstream_takes(expression: str) -> None:
    with pytest.raises(CelRuntimeError) as caught:
        matches(written(expression))
    assert str(caught.value) == written(FAILS[expression])


@pytest.mark.parametrize("expression", REFUSED)
def test_names_fields_and_types_are_checked(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        matches(written(expression))
    faults = [f"{fault.line}:{fault.column}: {fault.message}" for fault in caught.value.faults]
    told = "\n".join(faults) or str(caught.value).partition("\n")[0]
    assert told == written(REFUSED[expression])


@pytest.mark.parametrize("expression", ESTIMATES)
def test_the_estimate_is_upstreams(expression: str) -> None:
    text = written(expression).replace("$a", f'device.attributes["{DRIVER}"]')
    assert estimate(check(text, stored_expressions())).max == ESTIMATES[expression]


@pytest.mark.parametrize("packed", MALFORMED)
def test_bytes_that_are_no_message_are_refused(packed: str) -> None:
    with pytest.raises(CelRuntimeError, match="unsupported conversion to ref"):
        matches(written(f"$pAny{{type_url: '$pValue', value: {packed}}} == dyn(1)"))


@pytest.mark.parametrize(
    "expression",
    [
        "{b'a': 1} == {}",
        "true || {dyn(b'a'): 1}.size() == 1",
    ],
)
def test_a_literal_with_bytes_as_a_key_is_refused_where_upstream_crashes(expression: str) -> None:
    with pytest.raises(CelCompileError, match=r"hash of unhashable type types\.Bytes"):
        matches(expression)


BYTES = f"cel.bind(a, bytes('{'a' * 9000}'), cel.bind(b, {' + '.join('a' * 12)}, cel.bind(c, {' + '.join('b' * 8)}, $)))"


@pytest.mark.parametrize(
    "expression",
    [
        "$pListValue{values: lists.range(600000)}.size() == 1",
        "$pStruct{fields: {'a': lists.range(600000)}}.size() == 1",
        "lists.range(900).all(x, $pListValue{values: lists.range(900)}.size() == 900)",
        BYTES.replace("$", "$pAny{type_url: '$pBytesValue', value: c} == dyn(1)"),
    ],
)
def test_large_messages_have_a_bound(expression: str) -> None:
    with pytest.raises(CelUnsupported, match="too much work"):
        matches(written(expression))
