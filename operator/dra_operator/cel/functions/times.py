"""CEL's durations and timestamps, with the words, the rounding and the leniency of Go's `time` package.

Time zones are those of the `tzdata` package, whatever the machine has: the same expression gives the same answer everywhere. Nothing here
may ask what time it is.
"""

from __future__ import annotations

import operator
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from dra_operator.cel.types.values import INT_MAX, INT_MIN, Duration, Timestamp
from dra_operator.errors import CelRuntimeError

from .registry import Table
from .work import linear, spelt

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES: Final = Table()

SECOND: Final = 10**9
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_EARLIEST: Final = -62_135_596_800
_LATEST: Final = 253_402_300_799


# ------------------------------------------------------------------ text


_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": _MINUTE * SECOND,
    "h": _HOUR * SECOND,
}
_PART: Final = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?([^.0-9]++)")
_INT_DIGITS: Final = 19


def parse_duration(text: str) -> Duration | None:
    """A duration of numbers with units (`1h2m3.5s`), or nothing if the text is none or too large (Go's `time.ParseDuration`)."""
    negative, rest = text[:1] == "-", text.removeprefix(text[:1] if text[:1] in {"-", "+"} else "")
    if rest == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        nanos = _part(*part.groups("")) if part is not None else None
        if part is None or nanos is None:
            return None
        total, position = total + nanos, part.end()
        if total > -INT_MIN:
            return None
    if not rest or (total > INT_MAX and not negative):
        return None
    return Duration(-total if negative else total)


def _part(whole: str, fraction: str, unit: str) -> int | None:
    """Nanoseconds of one number with its unit."""
    size = _UNITS.get(unit)
    if size is None or not (whole or fraction):
        return None
    digits = whole.lstrip("0")
    if len(digits) > _INT_DIGITS or int(digits or "0") > -INT_MIN // size:
        return None
    amount, scale = _fraction(fraction)
    return int(digits or "0") * size + int(float(amount) * (size / scale))


def _fraction(digits: str) -> tuple[int, float]:
    """The digits behind the point as a number, and what it is to be divided by; those that an int64 has no room for do not count."""
    amount, scale = 0, 1.0
    for digit in digits:
        longer = amount * 10 + int(digit)
        if amount > INT_MAX // 10 or longer > -INT_MIN:
            break
        amount, scale = longer, scale * 10
    return amount, scale


def duration_text(value: Duration) -> str:
    """Seconds in decimals, as near as a double comes: `3600s`, `-0.5s`."""
    return f"{Decimal(repr(_quotient(value.nanos, SECOND))).normalize():f}s"


_RFC_3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]++))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LIMITS: Final = (23, 59, 59)
_ZONE_LIMITS: Final = (24, 60)
_MONTHS: Final = 12


def parse_timestamp(text: str) -> Timestamp | None:
    """A timestamp in RFC 3339, or nothing; as Go, it takes hours of one digit, commas and offsets of 24:60.

    Raises:
        CelRuntimeError: it is out of range.
    """
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return None
    year, month, day, *clock = (int(digits) for digits in found.groups()[:6])
    zone = [int(digits or "0") for digits in found.groups()[8:10]]
    if any(map(operator.gt, (*clock, *zone), (*_LIMITS, *_ZONE_LIMITS))):
        return None
    days = _days(year, month, day)
    if days is None:
        return None
    offset = (zone[0] * _HOUR + zone[1] * _MINUTE) * (-1 if found[8] == "-" else 1)
    nanos = int((found[7] or "0")[:9].ljust(9, "0"))
    return timestamp_at(
        days * _DAY + clock[0] * _HOUR + clock[1] * _MINUTE + clock[2] - offset, nanos, offset
    )


_CYCLE: Final = 146_097
"""Days after which the calendar repeats: 400 years."""

_EPOCH: Final = date(1970, 1, 1).toordinal()


def _days(year: int, month: int, day: int) -> int | None:
    """Days since 1970; Python's dates know no year 0, so it is counted a cycle later."""
    if not 1 <= month <= _MONTHS or day < 1:
        return None
    try:
        return date(year + 400 if year == 0 else year, month, day).toordinal() - _EPOCH - _CYCLE * (year == 0)
    except ValueError:
        return None


