"""What the devices of a view are to requests that ask for the same, kept with the view (`memory`).

Filled by `judge` and `requests`. It must not hold anything that depends on what is allocated or taken, nor on whose claim asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .reporter import Rejection, Why

if TYPE_CHECKING:
    from dra_operator.model import DeviceClass, DeviceToleration

    from .capacity import Share

UNASKED: Final = Rejection(Why.NOT_BUILT, "nobody has asked yet")
"""Stands where a reason not to take a device will be, or None if nothing speaks against it."""


class Ask(NamedTuple):
    """What a request asks of a device, as far as the device alone tells.

    Attributes:
        class_id: identity of the class, which `Answers` keeps alive.
        selectors: expressions of the request.
        tolerations: of device taints.
        amounts: of capacities, as written.
        is_all: whether devices are selected beforehand (alloc R-5).
    """

    class_id: int
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    amounts: tuple[tuple[str, int, str], ...]
    is_all: bool


class Answers:
    """What the devices of a view are to one ask, by position.

    Args:
        device_class: of the ask.
        count: devices of the view.

    Attributes:
        selected: gates of selection, selectors, node, what the device has of capacities.
        allowed: other gates, and taints.
        shares: what is taken of the device; None where nobody has asked yet.
        members: for allocationMode All; None as well.
    """

    __slots__ = ("allowed", "device_class", "members", "selected", "shares")

    def __init__(self, device_class: DeviceClass, count: int) -> None:
        self.device_class = device_class
        self.selected: list[Rejection | None] = [UNASKED] * count
        self.allowed: list[Rejection | None] = [UNASKED] * count
        self.shares: list[Share | None] = [None] * count
        self.members: tuple[int, ...] | None = None
