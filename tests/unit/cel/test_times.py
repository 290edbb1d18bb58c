"""Durations and timestamps: text, arithmetic, parts, time zones (cel-go's standard library; Go's `time`)."""

from __future__ import annotations

import pytest

from dra_operator.cel.functions.times import duration_text, parse_duration, parse_timestamp, timestamp_text
from dra_operator.cel.types.values import INT_MAX, INT_MIN, Duration
from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

DURATIONS = {
    "0": 0,
    "+0": 0,
    "1ns": 1,
    "1us": 1_000,
    "1µs": 1_000,
    "1μs": 1_000,
    "1ms": 10**6,
    "1.5h": 5400 * 10**9,
    "-1.5h": -5400 * 10**9,
    "1h2m3.5s": 3723_500_000_000,
    ".5s": 500_000_000,
    "5.s": 5 * 10**9,
    "1s1s": 2 * 10**9,
    "0.3333333333333333333h": 1_200_000_000_000,
    "0.9223372036854775808s": 922_337_203,
    "0.1000000000000000000000000000000001s": 100_000_000,
    "0001s": 10**9,
    "9223372036854775807ns": INT_MAX,
    "-9223372036854775808ns": INT_MIN,
}


@pytest.mark.parametrize(("text", "nanos"), DURATIONS.items())
def test_duration_from_text(text: str, nanos: int) -> None:
    assert parse_duration(text) == Duration(nanos)


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "+", "1", "1 s", "s", ".s", "1x", "1S", "--1s", "1s-1s", "1d", "0x1s", "1e3s", "9223372036854775808ns",
        "-9223372036854775809ns", "2562048h", "18446744073709551617s", "1.5", "1..5s", "\u0661s",
    ],
)  # fmt: skip
def test_no_duration(text: str) -> None:
    assert parse_duration(text) is None


SECONDS = {
    0: "0s",
    1: "0.000000001s",
    -500_000_000: "-0.5s",
    3600 * 10**9: "3600s",
    3723_500_000_000: "3723.5s",
    INT_MAX: "9223372036.854776s",  # as near as a double comes
    123_456_789_123_456_789: "123456789.12345679s",
}


@pytest.mark.parametrize(("nanos", "text"), SECONDS.items())
def test_duration_as_text(nanos: int, text: str) -> None:
    assert duration_text(Duration(nanos)) == text


TIMESTAMPS = {
    "2020-01-02T03:04:05Z": "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05.100Z": "2020-01-02T03:04:05.1Z",
    "2020-01-02T03:04:05.1234567899Z": "2020-01-02T03:04:05.123456789Z",
    "2020-01-02T03:04:05,5Z": "2020-01-02T03:04:05.5Z",
    "2020-01-02T3:04:05Z": "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05+05:30": "2020-01-02T03:04:05+05:30",
    "2020-01-02T03:04:05-00:00": "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05-24:60": "2020-01-02T03:04:05-25:00",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z",
    "0000-12-31T20:00:00-05:00": "0000-12-31T20:00:00-05:00",
    "9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
    "2000-02-29T00:00:00Z": "2000-02-29T00:00:00Z",
}


@pytest.mark.parametrize(("text", "shown"), TIMESTAMPS.items())
def test_timestamp_from_text_and_back(text: str, shown: str) -> None:
    found = parse_timestamp(text)
    assert found is not None
    assert timestamp_text(found) == shown


@pytest.mark.parametrize(
    "text",
    [
        "", "2020-01-02", "2020-01-02T03:04:05", "2020-01-02t03:04:05Z", "2020-01-02T03:04:05z", "2020-01-02 03:04:05Z",
        "2020-1-02T03:04:05Z", "2020-13-01T03:04:05Z", "2021-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2020-01-00T00:00:00Z",
        "2020-01-02T24:00:00Z", "2020-01-02T00:60:00Z", "2020-01-02T00:00:60Z", "2020-01-02T00:00:00.Z",
        "2020-01-02T00:00:00+25:00", "2020-01-02T00:00:00+00:61", "2020-01-02T00:00:00+0000", "12020-01-02T00:00:00Z",
        "2020-01-02T00:00:00Z ", "2020-01-02T00:00:00ZZ",
    ],
)  # fmt: skip
def test_no_timestamp(text: str) -> None:
    assert parse_timestamp(text) is None


