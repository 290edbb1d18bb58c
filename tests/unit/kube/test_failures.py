"""Every refusal of the API server has one class of ours, and every class is reached."""

from __future__ import annotations

import json

import pytest

from dra_operator import errors
from dra_operator.errors import (
    ApiAlreadyExists,
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiGone,
    ApiInvalid,
    ApiNotFound,
    ApiNotServed,
    ApiThrottled,
    ApiUnauthorized,
    ApiUnavailable,
    ApiWentBack,
)
from dra_operator.kube.failures import in_stream, refusal

MISSING_RIGHT = (
    'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
    'verb="[arbitrary-node:patch]" permission: forbidden'
)

TABLE: list[tuple[int, str, str, type[ApiError]]] = [
    (307, "", "", ApiUnavailable),
    (400, "BadRequest", "unknown field", ApiInvalid),
    (401, "Unauthorized", "Unauthorized", ApiUnauthorized),
    (403, "Forbidden", "pods is forbidden", ApiForbidden),
    (404, "NotFound", "not found", ApiNotFound),
    (405, "MethodNotAllowed", "", ApiInvalid),
    (408, "Timeout", "", ApiUnavailable),
    (409, "AlreadyExists", "already exists", ApiAlreadyExists),
    (409, "Conflict", "modified", ApiConflict),
    (410, "Expired", "too old resource version", ApiGone),
    (413, "RequestEntityTooLarge", "", ApiInvalid),
    (415, "UnsupportedMediaType", "", ApiInvalid),
    (422, "Invalid", "field cannot be modified once set", ApiInvalid),
    (422, "Invalid", MISSING_RIGHT, ApiForbidden),
    (
        422,
        "Invalid",
        'Pod "p" is invalid: metadata.uid: Invalid value: "u1": field is immutable',
        ApiConflict,
    ),
    (429, "TooManyRequests", "slow down", ApiThrottled),
    (500, "InternalError", "boom", ApiUnavailable),
    (503, "ServiceUnavailable", "", ApiUnavailable),
    (504, "Timeout", "Too large resource version", ApiUnavailable),
]


def body_of(code: int, reason: str, message: str, **details: int) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


@pytest.mark.parametrize(("code", "reason", "message", "wanted"), TABLE)
def test_refusals(code: int, reason: str, message: str, wanted: type[ApiError]) -> None:
    body = body_of(code, reason, message)

    for error in (refusal(code, body), in_stream(body)):
        assert type(error) is wanted
        assert error.status == code
        assert message in str(error)


def test_every_class_of_the_tree_is_reached() -> None:
    leaves = {
        error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, ApiError)
    }

    assert {wanted for *_, wanted in TABLE} == leaves - {
        ApiError,
        ApiNotServed,
        ApiWentBack,
    }  # discovery's, and the lists'


@pytest.mark.parametrize(
    ("headers", "details", "wanted"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({"Retry-After": "7"}, {"retryAfterSeconds": 3}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ({}, {}, None),
    ],
)
@pytest.mark.parametrize(("code", "wanted_class"), [(429, ApiThrottled), (503, ApiUnavailable)])
def test_time_to_wait(
    headers: dict[str, str],
    details: dict[str, int],
    wanted: float | None,
    code: int,
    wanted_class: type[ApiError],
) -> None:
    error = refusal(code, body_of(code, "", "slow down", **details), headers)

    assert isinstance(error, wanted_class)
    assert isinstance(error, ApiThrottled | ApiUnavailable)
    assert error.retry_after == wanted


def test_answers_that_are_no_status_become_the_message() -> None:
    assert str(refusal(502, b"<html>Bad Gateway</html>")) == "<html>Bad Gateway</html>"
    assert str(refusal(502, b"")) == "the API server answered 502 without a message"
    assert str(refusal(502, b'{"message": 7}')) == '{"message": 7}'


def test_error_event_without_a_code_is_a_failure_of_the_server() -> None:
    assert type(in_stream(b"{}")) is ApiUnavailable
