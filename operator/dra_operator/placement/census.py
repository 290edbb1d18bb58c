"""Which published devices could serve which request, kept between decisions.

`Placer` asks it to tell whose a request is, to leave out nodes that cannot have enough devices, and to count devices for
explanations. It is an upper bound and never the last word: the allocator decides. What a request asks of single devices is a
`Wish`; wishes are few (templates repeat), devices many, so the answers are kept per wish and slice object, and made anew only for
slices that changed. It must not know what is allocated nor whose a pool is: both change far more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import (
    Candidate,
    ClaimSpot,
    Rejection,
    Why,
    device_needs,
    gate_of,
    matcher_of,
    taint_text,
    untolerated,
)
from dra_operator.errors import CelError, InvalidInput, WorkLimitReached
from dra_operator.model import ExactDeviceRequest

from .vocabulary import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dra_operator.cel.interface import SelectorCompiler
    from dra_operator.errors import DraError
    from dra_operator.features import Features
    from dra_operator.model import (
        Device,
        DeviceClass,
        DeviceId,
        DeviceSelector,
        DeviceSubRequest,
        DeviceToleration,
        PoolId,
        ResourceSlice,
    )

    _Judge = Callable[
        [ResourceSlice, Sequence[Device]], Iterator[tuple[DeviceId, Rejection | DraError | None]]
    ]

MAX_WISHES: Final = 1000
"""Wishes remembered; the oldest goes first. Arbitrary: far more than templates in use at a time."""

MAX_JUDGED: Final = 2_000_000
"""Devices whose answers are remembered, over all wishes, some 150 bytes each: 40 wishes over 50,000 devices."""

JUDGING: Final = 4
"""Units of selector work for judging one device even if its selectors are answered already (measured: a microsecond)."""

SHARED: Final = ""
"""Node name under which slices are filed that name no node."""

_UNFINISHED: Final = -1
"""A round that never is: what was judged before the work ended is kept, and no answer."""

_MISMATCHES: Final = frozenset({Why.CLASS_SELECTOR, Why.REQUEST_SELECTOR})
"""Refusals by which a device does not match; all others are obstacles that can pass."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request asks of each device, without count and name; equal wishes share their answers."""

    device_class: str
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A device that does not serve a wish.

    Args:
        device: which.
        reason: in words.
        matches: whether it meets the selectors.
        passes: whether only a taint keeps it off.
        unbuilt: whether only a feature keeps it off that the allocator does not have.
    """

    device: DeviceId
    reason: str
    matches: bool
    passes: bool = False
    unbuilt: bool = False


@dataclass(frozen=True, slots=True)
class SliceFit:
    """The devices of one slice, judged for one wish.

    Args:
        slice_: the slice object; the answer holds for this very object only.
        usable: devices that match and whose taints are tolerated, and devices that could not be judged: the allocator will
            say what is wrong with them.
        rejected: the others.
        unclear: how many of `usable` could not be judged.
        error: the first failure to judge a device.
        parts: the same by the node that devices name, `SHARED` for none, where the slice leaves it to them (alloc P-4); else empty.
        foreign: how many of `rejected` the class itself refuses.
        shareable: whether several requests may get one and the same of its devices (alloc Q-11).
    """

    slice_: ResourceSlice
    usable: tuple[DeviceId, ...]
    rejected: tuple[Rejected, ...]
    unclear: int = 0
    error: DraError | None = None
    parts: tuple[tuple[str, SliceFit], ...] = ()
    foreign: int = 0
    shareable: bool = False

    @property
    def matching(self) -> int:
        """Devices that surely match, free or not, tainted or not."""
        return len(self.usable) - self.unclear + sum(item.matches for item in self.rejected)

    @property
    def within_reach(self) -> int:
        """Devices that would serve, or might, when free and untainted."""
        return len(self.usable) + sum(item.passes for item in self.rejected)

    @property
    def is_relevant(self) -> bool:
        """Whether some device matches or could not be judged."""
        return bool(self.usable) or self.matching > 0


@dataclass(frozen=True, slots=True)
class Fits:
    """All slices judged for one wish.

    Args:
        by_slice: by the slice's name.
        by_node: slices with a device that matches or could not be judged, by the node that they or their devices name, `SHARED` for none.
        node_names: the nodes of `by_node`, sorted.
        drivers: drivers with a device that the class itself takes.
    """

    by_slice: Mapping[str, SliceFit]
    by_node: Mapping[str, tuple[SliceFit, ...]]
    node_names: tuple[str, ...]
    drivers: frozenset[str] = frozenset()

    @property
    def pools(self) -> Sequence[PoolId]:
        """Pools with a device that matches or could not be judged, sorted."""
        return sorted({fit.slice_.pool_id for fits in self.by_node.values() for fit in fits})

    def on(self, node_name: str) -> tuple[SliceFit, ...]:
        """The slices that name the node."""
        return self.by_node.get(node_name, ())


def _rejected(device: DeviceId, refusal: Rejection) -> Rejected:
    matches, passes = refusal.why not in _MISMATCHES, refusal.why is Why.TAINT
    return Rejected(device, in_words(refusal), matches, passes, refusal.why is Why.NOT_BUILT)


def _refusing(refusal: Rejection) -> _Judge:
    """Refuses all devices."""
    return lambda slice_, devices: ((slice_.device_id(device), refusal) for device in devices)


def _whole(slice_: ResourceSlice, parts: Mapping[str, SliceFit]) -> SliceFit:
    found = parts.values()
    return SliceFit(
        slice_,
        tuple(device for part in found for device in part.usable),
        tuple(item for part in found for item in part.rejected),
        sum(part.unclear for part in found),
        next((part.error for part in found if part.error is not None), None),
        tuple(parts.items()),
        sum(part.foreign for part in found),
        any(part.shareable for part in found),
    )


def _by_node(by_slice: Mapping[str, SliceFit]) -> Fits:
    """The answers for slices, found by the nodes that they or their devices name."""
    by_node: dict[str, list[SliceFit]] = {}
    for fit in by_slice.values():
        for node, part in fit.parts or ((fit.slice_.spec.node_name or SHARED, fit),):
            if part.is_relevant:
                by_node.setdefault(node, []).append(part)
    names = tuple(sorted(name for name in by_node if name != SHARED))
    drivers = frozenset(
        fit.slice_.spec.driver
        for fit in by_slice.values()
        if fit.foreign < len(fit.usable) + len(fit.rejected)
    )
    return Fits(by_slice, {node: tuple(fits) for node, fits in by_node.items()}, names, drivers)


def wish_of(request: ExactDeviceRequest | DeviceSubRequest) -> Wish:
    """The wish of a request or of one alternative."""
    return Wish(request.device_class_name, request.selectors, request.tolerations)


class Census:
    """Answers for the current slices and classes; the owner calls `refresh` when either changed."""

    def __init__(
        self, compiler: SelectorCompiler, features: Features, ignored_taints: frozenset[str]
    ) -> None:
        self._compiler = compiler
        self._features = features
        self._ignored = ignored_taints
        self._slices: Sequence[ResourceSlice] = ()
        self._classes: Mapping[str, DeviceClass] = {}
        self._round = 0
        self._room = MAX_WISHES
        self._answers: dict[Wish, tuple[int, Fits]] = {}

    def slices_changed(self, slices: Sequence[ResourceSlice]) -> None:
        """Take over the slices that exist now; answers for slice objects that are still among them stay."""
        self._slices = slices
        self._round += 1
        devices = sum(len(slice_.spec.devices) for slice_ in slices)
        self._room = max(1, min(MAX_WISHES, MAX_JUDGED // max(1, devices)))

    def classes_changed(self, classes: Mapping[str, DeviceClass]) -> None:
        """Take over the classes; all answers are made anew."""
        self._classes = classes
        self._answers.clear()

    def fits(self, wish: Wish) -> Fits:
        """The slices judged for a wish. Failures of expressions are part of the answer.

        Raises:
            WorkLimitReached: the decision may do no more work on selectors; slices that are judged stay so.
        """
        known = self._answers.get(wish)
        if known is not None and known[0] == self._round:
            return known[1]
        while len(self._answers) >= self._room:
            del self._answers[next(iter(self._answers))]
        by_slice: dict[str, SliceFit] = {}
        before = known[1].by_slice if known else {}
        try:
            self._judge_all(wish, before, by_slice)
        except WorkLimitReached:
            self._answers[wish] = _UNFINISHED, Fits({**before, **by_slice}, {}, ())
            raise
        fits = _by_node(by_slice)
        self._answers[wish] = self._round, fits
        return fits

    def _judge_all(self, wish: Wish, before: Mapping[str, SliceFit], by_slice: dict[str, SliceFit]) -> None:
        """Fill in the answer for each slice; those for the same slice objects are taken over."""
        meter = self._compiler.meter
        judge = self._judge_of(wish)
        for slice_ in self._slices:
            old = before.get(slice_.metadata.name)
            if old is not None and old.slice_ is slice_:
                by_slice[slice_.metadata.name] = old
                continue
            meter.check()
            by_slice[slice_.metadata.name] = self._judge_slice(judge, slice_)
            meter.spend(JUDGING * len(slice_.spec.devices))

    def _judge_slice(self, judge: _Judge, slice_: ResourceSlice) -> SliceFit:
        if not slice_.spec.per_device_node_selection:
            return self._judge_devices(judge, slice_, slice_.spec.devices)
        homes: dict[str, list[Device]] = {}
        for device in slice_.spec.devices:
            homes.setdefault(device.node_name or SHARED, []).append(device)
        return _whole(
            slice_, {home: self._judge_devices(judge, slice_, devices) for home, devices in homes.items()}
        )

    def _judge_devices(self, judge: _Judge, slice_: ResourceSlice, devices: Sequence[Device]) -> SliceFit:
        usable: list[DeviceId] = []
        rejected: list[Rejected] = []
        errors: list[DraError] = []
        foreign = 0
        for device, refusal in judge(slice_, devices):
            if isinstance(refusal, Rejection):
                rejected.append(_rejected(device, refusal))
                foreign += refusal.why is Why.CLASS_SELECTOR
                continue
            usable.append(device)
            if refusal is not None:
                errors.append(refusal)
        first = next(iter(errors), None)
        shareable = self._features.consumable_capacity and any(
            device.allow_multiple_allocations for device in devices
        )
        return SliceFit(
            slice_, tuple(usable), tuple(rejected), len(errors), first, foreign=foreign, shareable=shareable
        )

    def _judge_of(self, wish: Wish) -> _Judge:
        """What tells why devices do not serve the wish: selectors, features, taints, in that order."""
        class_ = self._classes.get(wish.device_class)
        if class_ is None:
            return _refusing(Rejection(Why.CLASS_SELECTOR, f"of {wish.device_class}, which does not exist"))
        entry = ExactDeviceRequest(device_class_name=wish.device_class, selectors=wish.selectors)
        try:
            matcher = matcher_of(self._compiler, self._features, class_, entry, ClaimSpot("request"))
        except InvalidInput as error:
            return _refusing(Rejection(Why.CLASS_SELECTOR, str(error)))

        def judge(
            slice_: ResourceSlice, devices: Sequence[Device]
        ) -> Iterator[tuple[DeviceId, Rejection | DraError | None]]:
            known = matcher.refusals(slice_) if devices is slice_.spec.devices else None
            for number, device in enumerate(devices):
                candidate = Candidate(slice_.device_id(device), slice_, device, slice_.pool_id)
                try:
                    refusal = matcher.refusal(candidate) if known is None else known[number]
                    yield candidate.id, refusal or self._unusable(wish, candidate)
                except (CelError, InvalidInput) as error:
                    yield candidate.id, error

        return judge

    def _unusable(self, wish: Wish, candidate: Candidate) -> Rejection | None:
        """What keeps the allocator from a device that matches."""
        features = self._features
        if candidate.device.binding_conditions and not features.device_binding_and_status:
            return Rejection(Why.GATE_OFF, gate_of("device_binding_and_status"))
        if candidate.slice_.spec.per_device_node_selection is not None and not features.partitionable_devices:
            return Rejection(Why.GATE_OFF, gate_of("partitionable_devices"))
        gate = device_needs(candidate.device)
        if gate is not None:
            return Rejection(Why.NOT_BUILT, gate)
        taint = (
            untolerated(candidate.device, wish.tolerations, self._ignored) if features.device_taints else None
        )
        return None if taint is None else Rejection(Why.TAINT, taint_text(taint))
