"""Whether the API server lets us in at all: one line in the log for all requests that it refuses with 401, and a word for `/readyz`.

Told by `api` of every answer; asked by `app.vitals`. Who sent a refused request need not tell of it once more. Decides nothing, sends nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.errors import ApiUnauthorized, ApiUnavailable

from .timing import REAL, Timing

if TYPE_CHECKING:
    from dra_operator.errors import ApiError

_log = logging.getLogger(__name__)

CALM_SECONDS = 10.0
"""Without a refusal for so long, the next one is told anew: of several API servers, one may refuse what the others take. Arbitrary."""


class Acceptance:
    """What became of our credentials.

    Args:
        timing: the clock.

    Attributes:
        refusal: why the server does not let us in, by its last answer, with what to do; empty while it does.
    """

    def __init__(self, timing: Timing = REAL) -> None:
        self.refusal = ""
        self._timing = timing
        self._told = False
        self._refused_at = 0.0

    def heard(self, error: ApiError | None) -> None:
        """An answer: a refusal of any kind, or None for success. One that says nothing of us (5xx, a proxy's) changes nothing."""
        if isinstance(error, ApiUnauthorized):
            self._refused(error)
        elif not isinstance(error, ApiUnavailable):
            self._accepted()

    def _refused(self, error: ApiUnauthorized) -> None:
        self.refusal = str(error)
        self._refused_at = self._timing.monotonic()
        if not self._told:
            self._told = True
            _log.error("the API server does not let us in, requests are tried again: %s", error)

    def _accepted(self) -> None:
        self.refusal = ""
        if self._told and self._timing.monotonic() - self._refused_at >= CALM_SECONDS:
            self._told = False
            _log.info("the API server lets us in again")
