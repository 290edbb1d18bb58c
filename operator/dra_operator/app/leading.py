"""How this operator comes to lead: the elector with its settings, who stands in the way, and what `/readyz` and the metrics tell of it.

Built by `operator`, which waits for the Lease, keeps it and gives it back. With `leader_elect` off there is no Lease, and nobody is fenced off.
"""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from dra_operator.kube.lease import Elector, Standing, Terms, own_namespace
from dra_operator.kube.writer import NoFence
from dra_operator.metrics import LEADER, LEASE_FAILURES, LEASE_TRANSITIONS

from .running import without_election

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.kube.api import Api
    from dra_operator.kube.writer import Fence
    from dra_operator.metrics import Metrics
    from dra_operator.settings import Settings


class Leading:
    """Whether this operator leads.

    Attributes:
        elector: None if there is no election.
        fence: for the writer.
    """

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._namespace = settings.lease_namespace or own_namespace()
        self.elector = self._elector(settings) if settings.leader_elect else None
        self.fence: Fence = self.elector or NoFence()

    def _elector(self, settings: Settings) -> Elector:
        # A container that was restarted in its pod is somebody else: its writes of before may be under way.
        me = f"{socket.gethostname()}_{secrets.token_hex(4)}"
        terms = Terms(settings.lease_seconds, settings.renew_seconds, settings.retry_seconds)
        return Elector(self._api, Standing(me, terms), self._namespace, self._bars)

    async def _bars(self) -> str:
        """Why the Lease must not be taken: operators of releases before 0.3.0 know of none, and are where the Deployment is.

        Raises:
            ApiError: it cannot be known now.
        """
        for namespace in dict.fromkeys((self._namespace, own_namespace())):
            if others := await without_election(self._api, namespace):
                return others
        return ""

    @property
    def role(self) -> str:
        """`leader`, `standby`, or `alone` without an election."""
        if self.elector is None:
            return "alone"
        return "leader" if self.elector.leads else "standby"

    @property
    def refusal(self) -> str:
        """Why it never will lead as things are; empty if it may, or does."""
        return self.elector.told.refused if self.elector and not self.elector.leads else ""

    def describe(self) -> Mapping[str, str]:
        """For `/readyz`: what is empty is left out."""
        if self.elector is None:
            return {"role": self.role}
        told = self.elector.told
        found = {
            "role": self.role,
            "lease": self.elector.key,
            "holder": self.elector.holder,
            "doesNotLead": told.barrier,
            "trouble": told.trouble,
        }
        return {key: text for key, text in found.items() if text}

    def refresh(self, metrics: Metrics) -> None:
        """Set the gauges."""
        metrics.set(LEADER, int(self.role != "standby"))
        if self.elector is not None:
            metrics.count_to(LEASE_TRANSITIONS, self.elector.transitions)
            for role, total in self.elector.told.failures.items():
                metrics.count_to(LEASE_FAILURES, total, role)
