"""Puts objects into the embedded API server past all its rules, as servers of other versions, or an edited database, may hold them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from .objects import Obj
    from .world import World

CREATED = "2026-01-01T00:00:00Z"


def smuggle(here: World, obj: Obj) -> None:
    """Store it as it is, with the metadata that every object has."""
    kind = here.server.machinery.kinds.of(obj)
    whole = copy.deepcopy(obj)
    whole["metadata"] = {"uid": str(uuid4()), "creationTimestamp": CREATED, **whole["metadata"]}
    here.server.store.put((kind.group, kind.plural), whole)