TRUE = [
    'duration("1h") == duration("60m") && duration("1h") != duration("1m") && duration(duration("1s")) == duration("1s")',
    'int(duration("1s")) == 1000000000 && string(duration("90m")) == "5400s"',
    'timestamp("1970-01-01T00:00:01.9Z") != timestamp(1) && int(timestamp("1970-01-01T00:00:01.9Z")) == 1',
    'timestamp(1) == timestamp("1970-01-01T01:00:01+01:00") && timestamp(timestamp(1)) == timestamp(1)',
    'string(timestamp(0)) == "1970-01-01T00:00:00Z" && string(timestamp(-1)) == "1969-12-31T23:59:59Z"',
    'string(timestamp("2020-01-01T00:00:00+02:00") + duration("1h")) == "2020-01-01T01:00:00+02:00"',
    'duration("1h") + duration("1m") == duration("61m") && duration("1h") - duration("1m") == duration("59m")',
    'duration("1h") + timestamp(0) == timestamp(3600) && timestamp(3600) - duration("1h") == timestamp(0)',
    'timestamp(3600) - timestamp(0) == duration("1h") && timestamp(0) - timestamp(1) == duration("-1s")',
    'timestamp(0) - duration("1ns") == timestamp("1969-12-31T23:59:59.999999999Z")',
    'duration("1ms") < duration("1s") && duration("1s") <= duration("1s") && duration("2s") > duration("1s") && duration("-1s") >= duration("-2s")',
    "timestamp(1) < timestamp(2) && timestamp(1) <= timestamp(1) && timestamp(2) > timestamp(1) && timestamp(2) >= timestamp(2)",
    'dyn(duration("1s")) != 1 && 1000000000 != dyn(duration("1s")) && dyn(duration("1s")) != timestamp(1)',
    'type(duration("1s")) == google.protobuf.Duration && type(timestamp(0)) == google.protobuf.Timestamp',
    '!optional.ofNonZeroValue(duration("0")).hasValue() && optional.ofNonZeroValue(timestamp(0)).hasValue()',
    '!optional.ofNonZeroValue(timestamp("0001-01-01T00:00:00Z")).hasValue()',
    'duration("3h59m59.9s").getHours() == 3 && duration("-90s").getMinutes() == -1 && duration("3723.456s").getSeconds() == 3723',
    'duration("1.5009s").getMilliseconds() == 1500 && duration("-1.5009s").getMilliseconds() == -1500',
    # upstream adds up doubles: what is next to nothing short of an hour is a whole one
    'duration("2562046h59m59.999999999s").getHours() == 2562047 && duration("1h59m59.999999999s").getHours() == 1',
    "$t.getFullYear() == 2024 && $t.getMonth() == 1 && $t.getDate() == 29 && $t.getDayOfMonth() == 28",
    "$t.getDayOfYear() == 59 && $t.getDayOfWeek() == 4",
    "$t.getHours() == 23 && $t.getMinutes() == 58 && $t.getSeconds() == 57 && $t.getMilliseconds() == 123",
    'timestamp("2024-02-29T23:58:57+05:00").getHours() == 18',
    '$t.getHours("+05:30") == 5 && $t.getMinutes("05:30") == 28 && $t.getDate("+05:30") == 1 && $t.getMonth("+05:30") == 2',
    '$t.getHours("-08:00") == 15 && $t.getMinutes("-0:30") == 28 && $t.getMilliseconds("+01:00") == 123',
    '$t.getHours("UTC") == 23 && $t.getHours("") == 23 && $t.getDayOfYear("Asia/Tokyo") == 60',
    '$t.getHours("America/New_York") == 18 && timestamp("2024-07-01T00:00:00Z").getHours("America/New_York") == 20',
    'timestamp("1800-01-01T12:00:00Z").getSeconds("Europe/Berlin") == 28',  # local mean time
    'timestamp("9998-07-01T12:00:00Z").getHours("Europe/Berlin") == 14 && timestamp("9998-01-01T12:00:00Z").getHours("Europe/Berlin") == 13',
    'timestamp("0001-01-01T00:00:00Z").getFullYear("-01:00") == 0 && timestamp("9999-12-31T23:59:59Z").getFullYear("+01:00") == 10000',
    'timestamp("0001-01-01T00:00:00Z").getFullYear("America/New_York") == 0',
    '$t.getFullYear("99999:00") == 2035',
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_holds(expression: str) -> None:
    assert matches(expression.replace("$t", 'timestamp("2024-02-29T23:58:57.123456789Z")')) is True


FAILS = {
    "timestamp($a.model).getHours() == 1": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    "duration($a.model).getHours() == 1": "type conversion error from 'string' to 'google.protobuf.Duration'",
    'timestamp("9999-12-31T23:59:59Z") + duration("1h") == timestamp(0)': "timestamp overflow",
    'timestamp("0001-01-01T00:00:00Z") - duration("1ns") == timestamp(0)': "timestamp overflow",
    'timestamp("9999-12-31T23:59:59Z") - timestamp("0001-01-01T00:00:00Z") == duration("0")': "integer overflow",
    'duration("9223372036854775807ns") + duration("1ns") == duration("0")': "integer overflow",
    'timestamp(0) - duration("-9223372036854775808ns") == timestamp(0)': "integer overflow",
    "timestamp($a.index * 100000000000) == timestamp(0)": "timestamp overflow",
    'timestamp(0).getHours("Europe/Nowhere") == 1': "unknown time zone Europe/Nowhere",
    'timestamp(0).getHours("../zone") == 1': "zone",
    'timestamp(0).getHours(":") == 1': 'strconv.Atoi: parsing "": invalid syntax',
    'timestamp(0).getHours("1:x") == 1': 'strconv.Atoi: parsing "x": invalid syntax',
    'timestamp(0).getMilliseconds("99999999999999999999:0") == 1': "value out of range",
    "dyn(1) > timestamp(0)": "no such overload",
    'dyn(duration("1h")).getDate() == 1': "no such overload: getDate(google.protobuf.Duration)",
    'dyn(duration("1h")).map(d, d) == []': "got 'types.Duration', expected iterable type",
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_on_this_device(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError) as caught:
        matches(expression)
    assert message in str(caught.value)


REFUSED = {
    'duration("1") == duration("1s")': "<input>:1:10: invalid duration argument",
    'timestamp("now") == timestamp(0)': "<input>:1:11: invalid timestamp argument",
    "timestamp(-99999999999999) == timestamp(0)": "<input>:1:11: invalid timestamp argument",
    'true || duration(string("x")) == duration("1s")': "program instantiation failed: type conversion error from 'string' to 'google.protobuf.Duration'",
    "duration(1) == 1": "<input>:1:9: found no matching overload for 'duration' applied to '(int)'",
    'duration("1s") == timestamp(0)': "found no matching overload for '_==_' applied to '(duration, timestamp)'",
    '-duration("1h") == duration("-1h")': "found no matching overload for '-_' applied to '(duration)'",
    'duration("1h").getDate() == 1': "found no matching overload for 'getDate' applied to 'duration.()'",
    'duration("1h")': "must evaluate to bool or the unknown type, not google.protobuf.Duration",
    "timestamp == type(timestamp(0))": "program instantiation failed: reference to undefined type: timestamp",
    "google.protobuf.Any == type(1)": "program instantiation failed: reference to undefined type: google.protobuf.Any",
    "google.protobuf.Foo == type(1)": "<input>:1:1: undeclared reference to 'google'",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_does_not_compile(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        matches(expression)
    assert message in str(caught.value)
