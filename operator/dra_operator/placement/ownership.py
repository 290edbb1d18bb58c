"""Whose a request, a claim and an allocation are: ours or kube-scheduler's (architecture, section 2, "Ownership of pools").

A request is ours if a device published in an owned pool matches it, free or not, or if none matches anywhere. A prioritized list
is ours if any of its alternatives is, as a list is decided as a whole; at allocation only owned pools are looked at then. A claim
is ours if all its requests are, theirs if none is, and refused if it has some of each. In mode `replace` all pools, and so all
claims, are ours.

Called by `Placer`. It must not look at what is free: whose a claim is may not change while devices come and go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dra_operator.errors import CelUnsupported

from .census import MAX_WISHES, wish_of
from .faults import EDIT_CLASS, REWRITE, WITHOUT, forms, selector_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dra_operator.model import (
        AllocationResult,
        DeviceRequest,
        DeviceSubRequest,
        ExactDeviceRequest,
        PoolId,
        ResourceClaim,
    )

    from .census import Census, Wish


class Side(Enum):
    """Who allocates."""

    OURS = "ours"
    THEIRS = "theirs"
    MIXED = "mixed"
    """Some requests of the claim are ours, some theirs: nobody may allocate it."""

    UNKNOWN = "unknown"
    """A selector that the engine cannot evaluate may match devices of ours."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whose a request or claim is, with an example for the user.

    Args:
        side: the answer.
        pool: a pool with a matching device; None if no published device matches.
        text: for claims of no clear side, what stands in the way, and what to do.
        error: why nobody can tell whose a request is.
    """

    side: Side
    pool: PoolId | None = None
    text: str = ""
    error: CelUnsupported | None = None


class Rules:
    """Rulings for the current slices, classes and policies; kept until `forget`."""

    def __init__(self, census: Census, is_owned: Callable[[PoolId], bool], *, replace: bool) -> None:
        self._census = census
        self._is_owned = is_owned
        self._replace = replace
        self._known: dict[Wish, Ruling] = {}

    def forget(self) -> None:
        """Slices, classes or policies changed."""
        self._known.clear()

    def owns(self, pool_id: PoolId) -> bool:
        """Whether the pool is ours, also while it settles or its policy is being removed."""
        return self._replace or self._is_owned(pool_id)

    def claim(self, claim: ResourceClaim) -> Ruling:
        """Whose an unallocated claim is. A claim without requests needs no device: theirs, unless all are ours."""
        if self._replace:
            return Ruling(Side.OURS)
        rulings = {request.name: self.request(request) for request in claim.spec.devices.requests}
        sides = {ruling.side for ruling in rulings.values()}
        if Side.UNKNOWN in sides:
            return self._unknown(claim)
        if sides == {Side.OURS, Side.THEIRS}:
            return Ruling(Side.MIXED, text=_mixed_text(claim.key, rulings))
        return next(iter(rulings.values()), Ruling(Side.THEIRS))

    def _unknown(self, claim: ResourceClaim) -> Ruling:
        """The first form of a request of which nobody can tell whose it is, with the place of the selector."""
        asked = ((path, name, self.wish(wish_of(form))) for path, name, form in forms(claim))
        path, name, ruling = next(found for found in asked if found[2].error is not None)
        assert ruling.error is not None
        text = (
            f"{selector_fault(ruling.error, claim.key, path)}, so that nobody can tell whether request {name} asks for devices of "
            f"pool {ruling.pool}. {WITHOUT}. {REWRITE if not ruling.error.spot or not ruling.error.spot.ref else EDIT_CLASS}"
        )
        return Ruling(Side.UNKNOWN, ruling.pool, text, ruling.error)

    def request(self, request: DeviceRequest) -> Ruling:
        """Whose a request is; of a prioritized list, the first alternative with the strongest say."""
        rulings = [self.wish(wish_of(alternative)) for _, alternative in alternatives(request)]
        matched = [ruling for ruling in rulings if ruling.pool is not None or ruling.side is Side.UNKNOWN]
        for side in (Side.OURS, Side.UNKNOWN, Side.THEIRS):
            found = next((ruling for ruling in matched if ruling.side is side), None)
            if found is not None:
                return found
        return Ruling(Side.OURS)

    def allocation(self, allocation: AllocationResult) -> Side:
        """Whose an existing allocation is: ours if any of its devices is in an owned pool."""
        owned = any(self.owns(result.device_id.pool_id) for result in allocation.devices.results)
        return Side.OURS if owned or self._replace else Side.THEIRS

    def wish(self, wish: Wish) -> Ruling:
        """Whose one form of a request is."""
        ruling = self._known.get(wish)
        if ruling is None:
            if len(self._known) >= MAX_WISHES:
                self._known.clear()
            ruling = self._known[wish] = self._rule(wish)
        return ruling

    def _rule(self, wish: Wish) -> Ruling:
        theirs: PoolId | None = None
        unknown: Ruling | None = None
        for fits in self._census.fits(wish).by_node.values():
            for fit in fits:
                pool_id = fit.slice_.pool_id
                owned = self.owns(pool_id)
                if fit.matching and owned:
                    return Ruling(Side.OURS, pool_id)
                if fit.matching:
                    theirs = theirs or pool_id
                elif owned and isinstance(fit.error, CelUnsupported):
                    unknown = unknown or Ruling(Side.UNKNOWN, pool_id, error=fit.error)
        if unknown is not None:
            return unknown
        return Ruling(Side.OURS) if theirs is None else Ruling(Side.THEIRS, theirs)


def alternatives(request: DeviceRequest) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    """The forms in which a request can be had, with the names that results carry (`gpu`, `gpu/big`); none if it is unknown."""
    if request.first_available:
        for sub in request.first_available:
            yield f"{request.name}/{sub.name}", sub
    elif request.exactly is not None:
        yield request.name, request.exactly


def _mixed_text(claim: str, rulings: dict[str, Ruling]) -> str:
    places = {name: f"spec.devices.requests[{index}] ({name})" for index, name in enumerate(rulings)}
    ours = next((places[name], ruling.pool) for name, ruling in rulings.items() if ruling.side is Side.OURS)
    theirs = next(
        (places[name], ruling.pool) for name, ruling in rulings.items() if ruling.side is Side.THEIRS
    )
    reason = (
        f"is matched by pool {ours[1]}, which an AllocationPolicy gives to the operator"
        if ours[1]
        else "is matched by no device"
    )
    return (
        f"ResourceClaim {claim}: {ours[0]} {reason}, but {theirs[0]} is matched only by pools that kube-scheduler allocates, such as "
        f"{theirs[1]}. One allocator has to serve a whole claim: split it into two claims, or ask an admin to add the other pool "
        "to an AllocationPolicy"
    )
