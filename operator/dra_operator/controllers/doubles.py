"""Tells when a device is held by two claims (architecture, section 2): nobody repairs that, so nobody may hide it.

The API server accepts it, and upstream never notices (cp I-13). A log line at error level and an event on each claim, once for each
pair; the gauge `devices_held_twice` is read from the model when metrics are rendered. Writes nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.logfields import fields

from .commit import CLAIM
from .parts import WARNING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cluster import Change
    from dra_operator.model import DeviceId

    from .parts import Parts

logger = logging.getLogger(__name__)


class DoublesWatch:
    """Follows the model."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._recorder = parts.recorder
        self._known: dict[DeviceId, Sequence[str]] = {}

    def changed(self, change: Change) -> None:
        """Look for doubles that were not there before."""
        if change.kind != CLAIM:
            return
        found = self._cluster.doubles()
        for device, claims in found.items():
            if self._known.get(device) != claims:
                self._report(device, claims)
        self._known = dict(found)

    def _report(self, device: DeviceId, claims: Sequence[str]) -> None:
        words = "device %s is allocated to several claims; delete the pods of all but one of them"
        logger.error(words, device, extra=fields(claims=", ".join(claims)))
        text = (
            f"device {device} is allocated to several claims: {', '.join(claims)}. Delete the pods of all but one of them; "
            "if this pool is owned by an AllocationPolicy, something allocates past it"
        )
        for key in claims:
            claim = self._cluster.claims.get(key)
            if claim is not None:
                self._recorder.record(CLAIM, claim.metadata, WARNING, "DeviceHeldTwice", text)
