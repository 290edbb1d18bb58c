"""The one seam where objects of the API become values of the model.

Feeds hand in raw JSON (bytes) or already parsed objects (Kopf); each (group version, kind) has one decoder. Other versions of
`resource.k8s.io` will convert to the v1 form here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dra_operator.errors import InvalidObject, InvalidQuantity
from dra_operator.quantity import Quantity

from .claims import ResourceClaim, ResourceClaimTemplate
from .devices import DeviceClass, DeviceTaintRule, ResourceSlice
from .namespaces import Namespace
from .nodes import Node
from .podgroups import PodGroup
from .pods import Pod
from .policy import AllocationPolicy
from .volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

if TYPE_CHECKING:
    from .meta import Value

KINDS: dict[str, type[Value]] = {
    "AllocationPolicy": AllocationPolicy,
    "CSIDriver": CSIDriver,
    "CSINode": CSINode,
    "CSIStorageCapacity": CSIStorageCapacity,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
    "Namespace": Namespace,
    "Node": Node,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "Pod": Pod,
    "PodGroup": PodGroup,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceSlice": ResourceSlice,
    "StorageClass": StorageClass,
    "VolumeAttachment": VolumeAttachment,
}
"""Kind → its value type. All of `resource.k8s.io/v1`, core/v1 and our own v1alpha1; PodGroups in any version."""

OPAQUE = frozenset({"parameters", "data"})
"""Members that belong to drivers: nulls in them mean something to somebody else."""

QUANTITIES = 1024
"""Amounts that are kept: the devices of a kind, and the pods of a template, have the same."""

V = TypeVar("V")


@lru_cache(maxsize=QUANTITIES)
def _quantity(text: str) -> Quantity:
    return Quantity.parse(text)


def decode_hook(wanted: type[Any], raw: object) -> object:
    """Decode the types that JSON does not know: quantities, from strings or numbers.

    Raises:
        ValueError: msgspec turns it into a ValidationError that carries the path.
    """
    if wanted is Quantity:
        try:
            return _quantity(raw.strip()) if isinstance(raw, str) else Quantity.parse(raw)
        except InvalidQuantity as error:
            raise ValueError(str(error)) from error
    raise NotImplementedError(wanted)


def encode_hook(value: object) -> object:
    """Encode quantities in canonical form."""
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(type(value))


def from_json(wanted: type[V], raw: bytes | str) -> V:
    """Decode one object from JSON text.

    Raises:
        InvalidObject: with the path of what does not fit.
    """
    try:
        try:
            return msgspec.json.decode(raw, type=wanted, strict=True, dec_hook=decode_hook)
        except msgspec.ValidationError:
            parsed = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise _invalid(wanted, error) from error
    except RecursionError as error:
        raise InvalidObject(wanted.__name__, "", "nested too deeply") from error
    return from_object(wanted, parsed)


def from_object(wanted: type[V], raw: object) -> V:
    """Decode one object from parsed JSON (dicts, lists, scalars).

    Raises:
        InvalidObject: with the path of what does not fit.
    """
    try:
        return _convert(wanted, raw)
    except msgspec.ValidationError:
        return _without_nulls_converted(wanted, raw)


def _convert(wanted: type[V], raw: object) -> V:
    return msgspec.convert(raw, type=wanted, strict=True, dec_hook=decode_hook)


def _without_nulls_converted(wanted: type[V], raw: object) -> V:
    """A second try, with nulls read as absent, as Go reads them. Only the rare object that has such nulls pays for it."""
    try:
        return _convert(wanted, without_nulls(raw))
    except msgspec.ValidationError as error:
        raise _invalid(wanted, error, _reference(raw)) from error


def without_nulls(raw: Any) -> Any:
    """The same JSON without members that are null; what is opaque to Kubernetes is left as it is."""
    if isinstance(raw, str | int | float):  # most of them: what follows costs more
        return raw
    if isinstance(raw, dict | Mapping):
        return {
            name: value if name in OPAQUE else without_nulls(value)
            for name, value in raw.items()
            if value is not None
        }
    return [without_nulls(item) for item in raw] if isinstance(raw, list | tuple) else raw


def to_object(value: Value) -> dict[str, Any]:
    """The JSON form of a value (dicts, lists, scalars), defaults left out."""
    encoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value, enc_hook=encode_hook))
    return encoded


def _reference(raw: object) -> str:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(metadata, Mapping):
        return ""
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return f"{namespace}/{name}" if namespace else str(name)


def _invalid(wanted: type[Any], error: msgspec.DecodeError, name: str = "") -> InvalidObject:
    message, _, path = str(error).partition(" - at `$")
    return InvalidObject(f"{wanted.__name__} {name}".strip(), path.rstrip("`").lstrip("."), message)
