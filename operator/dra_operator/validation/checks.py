"""The small checks that validation is made of, with the words of apimachinery's field errors.

Called by the other modules and by the rules of the embedded API server. Each check returns causes and never raises: validation collects all errors of an object.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from dra_operator.validation.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dra_operator.validation.objects import Obj

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LIMIT, _LABEL_LIMIT, _SUBDOMAIN_LIMIT = 32, 63, 253

_LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_HELP = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_IDENTIFIER_HELP = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
LABEL_KEY_HELP = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def quoted(value: Any) -> str:
    """A value as field errors print it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value}"'
    return json.dumps(value, separators=(",", ":"))


def required(path: str, detail: str = "") -> Cause:
    """The field must be there."""
    return Cause(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def wrong(path: str, value: Any, detail: str) -> Cause:
    """The value is not allowed, for the reason in `detail`."""
    return Cause(path, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}")


def duplicate(path: str, value: Any) -> Cause:
    """The value was there before."""
    return Cause(path, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def forbidden(path: str, detail: str) -> Cause:
    """The field may not be there, or may not change."""
    return Cause(path, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported(path: str, value: Any, allowed: Iterable[str]) -> Cause:
    """The value is none of the allowed ones."""
    listed = ", ".join(f'"{item}"' for item in sorted(allowed))
    return Cause(
        path, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {listed}"
    )


def too_many(path: str, actual: int, limit: int) -> Cause:
    """The list is too long."""
    return Cause(path, "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} items")


def too_long(path: str, limit: int) -> Cause:
    """The text is too long."""
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def immutable(path: str, value: Any) -> Cause:
    """The field may never change."""
    return wrong(path, value, "field is immutable")


def dns_label(path: str, value: Any) -> list[Cause]:
    """RFC 1123 label, at most 63 characters."""
    if not value:
        return [required(path)]
    if len(value) > _LABEL_LIMIT:
        return [wrong(path, value, "must be no more than 63 bytes")]
    return [] if _LABEL.fullmatch(value) else [wrong(path, value, _LABEL_HELP)]


def dns_subdomain(path: str, value: Any, limit: int = 253) -> list[Cause]:
    """RFC 1123 subdomain."""
    if not value:
        return [required(path)]
    if len(value) > limit:
        return [too_long(path, limit)]
    return [] if _SUBDOMAIN.fullmatch(value) else [wrong(path, value, _SUBDOMAIN_HELP)]


def driver_name(path: str, value: Any) -> list[Cause]:
    """RFC 1123 subdomain of at most 63 characters in any case: the real server only warns of upper case."""
    return dns_subdomain(path, value.lower() if isinstance(value, str) else value, 63)


def pool_name(path: str, value: Any) -> list[Cause]:
    """Subdomains separated by slashes, at most 253 characters (cp V-54, V-90)."""
    if not value:
        return [required(path)]
    if len(value) > _SUBDOMAIN_LIMIT:
        return [too_long(path, _SUBDOMAIN_LIMIT)]
    return [
        wrong(path, part, f"segment {index}: {_SUBDOMAIN_HELP}")
        for index, part in enumerate(value.split("/"))
        if not _SUBDOMAIN.fullmatch(part)
    ]


def label_key(path: str, value: Any) -> list[Cause]:
    """A qualified name: optional subdomain prefix, slash, at most 63 characters."""
    prefix, slash, name = value.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return [wrong(path, value, f"prefix part {_SUBDOMAIN_HELP}")]
    if len(name) > _LABEL_LIMIT or not _QUALIFIED.fullmatch(name):
        empty = [] if name else [wrong(path, value, "name part must be non-empty")]
        return [*empty, wrong(path, value, _QUALIFIED_HELP)]
    return []


def label_value(path: str, value: Any) -> list[Cause]:
    """At most 63 characters."""
    if isinstance(value, str) and len(value) <= _LABEL_LIMIT and _LABEL_VALUE.fullmatch(value):
        return []
    return [
        wrong(
            path,
            value,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'",
        )
    ]


def repeated_names(path: str, items: Sequence[Any]) -> list[Cause]:
    """Objects of a list that is keyed by name: a second one of a name is reported as a whole."""
    seen: set[Any] = set()
    causes = []
    for index, item in enumerate(items):
        if item.get("name") in seen:
            causes.append(duplicate(f"{path}[{index}]", item))
        seen.add(item.get("name"))
    return causes


def repeated(path: str, values: Sequence[Any], suffix: str = "") -> list[Cause]:
    """Duplicates, each at its second place (cp V-2)."""
    seen: list[Any] = []
    causes = []
    for index, value in enumerate(values):
        if value in seen:
            causes.append(duplicate(f"{path}[{index}]{suffix}", value))
        seen.append(value)
    return causes


def each(items: Any, path: str, limit: int, check: Callable[[Obj, str], list[Cause]]) -> list[Cause]:
    """All causes of a list's items; one cause if there are too many of them (cp V-1)."""
    found = list(items or ())
    if len(found) > limit:
        return [too_many(path, len(found), limit)]
    return [
        cause
        for index, item in enumerate(found)
        if isinstance(item, dict)
        for cause in check(item, f"{path}[{index}]")
    ]


def qualified_name(path: str, name: str) -> list[Cause]:
    """An optional domain, slash and C identifier, as attributes and capacities are called (cp V-94)."""
    domain, slash, identifier = name.rpartition("/")
    causes: list[Cause] = []
    if slash:
        causes += driver_name(path, domain) if domain else [wrong(path, "", "the domain must not be empty")]
    if slash and not identifier:
        causes.append(wrong(path, "", "the name must not be empty"))
    elif len(identifier) > _NAME_LIMIT:
        causes.append(too_long(path, _NAME_LIMIT))
    elif not _IDENTIFIER.fullmatch(identifier):
        causes.append(wrong(path, identifier, _IDENTIFIER_HELP))
    return causes


def full_name(path: str, name: str) -> list[Cause]:
    """The same with its domain, as constraints name attributes (cp V-34)."""
    if "/" in name:
        return qualified_name(path, name)
    detail = "a fully qualified name must be a domain and a name separated by a slash"
    return [wrong(path, name, detail)]
