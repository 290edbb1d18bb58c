"""Options of write requests, read from query and body.

Called by `http`; `machinery` takes the result. In-process callers (stand-ins, tests) build them directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi import failures
from dra_operator.validation.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dra_operator.testing.fakeapi.access import Asker
    from dra_operator.testing.fakeapi.objects import Obj


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Who writes, and how."""

    manager: str = "fakeapi"
    subresource: str = ""
    force: bool = False
    dry_run: bool = False
    verb: str = "update"
    asker: Asker | None = None
    """Who writes, and what else he may do; None for whoever may do everything."""
    creating: Callable[[], None] | None = None
    """Called when an apply is about to create; raises 403 if the writer may not."""
    validation: str = "Ignore"
    """What becomes of unknown and duplicate fields: Ignore, Warn or Strict."""
    duplicates: Sequence[str] = ()
    """Paths of the fields that the body has twice."""
    warnings: list[str] = field(default_factory=list)
    """Filled while writing; the answer's Warning headers."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions, as far as it is honoured. `grace` of None means the kind's default."""

    grace: int | None = None
    propagation: str = "Background"
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def write_options(query: Mapping[str, str], user_agent: str, subresource: str, verb: str) -> WriteOptions:
    """Options of a create, update or patch; without a field manager the program's name stands in, as on a real server.

    Raises:
        StatusError: 422, a dry run that is none.
    """
    if query.get("dryRun") not in (None, "", "All"):
        text = f'Unsupported value: ["{query["dryRun"]}"]: supported values: "All"'
        about = failures.About("meta.k8s.io", f"{verb.capitalize()}Options")
        raise failures.invalid(about, [Cause("dryRun", "FieldValueNotSupported", text)])
    return WriteOptions(
        manager=query.get("fieldManager") or user_agent.partition("/")[0] or "unknown",
        subresource=subresource,
        force=query.get("force") in ("true", "1"),
        dry_run=query.get("dryRun") == "All",
        verb=verb,
        validation=query.get("fieldValidation") or "Warn",
    )


def delete_options(query: Mapping[str, str], body: Obj) -> DeleteOptions:
    """Options of a delete: the body wins over the query."""
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    preconditions = body.get("preconditions") or {}
    orphan = body.get("orphanDependents")
    legacy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace=None if grace is None else int(grace),
        propagation=body.get("propagationPolicy") or query.get("propagationPolicy") or legacy,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run="All" in (body.get("dryRun") or ()) or query.get("dryRun") == "All",
    )
