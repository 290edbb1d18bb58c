"""Namespaces, of which only the labels are read: inter-pod affinity chooses namespaces by them (core/v1)."""

from __future__ import annotations

from .meta import ObjectMeta, Value


class Namespace(Value, frozen=True):
    """A namespace."""

    metadata: ObjectMeta
