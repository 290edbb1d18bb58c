"""Namespaces, of which only the labels are read: inter-pod affinity chooses namespaces by them (core/v1), admin access is allowed by one (cp V-70)."""

from __future__ import annotations

from typing import Final

from .meta import ObjectMeta, Value

ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
"""Label of namespaces; with the value `true` exactly, claims in it may ask for admin access (cp V-70)."""


class Namespace(Value, frozen=True):
    """A namespace."""

    metadata: ObjectMeta

    @property
    def allows_admin_access(self) -> bool:
        """Whether the API server takes allocations with admin access here."""
        return self.metadata.labels.get(ADMIN_ACCESS) == "true"
