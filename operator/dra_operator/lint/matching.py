"""Which devices the requests of a claim can get, out of the published ones, and what follows: selectors, constraints and config that come to nothing.

Only what is certain is told: a request of which it is not known which devices there are, as no cluster was asked and no slice of its driver given, is left
alone. Nothing is allocated: taints, nodes and who holds what do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.cel import default_compiler
from dra_operator.errors import CelError, CelRuntimeError
from dra_operator.features import DEFAULT_1_37
from dra_operator.validation.objects import Obj, dig
from dra_operator.words import akin, listed, nearest

from . import constants, misplaced
from .advice import instead, mending, missing, shown
from .known import split
from .lookups import facts
from .names import NAMED, class_name, lookups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dra_operator.cel import Compiler
    from dra_operator.model import Device, ResourceSlice

    from .known import Known
    from .objects import Item
    from .places import Path

    Candidate = tuple[ResourceSlice, Device]

_EXPLAINING: Final = frozenset({
    "CelInvalid", "CelNotChecked", "CelTooCostly", "TooLong", "MisplacedName", "UnknownAttribute", "UnknownCapacity", "UnknownDomain", "WrongMap", "NeverTrue",
    "UnknownDriver", "BadConstant",
})  # fmt: skip
"""Codes of findings that tell why no device meets an expression, or that nobody will ask one."""

_HOPELESS: Final = frozenset({"MatchesNothing", "NeverTrue", "CelInvalid"})
"""Codes of findings by which an alternative cannot be met."""

_NO_DENIAL: Final = "leave `false` out, or write a condition that some device meets"

MOST_DEVICES: Final = 32
"""Of one claim (alloc A rules; `AllocationResultsMaxSize`)."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one request, or one of its alternatives, can get.

    Attributes:
        request: `name` or `name/alternative`.
        path: of it.
        devices: that meet all selectors; None if it cannot be told.
        drivers: of which its devices must be; None if it cannot be told.
    """

    request: str
    path: Path
    devices: tuple[Candidate, ...] | None
    drivers: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _Selector:
    """An expression, and where it stands in the item that is looked at; no path if it stands in the class."""

    expression: str
    path: Path | None


class Matcher:
    """Looks at selectors with the eyes of the published devices."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._compiler: Compiler = default_compiler()

    def class_(self, item: Item) -> None:
        """The selectors of a class."""
        selectors = list(_selectors(item.obj.get("spec") or {}, ("spec",)))
        self._names(item, selectors)
        self._choose(item, selectors, whole=True)

    def claim(self, item: Item, path: Path) -> None:
        """Requests, constraints and config of a claim's spec."""
        devices = dig(item.obj, *map(str, path), "devices") or {}
        at = (*path, "devices")
        chosen = [self._request(item, *form) for form in _forms(devices, at)]
        _fall_back(item, chosen)
        _count(item, devices, at)
        self._constraints(item, devices, at, chosen)
        self._config(item, devices, at, chosen)

    def _names(self, item: Item, selectors: Iterable[_Selector]) -> None:
        for selector in selectors:
            if selector.path is not None and not item.is_told(selector.path):
                if not _has(item, selector.path, {"CelInvalid"}):
                    misplaced.tell(item, selector.path, selector.expression)
                    constants.tell(item, selector.path, selector.expression)
                lookups(item, selector.path, selector.expression, self._known)

    # --- requests

    def _request(self, item: Item, name: str, path: Path, form: Obj) -> Chosen:
        known = self._known
        wanted = str(form.get("deviceClassName") or "")
        class_name(item, (*path, "deviceClassName"), wanted, known)
        _tolerations(item, form, path)
        own = list(_selectors(form, path))
        self._names(item, own)
        found = known.classes.get(wanted)
        texts = [one.cel.expression for one in found.spec.selectors if one.cel] if found else []
        selectors = [*(_Selector(text, None) for text in texts), *own]
        drivers = _drivers(selectors)
        devices = self._choose(item, selectors, whole=found is not None)
        return Chosen(name, path, devices, drivers)

    def _choose(
        self, item: Item, selectors: Sequence[_Selector], *, whole: bool
    ) -> tuple[Candidate, ...] | None:
        """The devices that meet all selectors; None if that cannot be told. `whole`: there are no others than these."""
        if _contradicts(item, selectors) or not selectors:
            return None
        drivers = _drivers(selectors)
        if drivers is not None and not self._is_published(item, selectors, drivers):
            return None
        if "ResourceSlice" not in self._known.whole and (drivers is None or not self._known.slices):
            return None
        return self._met(item, selectors) if whole or drivers is not None else None

    def _is_published(self, item: Item, selectors: Sequence[_Selector], drivers: frozenset[str]) -> bool:
        published = self._known.published.drivers
        if drivers & published or not (published or "ResourceSlice" in self._known.whole):
            return bool(drivers & published)
        for selector in selectors:
            for one in facts(selector.expression).equalities:
                if one.what != "driver" or selector.path is None or item.is_told(selector.path):
                    continue
                part = (one.start, one.length)
                if "ResourceSlice" in self._known.whole and not _has(item, selector.path, {"UnknownDriver"}):
                    message = f"no ResourceSlice of driver {one.value} is published: no device can meet this"
                    item.tell(
                        "MatchesNothing", selector.path, message, remedy="is the driver installed?", part=part
                    )
        return False

    def _met(self, item: Item, selectors: Sequence[_Selector]) -> tuple[Candidate, ...] | None:
        left: tuple[Candidate, ...] = tuple(self._known.devices())
        for selector in selectors:
            if not left:
                return left
            outcome = self._evaluated(selector.expression, left)
            if outcome is None:
                return None
            met, failed = outcome
            self._tell(item, selector, left, met, failed)
            left = met
        return left

    def _evaluated(
        self, expression: str, candidates: Sequence[Candidate]
    ) -> tuple[tuple[Candidate, ...], list[tuple[Candidate, str]]] | None:
        """Who meets an expression, and on whom it fails, with the words of the failure; None if it cannot be evaluated."""
        met, failed = [], []
        try:
            selector = self._compiler.compile(expression, DEFAULT_1_37)
            for candidate in candidates:
                try:
                    if selector.matches(*candidate):
                        met.append(candidate)
                except CelRuntimeError as error:
                    failed.append((candidate, str(error)))
        except CelError:
            return None
        return tuple(met), failed

    def _tell(
        self,
        item: Item,
        selector: _Selector,
        before: Sequence[Candidate],
        met: Sequence[Candidate],
        failed: Sequence[tuple[Candidate, str]],
    ) -> None:
        path = selector.path
        if path is None or item.is_told(path) or _explained(item, path):
            return
        among = f"{len(before)} published device{'s' if len(before) != 1 else ''}"
        if len(before) != sum(1 for _ in self._known.devices()):
            among += " that the selectors before it let through"
        if failed:
            (slice_, device), why = failed[0]
            where = f"{slice_.spec.driver}/{slice_.spec.pool.name}/{device.name}"
            short = why.partition(". consider")[0].removeprefix("CEL: ")
            message = f"fails on {len(failed)} of the {among}, such as {where}: {short}"
            part = missing(selector.expression, short)
            remedy = mending(selector.expression, short, device, slice_.spec.driver, self._known.published)
            item.tell("FailsOnDevices", path, message, remedy=remedy, part=part)
        elif not met:
            message = f"none of the {among} meets it"
            item.tell("MatchesNothing", path, message, remedy=instead(selector.expression, before))

    # --- constraints and config

    def _constraints(self, item: Item, devices: Obj, at: Path, chosen: Sequence[Chosen]) -> None:
        for index, constraint in enumerate(_objects(devices.get("constraints"))):
            for field in ("matchAttribute", "distinctAttribute"):
                name = constraint.get(field)
                path = (*at, "constraints", index, field)
                if name and "/" in name and not item.is_told(path):
                    self._attribute(item, path, name, _meant_by(constraint.get("requests"), chosen))

    def _attribute(self, item: Item, path: Path, name: str, chosen: Sequence[Chosen]) -> None:
        domain, _, identifier = name.partition("/")
        without = [
            one
            for one in chosen
            if one.devices and all((domain, identifier) not in _attributes(each) for each in one.devices)
        ]
        if without:
            have = {f"{d}/{n}" for one in without for each in one.devices or () for d, n in _attributes(each)}
            near = akin(name, have)
            remedy = f"did you mean `{near}`?" if near else ""
            requests = f"request{'s' * (len(without) > 1)} {', '.join(one.request for one in without)}"
            message = f"no published device that {requests} can get has the attribute {name}"
            item.tell("ConstraintUnmet", path, message, remedy=remedy)
            return
        published = self._known.published.names["attributes"]
        if identifier in published.get(domain, ()):
            return
        every = {f"{d}/{n}" for d, names in published.items() for n in names}
        near = nearest(name, every)
        if every and (near or "ResourceSlice" in self._known.whole):
            remedy = f"did you mean `{near}`?" if near else ""
            item.tell(
                "UnknownAttribute", path, f"no published device has the attribute {name}", remedy=remedy
            )

    def _config(self, item: Item, devices: Obj, at: Path, chosen: Sequence[Chosen]) -> None:
        for index, config in enumerate(_objects(devices.get("config"))):
            driver = dig(config, "opaque", "driver")
            path = (*at, "config", index, "opaque", "driver")
            if driver and not item.is_told(path):
                self._driver(item, path, str(driver), _meant_by(config.get("requests"), chosen))

    def _driver(self, item: Item, path: Path, driver: str, chosen: Sequence[Chosen]) -> None:
        possible: set[str] = set()
        for one in chosen:
            if one.drivers is not None:
                possible |= one.drivers
            elif one.devices:
                possible |= {slice_.spec.driver for slice_, _ in one.devices}
            else:
                possible = set()
                break
        spoken_of = {*self._known.published.drivers, *self._class_drivers()}
        if driver in (possible or spoken_of):
            return
        near = nearest(driver, possible or spoken_of)
        remedy = f"did you mean `{near}`?" if near else f"devices can be of {listed(sorted(possible), NAMED)}"
        if possible:
            message = f"no request of it can get a device of driver {driver}: nobody reads this config"
            item.tell("ConfigNotUsed", path, message, remedy=remedy)
        elif near:
            item.tell(
                "UnknownDriver",
                path,
                f"no device of driver {driver} is published or spoken of",
                remedy=remedy,
            )

    def _class_drivers(self) -> set[str]:
        texts = [
            one.cel.expression
            for found in self._known.classes.values()
            for one in found.spec.selectors
            if one.cel
        ]
        return {str(one.value) for text in texts for one in facts(text).equalities if one.what == "driver"}


