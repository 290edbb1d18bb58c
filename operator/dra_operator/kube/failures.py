"""From what went wrong on the wire to our error tree. Pure; called by `api` and by the feeds for in-stream errors.

The server's `Status` body decides more than the HTTP code does: 409 is two things, and missing rights on a claim's allocation
(cp V-78) and a uid that is not the object's come as 422. Foreign exceptions are turned into `ApiUnavailable` in `api`, next to the library that raises them.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from dra_operator.errors import (
    ApiAlreadyExists,
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiGone,
    ApiInvalid,
    ApiNotFound,
    ApiThrottled,
    ApiUnauthorized,
    ApiUnavailable,
)
from dra_operator.logfields import fit_to_tell

if TYPE_CHECKING:
    from collections.abc import Mapping


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The part of `Status.details` that we read."""

    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """meta/v1 `Status`, as the server words a refusal."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


PLAIN: dict[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: ApiInvalid,
    HTTPStatus.UNAUTHORIZED: ApiUnauthorized,
    HTTPStatus.FORBIDDEN: ApiForbidden,
    HTTPStatus.NOT_FOUND: ApiNotFound,
    HTTPStatus.CONFLICT: ApiConflict,
    HTTPStatus.GONE: ApiGone,
    HTTPStatus.UNPROCESSABLE_ENTITY: ApiInvalid,
}
"""Codes that are one class each; 409, 422, 429 and 5xx have more to them, see `refusal`."""

MISSING_RIGHT = ('requires resource="', "permission")
"""Both are in the text of the 422 that means missing rights (cp V-78, V-79)."""

OTHER_OBJECT = "metadata.uid: Invalid value"
"""In the text of the 422 by which a patch or apply with the uid of an earlier object of the same name is refused."""

RIGHT_REMEDY = (
    "; grant it to the operator in a ClusterRole (a namespaced Role does not count), see manifests/"
)
UNAUTHENTICATED_REMEDY = (
    "; the credentials are not accepted: check the kubeconfig, or the ServiceAccount: if it was deleted and made anew, the tokens of its pods "
    "are void, and the pods have to be deleted, too"
)


def parse_status(body: bytes) -> Status:
    """The `Status` in a body; proxies and crashing servers answer with plain text, which becomes the message."""
    try:
        return msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        return Status(message=body[:512].decode(errors="replace").strip())


def parse_retry_after(headers: Mapping[str, str], status: Status) -> float | None:
    """Seconds to wait, from the header (in seconds; HTTP dates are not used by Kubernetes) or the details."""
    header = headers.get("Retry-After", "").strip()
    if header.isdigit():
        return float(header)
    seconds = status.details.retry_after_seconds if status.details else 0
    return float(seconds) if seconds > 0 else None


def refusal(code: int, body: bytes, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error for an answer that is no success.

    Args:
        code: HTTP status, or the `code` of an in-stream `Status`.
        body: what came with it.
        headers: of the answer; only `Retry-After` is read.
    """
    status = parse_status(body)
    message = fit_to_tell(status.message) or f"the API server answered {code} without a message"
    retry_after = parse_retry_after(headers or {}, status)
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return ApiThrottled(message, retry_after=retry_after)
    if (
        not HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR
        or code == HTTPStatus.REQUEST_TIMEOUT
    ):
        # 1xx-3xx: redirects are not followed, they would carry the token elsewhere; no API server sends them
        return ApiUnavailable(message, status=code, retry_after=retry_after)
    return _plain(code, status.reason, message)


def _plain(code: int, reason: str, message: str) -> ApiError:
    if code == HTTPStatus.CONFLICT and reason == "AlreadyExists":
        return ApiAlreadyExists(message, status=code)
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and OTHER_OBJECT in message:
        return ApiConflict(message, status=code)
    if code in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY} and all(
        part in message for part in MISSING_RIGHT
    ):
        return ApiForbidden(message + RIGHT_REMEDY, status=code)
    if code == HTTPStatus.UNAUTHORIZED:
        return ApiUnauthorized(message + UNAUTHENTICATED_REMEDY, status=code)
    return PLAIN.get(code, ApiInvalid)(message, status=code)


def in_stream(body: bytes) -> ApiError:
    """The error for an `ERROR` event of a watch: its object is a `Status`, whatever its code."""
    return refusal(parse_status(body).code or 500, body)
