"""Which pod uses which device through which claim, for people who join it with what exporters of drivers say of devices.

Only where a setting wants it: these series hold names that users choose. `app` has it follow the model; `vitals` reads it when metrics are rendered.
It must not hold more than what claims have in their status.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dra_operator.cluster import is_pod
from dra_operator.model import ResourceClaim

from .labels import CLAIM_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.cluster import Change

    from .row import Series


class DeviceMap:
    """Series of namespace, pod, claim, driver, pool, device by claim; those of claims that came first stay, when there are too many."""

    def __init__(self) -> None:
        self._by_claim: dict[str, tuple[Series, ...]] = {}
        self._total = 0

    def changed(self, change: Change) -> None:
        """Take over a change of a claim; others are ignored."""
        subject = change.new or change.old
        if not isinstance(subject, ResourceClaim):
            return
        held = _series(subject) if change.new is not None else ()
        before = self._by_claim.get(subject.key, ())
        self._total += len(held) - len(before)
        if held:
            self._by_claim[subject.key] = held
        else:
            self._by_claim.pop(subject.key, None)

    def series(self) -> Mapping[Series, float]:
        """At most `CLAIM_LIMIT` of them, each with 1."""
        every = (series for of_claim in self._by_claim.values() for series in of_claim)
        return dict.fromkeys(islice(every, CLAIM_LIMIT), 1.0)

    @property
    def left_out(self) -> int:
        """How many there are beyond the limit."""
        return max(0, self._total - CLAIM_LIMIT)


def _series(claim: ResourceClaim) -> tuple[Series, ...]:
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    pods = [consumer.name for consumer in claim.status.reserved_for if is_pod(consumer)] or [""]
    namespace, name = claim.metadata.namespace, claim.metadata.name
    devices = dict.fromkeys(
        result.device_id for result in allocation.devices.results
    )  # several shares of one are one
    return tuple((namespace, pod, name, *device_id) for pod in dict.fromkeys(pods) for device_id in devices)