_DATE: Final = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")


def is_date(text: str) -> bool:
    """Whether the text is a day of the calendar, as `2020-01-02`."""
    found = _DATE.fullmatch(text)
    return found is not None and _days(*map(int, found.groups())) is not None


def timestamp_at(seconds: int, nanos: int = 0, offset: int = 0) -> Timestamp:
    """A timestamp.

    Raises:
        CelRuntimeError: before year 1 or after year 9999.
    """
    if not _EARLIEST <= seconds <= _LATEST:
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(seconds, nanos, offset)


_FIRST_SECOND: Final = _EARLIEST - (292_277_022_400 * _CYCLE // 400 + 306) * _DAY
"""Where Go's calendar begins; it is 2**64 seconds long, and what lies before it is at its end."""


def moment(seconds: int, nanos: int) -> Timestamp:
    """Any second that there is in a message. Go counts them from year 1, so that the last ones are the first."""
    carried, rest = divmod(nanos, SECOND)
    return Timestamp(_wrapped(seconds + carried - _EARLIEST) + _EARLIEST, rest)


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339, with the offset that it was given with."""
    seconds = value.seconds + value.offset
    year, day, second = _civil(seconds)
    fraction = f".{value.nanos:09d}".rstrip("0").rstrip(".")
    clock = f"{second // _HOUR:02d}:{second // _MINUTE % 60:02d}:{second % 60:02d}"
    minutes = abs(value.offset) // _MINUTE
    zone = (
        f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if value.offset else "Z"
    )
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{day.month:02d}-{day.day:02d}T{clock}{fraction}{zone}"


def _civil(seconds: int) -> tuple[int, date, int]:
    """Year, a day of a like year, and seconds of the day. Years before 1 and after 9999 occur: zones shift what is near the ends, and messages have any."""
    seconds = (seconds - _FIRST_SECOND) % 2**64 + _FIRST_SECOND
    days, second = divmod(seconds, _DAY)
    cycles, number = divmod(days + _EPOCH - 1, _CYCLE)
    day = date.fromordinal(number + 1)
    return day.year + 400 * cycles, day, second


# ------------------------------------------------------------------ conversions


def _conversion(name: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from 'string' to 'google.protobuf.{name}'")


@TIMES.define("duration(google.protobuf.Duration) -> google.protobuf.Duration")
def duration_of_duration(value: Duration) -> Duration:
    """A duration from a duration."""
    return value


@TIMES.define("duration(string) -> google.protobuf.Duration", work=spelt)
def duration_of_string(text: str) -> Duration:
    """A duration from text."""
    found = parse_duration(text)
    if found is None:
        raise _conversion("Duration")
    return found


@TIMES.define("int(google.protobuf.Duration) -> int")
def int_of_duration(value: Duration) -> int:
    """Nanoseconds."""
    return value.nanos


@TIMES.define("string(google.protobuf.Duration) -> string")
def string_of_duration(value: Duration) -> str:
    """Seconds, in decimals."""
    return duration_text(value)


@TIMES.define("timestamp(google.protobuf.Timestamp) -> google.protobuf.Timestamp")
def timestamp_of_timestamp(value: Timestamp) -> Timestamp:
    """A timestamp from a timestamp."""
    return value


@TIMES.define("timestamp(int) -> google.protobuf.Timestamp")
def timestamp_of_int(seconds: int) -> Timestamp:
    """A timestamp from seconds since 1970."""
    return timestamp_at(seconds)


@TIMES.define("timestamp(string) -> google.protobuf.Timestamp", work=spelt)
def timestamp_of_string(text: str) -> Timestamp:
    """A timestamp from text."""
    found = parse_timestamp(text)
    if found is None:
        raise _conversion("Timestamp")
    return found


@TIMES.define("int(google.protobuf.Timestamp) -> int")
def int_of_timestamp(value: Timestamp) -> int:
    """Whole seconds since 1970."""
    return _wrapped(value.seconds)


@TIMES.define("string(google.protobuf.Timestamp) -> string")
def string_of_timestamp(value: Timestamp) -> str:
    """RFC 3339."""
    return timestamp_text(value)


# ------------------------------------------------------------------ arithmetic and order


def _span(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return Duration(nanos)


def _shifted(value: Timestamp, nanos: int) -> Timestamp:
    seconds, rest = divmod(value.nanos + nanos, SECOND)
    return timestamp_at(value.seconds + seconds, rest, value.offset)


@TIMES.define("-_(google.protobuf.Duration) -> google.protobuf.Duration", declared=False)
def minus_duration(value: Duration) -> Duration:
    """Sign change of a duration."""
    return _span(-value.nanos)


@TIMES.define(
    "_+_(google.protobuf.Duration, google.protobuf.Duration) -> google.protobuf.Duration",
)
def add_durations(left: Duration, right: Duration) -> Duration:
    """Sum of durations."""
    return _span(left.nanos + right.nanos)


@TIMES.define("_+_(google.protobuf.Duration, google.protobuf.Timestamp) -> google.protobuf.Timestamp")
def add_timestamp(left: Duration, right: Timestamp) -> Timestamp:
    """A timestamp later by a duration."""
    return _shifted(right, left.nanos)


@TIMES.define("_+_(google.protobuf.Timestamp, google.protobuf.Duration) -> google.protobuf.Timestamp")
def add_duration(left: Timestamp, right: Duration) -> Timestamp:
    """A timestamp later by a duration."""
    return _shifted(left, right.nanos)


@TIMES.define("_-_(google.protobuf.Duration, google.protobuf.Duration) -> google.protobuf.Duration")
def sub_durations(left: Duration, right: Duration) -> Duration:
    """Difference of durations."""
    return _span(left.nanos - right.nanos)


@TIMES.define("_-_(google.protobuf.Timestamp, google.protobuf.Duration) -> google.protobuf.Timestamp")
def sub_duration(left: Timestamp, right: Duration) -> Timestamp:
    """A timestamp earlier by a duration."""
    return _shifted(left, _span(-right.nanos).nanos)


@TIMES.define("_-_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> google.protobuf.Duration")
def sub_timestamps(left: Timestamp, right: Timestamp) -> Duration:
    """The time between two timestamps."""
    seconds = _span((left.seconds - right.seconds) * SECOND)  # upstream checks the seconds alone first
    return _span(seconds.nanos + left.nanos - right.nanos)


_ORDERS: Final[dict[str, Callable[..., bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def _define_orders() -> None:
    for name, compare in _ORDERS.items():
        TIMES.define(
            *(
                f"{name}({kind}, {kind}) -> bool"
                for kind in ("google.protobuf.Duration", "google.protobuf.Timestamp")
            )
        )(compare)


_define_orders()


# ------------------------------------------------------------------ parts


def _quotient(nanos: int, unit: int) -> float:
    """Units in doubles, as Go adds them up: whole ones and the rest, which may round up to the next whole one."""
    whole, rest = divmod(abs(nanos), unit)
    return (float(whole) + float(rest) / float(unit)) * (-1 if nanos < 0 else 1)


@TIMES.define(".getHours(google.protobuf.Duration) -> int")
def duration_hours(value: Duration) -> int:
    """The whole duration in hours."""
    return int(_quotient(value.nanos, _HOUR * SECOND))


@TIMES.define(".getMinutes(google.protobuf.Duration) -> int")
def duration_minutes(value: Duration) -> int:
    """The whole duration in minutes."""
    return int(_quotient(value.nanos, _MINUTE * SECOND))


@TIMES.define(".getSeconds(google.protobuf.Duration) -> int")
def duration_seconds(value: Duration) -> int:
    """The whole duration in seconds."""
    return int(_quotient(value.nanos, SECOND))


@TIMES.define(".getMilliseconds(google.protobuf.Duration) -> int")
def duration_milliseconds(value: Duration) -> int:
    """The whole duration in milliseconds, cut off towards zero."""
    return abs(value.nanos) // 10**6 * (-1 if value.nanos < 0 else 1)


_PARTS: Final[dict[str, Callable[[int], int]]] = {
    "getFullYear": lambda seconds: _civil(seconds)[0],
    "getMonth": lambda seconds: _civil(seconds)[1].month - 1,
    "getDayOfYear": lambda seconds: _civil(seconds)[1].timetuple().tm_yday - 1,
    "getDayOfMonth": lambda seconds: _civil(seconds)[1].day - 1,
    "getDate": lambda seconds: _civil(seconds)[1].day,
    "getDayOfWeek": lambda seconds: _civil(seconds)[1].isoweekday() % 7,
    "getHours": lambda seconds: _civil(seconds)[2] // _HOUR,
    "getMinutes": lambda seconds: _civil(seconds)[2] % _HOUR // _MINUTE,
    "getSeconds": lambda seconds: _civil(seconds)[2] % _MINUTE,
}
"""Accessors by the seconds since 1970 of the clock on the wall."""


def _define_parts() -> None:
    for name, part in _PARTS.items():

        def utc(value: Timestamp, part: Callable[[int], int] = part) -> int:
            return part(value.seconds)

        def local(value: Timestamp, zone: str, part: Callable[[int], int] = part) -> int:
            return part(value.seconds + _offset(value, zone))

        TIMES.define(f".{name}(google.protobuf.Timestamp) -> int")(utc)
        TIMES.define(f".{name}(google.protobuf.Timestamp, string) -> int", work=linear)(local)


_define_parts()


@TIMES.define(".getMilliseconds(google.protobuf.Timestamp) -> int")
def timestamp_milliseconds(value: Timestamp) -> int:
    """Milliseconds of the second."""
    return value.nanos // 10**6


@TIMES.define(".getMilliseconds(google.protobuf.Timestamp, string) -> int", work=linear)
def timestamp_milliseconds_in(value: Timestamp, zone: str) -> int:
    """Milliseconds of the second; the zone has no say in it, but must exist."""
    _offset(value, zone)
    return value.nanos // 10**6


# ------------------------------------------------------------------ time zones


def _offset(value: Timestamp, zone: str) -> int:
    """Seconds that the zone is east of UTC at that time.

    Raises:
        CelRuntimeError: there is no such zone.
    """
    hours, colon, minutes = zone.partition(":")
    if colon:
        return _fixed(zone, _number(hours), _number(minutes))
    if zone in {"", "UTC", "Local"}:
        # Local is the zone of the machine upstream: Kubernetes' images have none but UTC.
        return 0
    return _offset_in(_zone(zone), value.seconds)


_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


def _number(text: str) -> int:
    digits = text.lstrip("+-0")[: _INT_DIGITS + 1]
    if not _NUMBER.fullmatch(text):
        raise CelRuntimeError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(digits or "0") * (-1 if text[0] == "-" else 1)
    if not INT_MIN <= number <= INT_MAX:
        raise CelRuntimeError(f'strconv.Atoi: parsing "{text}": value out of range')
    return number


def _fixed(zone: str, hours: int, minutes: int) -> int:
    """Seconds of an offset in hours and minutes. Nothing bounds them upstream, so what is too large wraps around."""
    offset = _wrapped(_wrapped(hours * 60) + (-minutes if zone[0] == "-" else minutes))
    return int(_quotient(_wrapped(offset * _MINUTE * SECOND), SECOND))


def _wrapped(number: int) -> int:
    return (number - INT_MIN) % 2**64 + INT_MIN


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    if name not in _names():
        raise CelRuntimeError(f"unknown time zone {name}")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


_EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_YEAR: Final = int(datetime(2, 1, 1, tzinfo=UTC).timestamp())
_LAST_SECOND: Final = int(datetime(9990, 1, 1, tzinfo=UTC).timestamp())


def _offset_in(zone: ZoneInfo, seconds: int) -> int:
    """The ends of the calendar are looked up away from them: nothing changes in the first years, and the last are like those of a cycle before."""
    if seconds > _LAST_SECOND:
        seconds -= -(-(seconds - _LAST_SECOND) // (_CYCLE * _DAY)) * _CYCLE * _DAY
    time = _EPOCH_TIME + timedelta(seconds=max(seconds, _SECOND_YEAR))
    offset = time.astimezone(zone).utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0
