"""Which writes, and which watches of Kopf, the API server forbids us now: what `/readyz` names beside the reason, since others may go on well.

Told by the writer and by Kopf's session of every answer, asked by `vitals`. A right to read that is missing at the start shows in `preflight`, one
that our own feeds lose later in these.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from .preflight import REMEDY as GRANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.controllers.clock import Clock
    from dra_operator.kube.kinds import Kind

logger = logging.getLogger(__name__)

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


class RefusedWatches:
    """The kinds fed by Kopf of which the last request for a watch was answered with 403.

    A right that is taken away shows when the server ends the watch that goes on, after some minutes, and Kopf asks for the next one. Until it is back,
    changes are heard by the sweeps alone.
    """

    def __init__(self, kinds: Iterable[Kind], clock: Clock) -> None:
        self._kinds = {kind.path(): kind for kind in kinds}
        self._clock = clock
        self._since: dict[str, float] = {}

    def heard(self, path: str, status: int) -> None:
        """How the server answered a request for a watch. Anything but a refusal shows that the right is there, or nothing at all."""
        kind = self._kinds.get(path)
        if kind is None:
            return
        if status == HTTPStatus.FORBIDDEN and kind.name not in self._since:
            self._since[kind.name] = self._clock.monotonic()
            logger.error("%s; tried again", self._words(kind.name))
        elif status == HTTPStatus.OK and self._since.pop(kind.name, None) is not None:
            logger.info("%s can be watched again", kind.plural)

    def trouble(self, kind: str) -> str:
        """A sentence about a kind, with the remedy; empty in good times."""
        since = self._since.get(kind)
        return "" if since is None else f"{self._words(kind)}. So for {self._clock.monotonic() - since:.0f} s"

    def _words(self, name: str) -> str:
        plural = next(kind.plural for kind in self._kinds.values() if kind.name == name)
        return f"rights are missing: cannot watch {plural} (changes are heard minutes late): {GRANT}"
