"""Kubernetes' named formats: what they take, and their messages, which are values."""

from __future__ import annotations

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

GOOD = [
    ("dns1123Label", "my-label-1"),
    ("dns1123Label", "a" * 63),
    ("dns1123Subdomain", "apiextensions.k8s.io"),
    ("dns1035Label", "my-label"),
    ("qualifiedName", "example.com/My.name_1"),
    ("qualifiedName", "name"),
    ("dns1123LabelPrefix", "my-prefix-"),
    ("dns1123SubdomainPrefix", "my.prefix-"),
    ("dns1035LabelPrefix", "my-prefix-"),
    ("labelValue", ""),
    ("labelValue", "My_value"),
    ("uri", "http://example.com"),
    ("uuid", "123E4567-e89b-12d3-a456-426614174000"),
    ("uuid", "123e4567e89b12d3a456426614174000"),
    ("byte", "aGVsbG8="),
    ("date", "2024-02-29"),
    ("datetime", "2021-01-01T00:00:00Z"),
    ("datetime", "2021-01-01t00:00:00x5+99:99Tanything"),
]


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_a_good_text_has_no_messages(name: str, text: str) -> None:
    assert matches(f'!format.{name}().validate("{text}").hasValue()')


_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

BAD = [
    ("dns1123Label", "A", [_LABEL]),
    ("dns1123Label", "a.b", ["must not contain dots"]),
    ("dns1123Label", "-" * 64, ["must be no more than 63 characters", _LABEL]),
    ("dns1123Label", "é" * 32, ["must be no more than 63 characters", _LABEL]),  # bytes are counted
    ("dns1123Subdomain", "a..b", [_SUBDOMAIN]),
    ("dns1123Subdomain", ("a" * 63 + ".") * 4 + "a", ["must be no more than 253 characters"]),
    ("dns1123LabelPrefix", "a-b--é", [_LABEL]),
    ("dns1123LabelPrefix", "é-", [_LABEL]),
    ("dns1123LabelPrefix", "-", [_LABEL]),
    ("qualifiedName", "", ["name part must be non-empty", f"name part {_KEY}"]),
    ("qualifiedName", "/a", ["prefix part must be non-empty"]),
    ("qualifiedName", "A/" + "b" * 64, [f"prefix part {_SUBDOMAIN}", "name part must be no more than 63 bytes"]),
    ("qualifiedName", "a/b/c", [f"a valid label key {_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]),
    ("uri", "x", ['parse \\"x\\": invalid URI for request']),
    ("uuid", "x", ["does not match the UUID format"]),
    ("byte", "", ["invalid base64"]),
    ("byte", "aGVsbG8", ["invalid base64"]),
    ("date", "2023-02-29", ["invalid date"]),
    ("date", "2023-2-9", ["invalid date"]),
    ("datetime", "2021-01-01", ["invalid datetime"]),
    ("datetime", "2021-01-01T24:00:00Z", ["invalid datetime"]),
    ("datetime", "2021-01-01 00:00:00Z", ["invalid datetime"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "messages"), BAD)
def test_a_bad_text_has_upstreams_messages(name: str, text: str, messages: list[str]) -> None:
    wanted = ", ".join(f'"{message}"' for message in messages)
    assert matches(f'format.{name}().validate("{text}").value() == [{wanted}]')


def test_formats_have_names() -> None:
    assert matches('format.named("uri").value() == format.uri() && format.uri() != format.uuid()')
    assert matches('!format.named("URI").hasValue() && ["uri"].all(format, format.named(format).hasValue())')


def test_formats_compare_with_formats_alone() -> None:
    with pytest.raises(CelRuntimeError, match="no such overload"):
        matches("dyn(format.uri()) == 1")


@pytest.mark.parametrize("expression", ["format == 1", "format.nosuch().validate('') == optional.none()"])
def test_the_namespace_is_no_value(expression: str) -> None:
    with pytest.raises(CelCompileError, match="undeclared reference to 'format'"):
        matches(expression)
