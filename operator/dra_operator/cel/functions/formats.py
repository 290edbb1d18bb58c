"""Kubernetes' CEL library of named formats, `format.dns1123Label().validate(text)`, whose messages are values: they are upstream's to the letter.

Upstream counts bytes, so texts are looked at byte by byte (Latin-1). The formats come from k8s.io/apimachinery (names and labels) and
kube-openapi's `strfmt` (the rest).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dra_operator.cel.types.values import NONE, NamedFormat, Optional, some

from .addresses import Malformed
from .registry import Table
from .times import is_date
from .urls import parse_request
from .work import spelt

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS: Final = Table()

Messages = tuple[str, ...]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253

_ALPHANUMERIC: Final = "must start and end with an alphanumeric character"
_WORDS: Final = {
    _LABEL: f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ALPHANUMERIC}",
    _SUBDOMAIN: f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ALPHANUMERIC}",
    _LABEL_1035: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _KEY: f"must consist of alphanumeric characters, '-', '_' or '.', and {_ALPHANUMERIC}",
    _VALUE: f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ALPHANUMERIC}",
}
_EXAMPLES: Final = {
    _LABEL: ("my-name", "123-abc"),
    _SUBDOMAIN: ("example.com",),
    _LABEL_1035: ("my-name", "abc-123"),
    _KEY: ("MyName", "my.name", "123-abc"),
    _VALUE: ("MyValue", "my_value", "12345"),
}


def _bytes(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _text(data: str) -> str:
    return data.encode("latin-1").decode("utf-8", "surrogateescape")


def _fits(pattern: str, data: str) -> bool:
    return re.fullmatch(pattern, data) is not None


def _unlike(pattern: str) -> str:
    examples = " or ".join(f"'{example}', " for example in _EXAMPLES[pattern])
    return f"{_WORDS[pattern]} (e.g. {examples}regex used for validation is '{pattern}')"


def _too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def _checked(data: str, pattern: str, limit: int, unit: str = "characters") -> Messages:
    long = (_too_long(limit, unit),) if len(data) > limit else ()
    return long if _fits(pattern, data) else (*long, _unlike(pattern))


def _label(data: str) -> Messages:
    found = _checked(data, _LABEL, _LONGEST_LABEL)
    if not _fits(_LABEL, data) and _fits(_SUBDOMAIN, data):
        return (*found[:-1], "must not contain dots")
    return found


def _subdomain(data: str) -> Messages:
    return _checked(data, _SUBDOMAIN, _LONGEST_SUBDOMAIN)


def _label_1035(data: str) -> Messages:
    return _checked(data, _LABEL_1035, _LONGEST_LABEL)


def _label_value(data: str) -> Messages:
    return _checked(data, _VALUE, _LONGEST_LABEL, "bytes")


def _qualified_name(data: str) -> Messages:
    parts = data.split("/")
    if len(parts) > 2:  # noqa: PLR2004 -- a prefix and a name
        return (
            f"a valid label key {_unlike(_KEY)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    name = parts[-1]
    found = _prefix(parts[0]) if len(parts) > 1 else []
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        found.append(f"name part {_too_long(_LONGEST_LABEL, 'bytes')}")
    if not _fits(_KEY, name):
        found.append(f"name part {_unlike(_KEY)}")
    return tuple(found)


def _prefix(data: str) -> list[str]:
    if not data:
        return ["prefix part must be non-empty"]
    return [f"prefix part {message}" for message in _checked(data, _SUBDOMAIN, _LONGEST_SUBDOMAIN, "bytes")]


def _before(check: Callable[[str], Messages]) -> Callable[[str], Messages]:
    """The check for what a name begins with: something comes behind a dash at its end."""

    def run(data: str) -> Messages:
        return check(f"{data[:-2]}a" if len(data) > 1 and data.endswith("-") else data)

    return run


def _uri(data: str) -> Messages:
    try:
        parse_request(_text(data))
    except Malformed as error:
        return (str(error),)
    return ()


_UUID: Final = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE_64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_CLOCK: Final = "([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
_LATEST: Final = ("23", "59", "59")


def _is_datetime(data: str) -> bool:
    """A date, T, and a time of day with a zone; what a second T brings is not looked at."""
    date, letter, rest = _text(data).lower().partition("t")
    found = re.fullmatch(_CLOCK, rest.partition("t")[0])
    if not letter or found is None or not is_date(date):
        return False
    return all(part <= limit for part, limit in zip(found.groups(), _LATEST, strict=True))


def _told(check: Callable[[str], bool], message: str) -> Callable[[str], Messages]:
    def run(text: str) -> Messages:
        return () if check(text) else (message,)

    return run


_CHECKS: Final[dict[str, Callable[[str], Messages]]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _label_1035,
    "qualifiedName": _qualified_name,
    "dns1123LabelPrefix": _before(_label),
    "dns1123SubdomainPrefix": _before(_subdomain),
    "dns1035LabelPrefix": _before(_label_1035),
    "labelValue": _label_value,
    "uri": _uri,
    "uuid": _told(lambda data: _fits(_UUID, data), "does not match the UUID format"),
    "byte": _told(lambda data: _fits(_BASE_64, data), "invalid base64"),
    "date": _told(is_date, "invalid date"),
    "datetime": _told(_is_datetime, "invalid datetime"),
}
_NAMED: Final = {name: NamedFormat(name, check) for name, check in _CHECKS.items()}


def _define_formats() -> None:
    for name, named_format in _NAMED.items():
        FORMATS.define(f"format.{name}() -> kubernetes.NamedFormat")(lambda found=named_format: found)


_define_formats()


@FORMATS.define("format.named(string) -> optional_type(kubernetes.NamedFormat)")
def named(name: str) -> Optional:
    """The format of that name, if there is one."""
    return some(_NAMED[name]) if name in _NAMED else NONE


@FORMATS.define(
    ".validate(kubernetes.NamedFormat, string) -> optional_type(list(string))",
    work=lambda _, text: spelt(text),
)
def validate(wanted: NamedFormat, text: str) -> Optional:
    """What is wrong with a text; nothing if it is fine."""
    messages = wanted.validate(_bytes(text))
    return some(messages) if messages else NONE
