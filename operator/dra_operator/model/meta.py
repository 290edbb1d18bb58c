"""Object metadata, and the struct settings that every value of the model shares.

All values are frozen msgspec structs whose JSON names are Kubernetes' own. Fields that nobody reads are left out on purpose
(managedFields above all): objects are kept by the ten thousand. Never send such a value back as a whole object: unknown
fields would be lost; writes are patches.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import msgspec


class Value(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all model values: frozen, camelCase in JSON, defaults left out when encoded."""


class OwnerReference(Value, frozen=True):
    """Who owns an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Value, frozen=True):
    """The part of `metadata` that decisions read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    generate_name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Kubernetes(Protocol):
    """Any whole object of the API; every value in `decode.KINDS` is one."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""
        ...


def metadata_of(obj: Value) -> ObjectMeta:
    """The metadata of a whole object whose kind does not matter."""
    return cast("Kubernetes", obj).metadata


class Condition(Value, frozen=True):
    """A condition of an object's status; times are RFC 3339 text as the API server sends it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


JsonObject = dict[str, Any]
"""Opaque JSON (driver parameters): carried, never read."""