def _objects(value: object) -> list[Obj]:
    """Items of a list, each at its own number."""
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _explained(item: Item, path: Path) -> bool:
    """Whether a finding tells already why nothing meets the expression there."""
    return _has(item, path, _EXPLAINING)


def _has(item: Item, path: Path, codes: Collection[str]) -> bool:
    place = item.place(path)
    return any(one.code in codes and one.path == place for one in item.found)


def _selectors(holder: Obj, path: Path) -> Iterator[_Selector]:
    for index, selector in enumerate(_objects(holder.get("selectors"))):
        expression = dig(selector, "cel", "expression")
        if expression:
            yield _Selector(expression, (*path, "selectors", index, "cel", "expression"))


def _forms(devices: Obj, at: Path) -> Iterator[tuple[str, Path, Obj]]:
    for index, request in enumerate(_objects(devices.get("requests"))):
        path = (*at, "requests", index)
        name = str(request.get("name") or "")
        if isinstance(request.get("exactly"), dict):
            yield name, (*path, "exactly"), request["exactly"]
        for number, sub in enumerate(_objects(request.get("firstAvailable"))):
            yield f"{name}/{sub.get('name')}", (*path, "firstAvailable", number), sub


def _drivers(selectors: Iterable[_Selector]) -> frozenset[str] | None:
    found = {
        str(one.value)
        for selector in selectors
        for one in facts(selector.expression).equalities
        if one.what == "driver"
    }
    return frozenset(found) or None


