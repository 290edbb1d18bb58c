"""What is known beside the object that is looked at: what the other documents say, and the cluster, if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dra_operator.errors import InvalidObject
from dra_operator.model import (
    DeviceClass,
    Namespace,
    PoolId,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Value,
    from_object,
    metadata_of,
)
from dra_operator.validation.objects import dicts, dig

from .gates import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.model import Device
    from dra_operator.validation.objects import Obj

    from .objects import Item

V = TypeVar("V", bound=Value)


@dataclass(slots=True)
class Published:
    """Names that devices publish.

    Attributes:
        names: `attributes` or `capacity` → domain → names without it.
        drivers: of the devices.
    """

    names: dict[str, dict[str, set[str]]] = field(default_factory=lambda: {"attributes": {}, "capacity": {}})
    drivers: set[str] = field(default_factory=set)

    @property
    def domains(self) -> set[str]:
        """Of all names, and the drivers', in which names without a domain are."""
        return {*self.drivers, *self.names["attributes"], *self.names["capacity"]}

    def add(self, slice_: ResourceSlice) -> None:
        """Take in the devices of a slice."""
        driver = slice_.spec.driver
        self.drivers.add(driver)
        for device in slice_.spec.devices:
            for kind, entries in (("attributes", device.attributes), ("capacity", device.capacity)):
                for name in entries:
                    domain, identifier = split(name, driver)
                    self.names[kind].setdefault(domain, set()).add(identifier)


def split(name: str, driver: str) -> tuple[str, str]:
    """Domain and rest of a name; without a domain it is in that of the driver."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


@dataclass(slots=True)
class Known:
    """Objects by name (`namespace/name` where they have one).

    Attributes:
        namespace: of objects that name none; empty if it is not known.
        whole: kinds of which all are known, as the cluster has told them. Of others, what is not known may well exist.
        gates: feature gates of the API server that are on.
        driver_names: of drivers that are only spoken of, by selectors of classes.
    """

    classes: dict[str, DeviceClass] = field(default_factory=dict)
    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    templates: dict[str, ResourceClaimTemplate] = field(default_factory=dict)
    slices: dict[str, ResourceSlice] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    namespace: str = ""
    whole: frozenset[str] = frozenset()
    gates: frozenset[str] = DEFAULT
    published: Published = field(default_factory=Published)

    def take(self, value: Value) -> None:
        """Take in an object; one of the same name gives way."""
        metadata = metadata_of(value)
        key = f"{metadata.namespace or self.namespace}/{metadata.name}"
        match value:
            case DeviceClass():
                self.classes[metadata.name] = value
            case ResourceSlice():
                self.slices[metadata.name or f"#{len(self.slices)}"] = value
            case ResourceClaim():
                self.claims[key] = value
            case ResourceClaimTemplate():
                self.templates[key] = value
            case Namespace():
                self.namespaces[metadata.name] = value

    def take_items(self, items: Iterable[Item]) -> None:
        """Take in what documents hold; what cannot be decoded is left out."""
        for item in items:
            if item.is_dra and item.kind in _MODELS:
                self._take_raw(
                    _MODELS[item.kind], _decodable(item.obj) if item.kind == "ResourceSlice" else item.obj
                )
            elif item.kind == "Namespace" and item.api_version == "v1":
                self._take_raw(Namespace, item.raw)

    def _take_raw(self, wanted: type[Value], raw: Any) -> None:
        try:
            self.take(from_object(wanted, raw))
        except InvalidObject:
            return

    def publish(self) -> None:
        """Collect the names that devices publish; to be asked for once all is taken in."""
        self.published = Published()
        for slice_ in self.slices.values():
            self.published.add(slice_)

    def devices(self) -> Iterator[tuple[ResourceSlice, Device]]:
        """All devices."""
        for slice_ in self.slices.values():
            for device in slice_.spec.devices:
                yield slice_, device

    def pool(self, pool: PoolId, generation: int) -> list[ResourceSlice] | None:
        """The slices of a generation of a pool, if all of them are known."""
        found = [
            slice_
            for slice_ in self.slices.values()
            if slice_.pool_id == pool and slice_.spec.pool.generation == generation
        ]
        return found if found and len(found) == found[0].spec.pool.resource_slice_count else None


def _decodable(slice_: Obj) -> Obj:
    """The same without capacities that lost their amount: a mistake in one device must not hide the others."""
    spec = slice_.get("spec") or {}
    devices = []
    for device in dicts(spec.get("devices")):
        capacity = {
            name: one for name, one in (device.get("capacity") or {}).items() if dig(one, "value") is not None
        }
        if device.get("name"):
            devices.append({**device, "capacity": capacity})
    return {**slice_, "spec": {**spec, "devices": devices}}


_MODELS: dict[str, type[Value]] = {
    "DeviceClass": DeviceClass,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceSlice": ResourceSlice,
}
