"""Tells when a device is held by two claims (architecture, section 2): nobody repairs that, so nobody may hide it.

The API server accepts it, and upstream never notices (cp I-13). A log line at error level and an event on each claim, once for each
pair; the gauge `devices_held_twice` is read from the model when metrics are rendered. Writes nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.logfields import fields
from dra_operator.words import listed

from .commit import CLAIM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cluster import Change
    from dra_operator.model import DeviceId

    from .parts import Parts

logger = logging.getLogger(__name__)

NAMED = 3
"""Devices, and claims of each, that an event names; the others are counted."""


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
        news = {device: claims for device, claims in found.items() if self._known.get(device) != claims}
        for device, claims in news.items():
            words = "device %s is allocated to several claims; delete the pods of all but one of them"
            logger.error(words, device, extra=fields(claims=", ".join(claims)))
        for key in dict.fromkeys(key for claims in news.values() for key in claims):
            self._tell(key, [(device, claims) for device, claims in found.items() if key in claims])
        self._known = dict(found)

    def _tell(self, key: str, doubles: Sequence[tuple[DeviceId, Sequence[str]]]) -> None:
        """One event a claim, with all its devices that others hold as well."""
        claim = self._cluster.claims.get(key)
        if claim is None:
            return
        shown = [
            f"{device} by {listed([f'ResourceClaim {other}' for other in claims if other != key], NAMED)}"
            for device, claims in doubles
        ]
        text = (
            f"status.allocation.devices.results: devices that other claims hold, too: {listed(shown, NAMED)}. Delete the pods of all but one "
            "of these claims; if an AllocationPolicy owns the pool, something allocates past it"
        )
        self._recorder.record(CLAIM, claim.metadata, "DeviceHeldTwice", text)