def _contradicts(item: Item, selectors: Sequence[_Selector]) -> bool:
    """Whether selectors exclude each other whatever the device; tells of the later of two."""
    seen: dict[str, tuple[object, bool]] = {}
    for selector in selectors:
        known = facts(selector.expression)
        if known.denials:
            if selector.path is not None and not item.is_told(selector.path):
                message = "insists on `false`: no device can ever meet it"
                part = (known.denials[0], len("false"))
                item.tell("NeverTrue", selector.path, message, remedy=_NO_DENIAL, part=part)
            return True
        for one in known.equalities:
            value, of_class = seen.setdefault(one.what, (one.value, selector.path is None))
            if type(value) is type(one.value) and value == one.value:
                continue
            if (
                selector.path is not None
                and not item.is_told(selector.path)
                and not _explained(item, selector.path)
            ):
                other = " by its class" if of_class else ""
                message = f"{one.what} has to be {shown(value)}{other} and {shown(one.value)}: no device can ever meet both"
                near = one.what == "driver" and nearest(str(one.value), [str(value)])
                remedy = f"did you mean `{near}`?" if near else ""
                item.tell("NeverTrue", selector.path, message, remedy=remedy, part=(one.start, one.length))
            return True
    return False


def _fall_back(item: Item, chosen: Iterable[Chosen]) -> None:
    """Forget which alternatives nothing meets, unless no alternative of the request can be met: falling back is what they are for."""
    groups: dict[Path, list[Chosen]] = {}
    for one in chosen:
        if one.path[-2] == "firstAvailable":
            groups.setdefault(one.path[:-1], []).append(one)
    for path, group in groups.items():
        if not all(one.devices == () or _is_hopeless(item, one.path) for one in group):
            below = f"{item.place(path)}["
            item.found[:] = [
                one for one in item.found if one.code != "MatchesNothing" or not one.path.startswith(below)
            ]


