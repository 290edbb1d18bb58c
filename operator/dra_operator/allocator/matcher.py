"""Selectors of classes and requests against devices (alloc section 4).

Used by `requests` (members of mode All), `search` (candidates) and ownership (`request_matches`). Use, taints and constraints are not
looked at: the answer never depends on what is allocated (L-3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.cel.vectors import places
from dra_operator.errors import (
    CelCompileError,
    CelError,
    CelRuntimeError,
    InvalidClaim,
    InvalidInput,
    InvalidPool,
    Spot,
    WorkLimitReached,
)
from dra_operator.model import DeviceId

from .nodes import node_matches
from .pools import Candidate
from .reporter import Rejection, Why
from .unbuilt import gate_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.cel.interface import Selector, SelectorCompiler
    from dra_operator.features import Features
    from dra_operator.model import (
        Device,
        DeviceClass,
        DeviceSelector,
        DeviceSubRequest,
        ExactDeviceRequest,
        PoolId,
        ResourceSlice,
    )

    from .pools import View

    AnyRequest = ExactDeviceRequest | DeviceSubRequest

UNREADABLE: Final = "CEL expression empty (unsupported selector type?)"

# A conjunction that begins with the driver's name; with `||` or a ternary anywhere in the text it may mean something else.
_BOUND_TO_DRIVER = re.compile(
    r"""\s*device\.driver\s*==\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*(?:&&.*)?""", re.DOTALL
)
_MAY_ESCAPE = re.compile(r"\|\||(?<![.\[])\?")


class ClaimSpot(NamedTuple):
    """How errors name the request or sub-request whose selectors are looked at.

    Args:
        label: as upstream names it, e.g. `claim ns/name`.
        ref: e.g. `ResourceClaim ns/name`; empty where claims share the answer.
        path: in front of `selectors`, with a dot at its end; empty where claims share the answer.
    """

    label: str
    ref: str = ""
    path: str = ""


class Owner(NamedTuple):
    """A class or a request with its selectors; label, ref and path are those of `ClaimSpot`."""

    label: str
    ref: str
    path: str
    why: Why
    selectors: Sequence[DeviceSelector]


class _Place(NamedTuple):
    owner: Owner
    number: int


class Matcher:
    """The selectors of a class and of a request, compiled when the first device is tested (alloc L-1, L-4).

    Args:
        compiler: keeps what it compiled.
        features: the environment of the expressions.
        owned: selectors with their owners, class first.
    """

    def __init__(
        self,
        compiler: SelectorCompiler,
        features: Features,
        owned: Sequence[Owner],
    ) -> None:
        self._compiler = compiler
        self._features = features
        self._steps = [
            (_Place(owner, index), owner.why, _expression(owner.label, index, selector))
            for owner in owned
            for index, selector in enumerate(owner.selectors)
        ]
        self._compiled: list[Selector] = []

    @property
    def drivers(self) -> frozenset[str]:
        """Drivers that the selectors visibly bind the request to; empty when the text does not show it."""
        return frozenset(driver for _, _, expression in self._steps if (driver := bound_driver(expression)))

    def refusal(self, candidate: Candidate) -> Rejection | None:
        """The first selector that the device does not meet.

        Raises:
            CelError: with upstream's prefix; fatal for the whole call (alloc L-4).
            WorkLimitReached: with the place of the selector at which it ended.
        """
        for index, (place, why, expression) in enumerate(self._steps):
            try:
                if self._selector(index, expression).matches(candidate.slice_, candidate.device):
                    continue
            except CelError as error:
                raise _located(error, place, candidate) from error
            except WorkLimitReached as error:
                raise WorkLimitReached(
                    error.units, Spot(place.owner.ref, _path(place), "", expression)
                ) from error
            return Rejection(why, expression)
        return None

    def refusals(self, slice_: ResourceSlice) -> list[Rejection | None] | None:
        """The same for all devices of a slice at once; None where only one by one tells, as something fails or is dear.

        A selector counts only if some device meets all before it, as it does one by one.
        """
        found: list[Rejection | None] = [None] * len(slice_.spec.devices)
        left = (1 << len(found)) - 1
        for index, (_, why, expression) in enumerate(self._steps):
            if not left:
                break
            try:
                matching = self._selector(index, expression).matching(slice_)
            except (CelError, WorkLimitReached):
                matching = None  # told with its place, device by device
            if matching is None:
                return None
            refusal = Rejection(why, expression)
            for number in places(left & ~matching):
                found[number] = refusal
            left &= matching
        return found

    def _selector(self, index: int, expression: str) -> Selector:
        if index == len(self._compiled):
            self._compiled.append(self._compiler.compile(expression, self._features))
        return self._compiled[index]


def check_readable(device_class: DeviceClass) -> None:
    """Make sure that a class has selectors of known types only.

    Raises:
        InvalidClaim: it has others.
    """
    for index, selector in enumerate(device_class.spec.selectors):
        _expression(f"class {device_class.metadata.name}", index, selector)


def _expression(owner: str, index: int, selector: DeviceSelector) -> str:
    if selector.cel is None:
        raise InvalidClaim("", f"{owner}, selector #{index}: {UNREADABLE}")
    return selector.cel.expression


def _path(place: _Place) -> str:
    return f"{place.owner.path}selectors[{place.number}].cel.expression"


def _located(error: CelError, place: _Place, candidate: Candidate) -> CelError:
    owner, where = place.owner, f"{place.owner.label}: selector #{place.number}"
    path = _path(place)
    is_general = isinstance(error, CelCompileError)
    is_bare = not is_general and not candidate.device.attributes and not candidate.device.capacity
    published = () if is_general else _published(candidate)
    spot = Spot(owner.ref, path, "" if is_general else str(candidate.id), str(error), is_bare, published)
    match error:
        case CelCompileError():
            return CelCompileError(f"{where}: CEL compile error: {error}", spot, error.faults)
        case CelRuntimeError():
            return CelRuntimeError(f"{where} on device {candidate.id}: CEL runtime error: {error}", spot)
        case _:
            return type(error)(f"{where} on device {candidate.id}: {error}", spot)


def _published(candidate: Candidate) -> tuple[str, ...]:
    """Names of the device's attributes and capacities; those without a domain are in the driver's."""
    names = {*candidate.device.attributes, *candidate.device.capacity}
    driver = candidate.slice_.spec.driver
    return tuple(sorted(name if "/" in name else f"{driver}/{name}" for name in names))


def bound_driver(expression: str) -> str | None:
    """The driver whose devices alone can meet the expression, where its text says so.

    Sound, not complete: None means "cannot tell".
    """
    found = _BOUND_TO_DRIVER.fullmatch(expression)
    if found is None or _MAY_ESCAPE.search(expression):
        return None
    return found[1] if found[1] is not None else found[2]


def matcher_of(
    compiler: SelectorCompiler,
    features: Features,
    device_class: DeviceClass,
    entry: AnyRequest,
    claim: ClaimSpot,
) -> Matcher:
    """The matcher of a request or sub-request; `claim` is how errors name it.

    Raises:
        InvalidClaim: the class has a selector of an unknown type.
    """
    name = device_class.metadata.name
    owned = [
        Owner(
            f"class {name}", f"DeviceClass {name}", "spec.", Why.CLASS_SELECTOR, device_class.spec.selectors
        ),
        Owner(claim.label, claim.ref, claim.path, Why.REQUEST_SELECTOR, entry.selectors),
    ]
    return Matcher(compiler, features, owned)


def may_be_of(matcher: Matcher, pool_id: PoolId) -> bool:
    """Whether a device of that pool could meet the selectors, as far as their text tells."""
    return matcher.drivers <= {pool_id.driver}


def not_selectable(features: Features, view: View, matcher: Matcher, position: int) -> Rejection | None:
    """Why the device at that position is none that the request selects, or None (alloc L-1).

    Raises:
        CelError: a selector fails on it.
        InvalidPool: its own node selector cannot be parsed; `pools` lets only strict views come so far.
    """
    candidate = view.candidates[position]
    if candidate.device.binding_conditions and not features.device_binding_and_status:
        return Rejection(Why.GATE_OFF, gate_of("device_binding_and_status"))
    refusal = matcher.refusal(candidate)
    if refusal is None and candidate.slice_.spec.per_device_node_selection and not _is_for(view, candidate):
        return Rejection(Why.NODE)
    return refusal


def _is_for(view: View, candidate: Candidate) -> bool:
    try:
        return node_matches(view.node, candidate.device)
    except InvalidInput as error:
        raise InvalidPool(
            str(candidate.pool_id), f"device {candidate.id}: failed to parse node selector: {error}"
        ) from error


def request_matches(
    compiler: SelectorCompiler,
    features: Features,
    classes: Mapping[str, DeviceClass],
    entry: AnyRequest,
    slice_: ResourceSlice,
    device: Device,
) -> bool:
    """Whether a device meets the class and the selectors of a request or sub-request, free or not, on whatever node.

    Raises:
        InvalidClaim: the class does not exist, or a selector is of an unknown type.
        CelError: a selector does not compile or fails on this device.
    """
    device_class = classes.get(entry.device_class_name)
    if device_class is None:
        raise InvalidClaim(
            "", f"could not retrieve device class {entry.device_class_name}: there is no such DeviceClass"
        )
    candidate = Candidate(DeviceId(*slice_.pool_id, device.name), slice_, device, slice_.pool_id)
    return matcher_of(compiler, features, device_class, entry, ClaimSpot("claim")).refusal(candidate) is None
