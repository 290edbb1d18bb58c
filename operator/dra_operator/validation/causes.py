"""One thing that the API server refuses an object for, in its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dra_operator.errors import CelError


@dataclass(frozen=True, slots=True)
class Cause:
    """One validation error.

    Attributes:
        path: where, such as `spec.devices.requests[0].name`; keys of maps stand in brackets, too.
        reason: a metav1.CauseType.
        message: in the server's words.
        error: what the engine says of an expression that is refused.
        refers: the value is the name of something that is not there.
    """

    path: str
    reason: str
    message: str
    error: CelError | None = None
    refers: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The metav1.StatusCause."""
        return {"reason": self.reason, "message": self.message, "field": self.path}