def _is_hopeless(item: Item, path: Path) -> bool:
    below = f"{item.place(path)}."
    return any(one.code in _HOPELESS and one.path.startswith(below) for one in item.found)


def _attributes(candidate: Candidate) -> set[tuple[str, str]]:
    slice_, device = candidate
    return {split(name, slice_.spec.driver) for name in device.attributes}


def _meant_by(requests: object, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Those that a constraint or config is about: all without names, else by request or by request and alternative."""
    names = [name for name in requests if isinstance(name, str)] if isinstance(requests, list) else []
    if not names:
        return list(chosen)
    return [one for one in chosen if one.request in names or one.request.partition("/")[0] in names]


def _count(item: Item, devices: Obj, at: Path) -> None:
    """Whether more devices are asked for than a claim can hold; of alternatives the smallest counts."""
    total = 0
    for request in _objects(devices.get("requests")):
        exactly = request.get("exactly")
        forms = [exactly] if isinstance(exactly, dict) else _objects(request.get("firstAvailable"))
        counts = [form.get("count") if form.get("allocationMode") == "ExactCount" else 0 for form in forms]
        total += min((count for count in counts if isinstance(count, int)), default=0)
    if total > MOST_DEVICES:
        message = f"asks for {total} devices, and a claim can hold {MOST_DEVICES}"
        item.tell("TooManyDevices", (*at, "requests"), message, at_key=True)


def _tolerations(item: Item, form: Obj, path: Path) -> None:
    for index, toleration in enumerate(_objects(form.get("tolerations"))):
        here = (*path, "tolerations", index)
        if (
            toleration
            and not toleration.get("key")
            and toleration.get("operator") == "Equal"
            and not item.is_told(here)
        ):
            message = "without a key, operator Equal (the default) matches no taint"
            item.tell("TolerationUseless", here, message)
