"""Which writes the API server forbids us now: what `/readyz` names beside the reason, since others may go on well.

Told by the writer of every answer, asked by `vitals`. A right to read that is missing shows in the feeds and in `preflight`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.controllers.clock import Clock

FORBIDDEN: Final = str(HTTPStatus.FORBIDDEN.value)

RIGHTS: Final = {"apply": "patch"}
"""What RBAC calls a verb of the writer, where it is another word."""

REMEDY: Final = "grant it in a ClusterRole (manifests/base/rbac.yaml), or mend the quota, admission policy or webhook; the log has the server's words"


class RefusedWrites:
    """The kinds of writes of which the last one was answered with 403."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def heard(self, verb: str, resource: str, code: str) -> None:
        """An answer; `code` as the writer's observer gets it. One that was accepted shows that the right is there."""
        write = f"{RIGHTS.get(verb, verb)} {resource}"
        if code == FORBIDDEN:
            self._since.setdefault(write, self._clock.monotonic())
        elif code.startswith("2"):
            self._since.pop(write, None)

    def current(self) -> Mapping[str, str]:
        """Verb and resource of each, and what to do."""
        now = self._clock.monotonic()
        return {
            write: f"forbidden (403) for {now - since:.0f} s: {REMEDY}"
            for write, since in sorted(self._since.items())
        }
