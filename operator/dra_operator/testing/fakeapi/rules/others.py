"""Validation of kinds with a rule or two: namespaces, leases, custom resource definitions.

Called through `strategies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import bad_request
from dra_operator.testing.fakeapi.objects import dicts, dig, meta
from dra_operator.validation.checks import wrong

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.objects import Obj
    from dra_operator.validation.causes import Cause

_NO_INT = (
    'Lease in version "v1" cannot be handled as a Lease: json: cannot unmarshal string into Go struct field'
    " LeaseSpec.spec.leaseDurationSeconds of type int32"
)
UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that may not be deleted."""


def check_namespace(obj: Obj) -> list[Cause]:
    """The name is a label."""
    name = meta(obj).get("name", "")
    return [wrong("metadata.name", name, "must not contain dots")] if "." in name else []


def check_lease(obj: Obj) -> list[Cause]:
    """Durations and counts.

    Raises:
        StatusError: 400, no number.
    """
    duration, transitions = dig(obj, "spec", "leaseDurationSeconds"), dig(obj, "spec", "leaseTransitions")
    causes = []
    if not isinstance(duration, int | None):
        raise bad_request(_NO_INT)
    if duration is not None and duration <= 0:
        causes.append(wrong("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        causes.append(wrong("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return causes


def check_lease_update(new: Obj, _old: Obj) -> list[Cause]:
    """As for a new one."""
    return check_lease(new)


def check_definition(obj: Obj) -> list[Cause]:
    """The name follows from plural and group, and one version is stored."""
    spec = obj.get("spec") or {}
    name = meta(obj).get("name", "")
    causes = []
    if name != f"{dig(spec, 'names', 'plural')}.{spec.get('group')}":
        causes.append(wrong("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    stored = [version for version in dicts(spec.get("versions")) if version.get("storage")]
    if len(stored) != 1:
        detail = "must have exactly one version marked as storage version"
        causes.append(wrong("spec.versions", spec.get("versions") or [], detail))
    return causes
