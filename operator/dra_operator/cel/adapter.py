"""Slices as expressions see them, converted once for each generation, with the answers that belong to them.

A slice of the same uid and generation is the same, whatever object it comes as: labels that change and watches that begin anew cost nothing.
Of a new generation only the devices that changed are converted; the others keep what was answered about them. All of it goes soon after the
slice. Used by `compiler`; it must not evaluate.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from .types.values import DeviceInput, device_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.errors import CelError
    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .vectors import MatchVector

SPARE: Final = 1024
"""Devices that are kept, at least, of slices whose last object is gone: the next one often comes a moment later. At most as many as there are
devices of living slices."""


class SliceInputs:
    """What expressions see of the devices of a slice at one generation.

    Attributes:
        converted: devices that were converted for it.
        devices: in the order of the slice.
        driver: that of the slice.
        generation: that of the slice.
        is_sound: whether none of them has a fault.
        users: living slice objects of this generation.
        vectors: answers by the number of the selector.
        values: values of derived attributes and errors, by the number of the expression and the place of the device.
    """

    __slots__ = (
        "_numbers", "_published", "converted", "devices", "driver", "generation", "is_sound", "users", "values", "vectors"
    )  # fmt: skip

    def __init__(self, slice_: ResourceSlice, before: SliceInputs | None = None) -> None:
        self.driver = slice_.spec.driver
        self.generation = slice_.metadata.generation
        self.users = 0
        self._published = slice_.spec.devices
        self._numbers = {device.name: number for number, device in enumerate(self._published)}
        if len(self._numbers) != len(self._published):  # a slice that no API server takes
            self._numbers = {}
        reused = 0
        self.devices: list[DeviceInput] = []
        for number, device in enumerate(self._published):
            known = None if before is None else before.same(self.driver, number, device)
            reused |= (known is not None) << number
            self.devices.append(known or device_input(self.driver, device))
        self.converted = len(self.devices) - reused.bit_count()
        self.is_sound = not any(device.fault for device in self.devices)
        self.values: dict[int, dict[int, DeviceAttribute | CelError]] = {}
        self.vectors: dict[int, MatchVector] = {}
        if before is not None and reused:
            self.vectors = {key: vector.part(reused) for key, vector in list(before.vectors.items())}

    def same(self, driver: str, number: int, device: Device) -> DeviceInput | None:
        """What this generation has in the same place, if it is the same device."""
        if driver != self.driver or number >= len(self._published):
            return None
        return self.devices[number] if _looks_like(self._published[number], device) else None

    def number(self, devices: Sequence[Device], device: Device) -> int:
        """The place of a device among those of a slice object of this generation; -1 if it is none of them."""
        found = self._numbers.get(device.name)
        if found is not None and found < len(devices) and devices[found] is device:
            return found
        return next((number for number, other in enumerate(devices) if other is device), -1)

    def forget(self, selector: int) -> int:
        """Forget the answers of a selector: how many vectors, errors and values that was."""
        vector = self.vectors.pop(selector, None)
        values = self.values.pop(selector, {})
        return len(values) + (0 if vector is None else 1 + len(vector.errors))


def _looks_like(one: Device, other: Device) -> bool:
    """Whether expressions cannot tell two devices of a driver apart; taints, for one, they never see."""
    return (
        one.attributes == other.attributes
        and one.capacity == other.capacity
        and one.allow_multiple_allocations == other.allow_multiple_allocations
    )


class _Object:
    """A living slice object."""

    __slots__ = ("inputs", "key", "ref")

    def __init__(self, ref: weakref.ref[ResourceSlice], key: str, inputs: SliceInputs) -> None:
        self.ref = ref
        self.key = key
        self.inputs = inputs


class Adapters:
    """The slices that are looked at.

    Attributes:
        converted: devices that were converted so far.
        living: devices of slices of which an object exists.
    """

    def __init__(self) -> None:
        self.converted = 0
        self.living = 0
        self._objects: dict[int, _Object] = {}
        self._by_uid: dict[str, SliceInputs] = {}
        self._orphans: OrderedDict[str, int] = OrderedDict()
        self._gone: list[_Object] = []

    def of(self, slice_: ResourceSlice) -> SliceInputs:
        """The slice as expressions see it."""
        entry = self._objects.get(id(slice_))
        if entry is not None and entry.ref() is slice_:
            return entry.inputs
        self._tidy()
        inputs = self._inputs(slice_)
        address = id(slice_)
        # The callback may run at any moment and in any thread, so it only notes.
        entry = _Object(weakref.ref(slice_, lambda _: self._dead(address)), slice_.metadata.uid, inputs)
        self._objects[address] = entry
        inputs.users += 1
        self._orphans.pop(entry.key, None)
        self.living += len(inputs.devices)
        return inputs

    def all(self) -> list[SliceInputs]:
        """Everything that is kept, to clear answers."""
        found = {id(entry.inputs): entry.inputs for entry in list(self._objects.values())}
        found.update((id(inputs), inputs) for inputs in list(self._by_uid.values()))
        return list(found.values())

    def _inputs(self, slice_: ResourceSlice) -> SliceInputs:
        uid, generation = slice_.metadata.uid, slice_.metadata.generation
        known = self._by_uid.get(uid) if uid else None
        if known is not None and generation and known.generation == generation:
            return known
        made = SliceInputs(slice_, known)
        self.converted += made.converted
        if uid:
            self._by_uid[uid] = made
        return made

    def _dead(self, address: int) -> None:
        entry = self._objects.get(address)
        if entry is not None and entry.ref() is None:
            self._gone.append(entry)
            self._objects.pop(address, None)

    def _tidy(self) -> None:
        """Let go of what belongs to slices that went a while ago."""
        while self._gone:
            entry = self._gone.pop()
            entry.inputs.users -= 1
            self.living -= len(entry.inputs.devices)
            if not entry.inputs.users and self._by_uid.get(entry.key) is entry.inputs:
                self._orphans[entry.key] = len(entry.inputs.devices)
        while self._orphans and sum(self._orphans.values()) > max(SPARE, self.living):
            key, _ = self._orphans.popitem(last=False)
            self._by_uid.pop(key, None)
