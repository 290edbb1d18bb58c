"""Every refusal that the embedded API server can give, as one exception that knows its metav1.Status.

Raised below `http`, which turns it into a response. The words are those of a real kube-apiserver where clients or people
read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.validation.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.testing.fakeapi.objects import Obj


@dataclass(frozen=True, slots=True)
class About:
    """What a failure is about, for `status.details`: group, kind or plural, name, uid."""

    group: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""

    def as_dict(self) -> Obj:
        """The metav1.StatusDetails without causes."""
        pairs = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        return {key: value for key, value in pairs.items() if value}

    @property
    def qualified(self) -> str:
        """`pods`, or `resourceclaims.resource.k8s.io`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(slots=True, eq=False)
class StatusError(Exception):
    """A refused request: HTTP code, metav1.StatusReason, message and details."""

    code: int
    reason: str
    message: str
    about: About = field(default_factory=About)
    causes: Sequence[Cause] = ()
    retry_after: int | None = None
    empty_details: bool = False
    onward: str = ""
    """Continue token by which a list goes on, though not consistently."""

    def __str__(self) -> str:
        return self.message

    def status(self) -> Obj:
        """The metav1.Status that goes over the wire."""
        details = self.about.as_dict()
        if self.causes:
            details["causes"] = [cause.as_dict() for cause in self.causes]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        metadata = {"continue": self.onward} if self.onward else {}
        body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        body |= {"message": self.message, "reason": self.reason, "code": self.code}
        if details or self.empty_details:
            body["details"] = details
        if not self.reason:
            del body["reason"]
        return body


def not_found(about: About) -> StatusError:
    """404: no such object."""
    return StatusError(404, "NotFound", f'{about.qualified} "{about.name}" not found', about)


def unknown_path() -> StatusError:
    """404: nothing is served there."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, empty_details=True)


def already_exists(about: About) -> StatusError:
    """409: the name is taken."""
    return StatusError(409, "AlreadyExists", f'{about.qualified} "{about.name}" already exists', about)


def conflict(about: About, why: str) -> StatusError:
    """409: the object is not what the writer thought it was."""
    message = f'Operation cannot be fulfilled on {about.qualified} "{about.name}": {why}'
    return StatusError(409, "Conflict", message, about)


def stale(about: About) -> StatusError:
    """409: a resourceVersion that is not the current one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(about, why)


def storage_precondition(about: About, namespace: str, name: str, wanted: str, actual: str) -> StatusError:
    """409: the object is another one (`name` is UID) or another version (ResourceVersion); the storage layer finds out."""
    place = "/".join(part for part in ("/registry", about.kind, namespace, about.name) if part)
    why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {actual}"
    return conflict(
        about,
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )


def deletion_precondition(about: About, name: str, wanted: str, actual: str) -> StatusError:
    """409: a delete whose precondition (`UID` or `ResourceVersion`) does not hold; `about.kind` is the kind."""
    fate = "deleted and then recreated" if name == "UID" else "modified"
    why = (
        f"the {name} in the precondition ({wanted}) does not match the {name} in record ({actual})."
        f" The object might have been {fate}"
    )
    return conflict(about, why)


def invalid(about: About, causes: Sequence[Cause]) -> StatusError:
    """422: validation failed; `about.kind` is the kind here, not the plural."""
    texts = [f"{cause.path}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{about.qualified} "{about.name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, about, tuple(causes))


def unprocessable() -> StatusError:
    """422: a JSON patch whose `test` or path did not hold."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, empty_details=True)


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def forbidden(about: About, why: str, *causes: Cause) -> StatusError:
    """403: not allowed now, whoever asks."""
    message = f'{about.qualified} "{about.name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, about, causes)


def unauthorized() -> StatusError:
    """401: the credentials are not known."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """405: the resource has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, empty_details=True)


def no_media_type() -> StatusError:
    """415: a patch in a format that is no patch format."""
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", empty_details=True)


def no_protobuf() -> StatusError:
    """415 of our own: a body in protobuf with more in it than we can read."""
    message = (
        "this embedded API server reads few kinds in protobuf, which kubectl sends for `create KIND NAME`, and this body"
        " is none of them: write the object to a file and use kubectl apply -f or create -f"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: no such patch or body format here."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str) -> StatusError:
    """410: the history that the client wants is gone; it has to list again."""
    return StatusError(410, "Expired", message)


def token_expired(onward: str) -> StatusError:
    """410 of a continue token; `onward` is one to go on with."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
        " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
        " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
        " deleted between the time the first chunk was returned and now may show up in the list."
    )
    return StatusError(410, "Expired", message, onward=onward)


def list_too_old() -> StatusError:
    """410 of a list at an exact version."""
    return expired("The resourceVersion for the provided list is too old.")


def too_old(wanted: int, oldest: int) -> StatusError:
    """410 of a watch."""
    return expired(f"too old resource version: {wanted} ({oldest})")


def too_new(wanted: int, current: int) -> StatusError:
    """504: a resourceVersion that this server has not reached (another server's, as a rule)."""
    cause = Cause("", "ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return StatusError(504, "Timeout", message, causes=(cause,), retry_after=1)
