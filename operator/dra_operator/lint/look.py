"""One look at everything: documents in, findings out, in the order of the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.words import akin

from . import others
from .findings import CODES, ERROR, Finding
from .gates import DEFAULT
from .known import Known
from .matching import Matcher
from .names import pod_claims
from .objects import GROUP, KINDS, Item, items, pod_specs
from .refused import pod_refused, refused
from .shape import claim_path, pod_shape, shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.validation.objects import Obj

    from .texts import Document


def look(documents: Iterable[Document], known: Known | None = None) -> list[Finding]:
    """What is wrong with the objects in some documents.

    Args:
        documents: as `texts.documents` reads them.
        known: what a cluster tells; it is added to.
    """
    known = known or Known()
    found: list[list[Finding]] = []
    fitting: list[Item] = []
    for document in documents:
        found.append(_faults(document))
        if document.value is None:
            continue
        for item in items(document):
            found.append(item.found)
            item.gates = known.gates
            if _is_object(item) and (not item.is_dra or shaped(item)):
                fitting.append(item)
    known.take_items(fitting)
    known.publish()
    matcher = Matcher(known)
    for item in fitting:
        _one(item, known, matcher)
    return [finding for group in found for finding in sorted(group, key=_order)]


def taken(
    documents: Iterable[Document], complete: Callable[[Obj], None], gates: frozenset[str] = DEFAULT
) -> tuple[list[Item], list[Finding]]:
    """The objects that the API server would take, and what is wrong with those that it would not; nothing is compared with other objects.

    Args:
        documents: as `texts.documents` reads them.
        complete: called with the v1 form of each object of `resource.k8s.io`, to fill in what only a cluster knows.
        gates: feature gates of the API server that are on; fields of others are left out of the objects.
    """
    found: list[Finding] = []
    sound: list[Item] = []
    for document in documents:
        found += _faults(document)
        for item in items(document) if document.value is not None else ():
            item.gates = gates
            if _is_object(item) and (not item.is_dra or shaped(item)):
                complete(item.obj)
                _refused(item)
                if all(finding.severity != ERROR for finding in item.found):
                    sound.append(item)
            found += sorted(item.found, key=_order)
    return sound, found


def _refused(item: Item) -> None:
    if item.is_dra:
        refused(item)
        return
    for path, spec in pod_specs(item.raw):
        pod_refused(item, path, pod_shape(item, path, spec))


def _order(finding: Finding) -> tuple[int, int]:
    return finding.line, finding.column


def _faults(document: Document) -> list[Finding]:
    item = Item(document, (), {})
    for fault in document.faults:
        source = document.lines[fault.span.line] if fault.span.line < len(document.lines) else ""
        place = fault.span
        item.found.append(
            Finding(
                fault.code,
                document.file,
                place.line + 1,
                place.column + 1,
                max(place.end_column, place.column + 1) + 1,
                "",
                "",
                "",
                "",
                fault.message,
                fault.remedy or CODES[fault.code].remedy,
                source,
            )
        )
    return item.found


def _is_object(item: Item) -> bool:
    missing = [name for name in ("apiVersion", "kind") if not isinstance(item.raw.get(name), str)]
    if item.is_inner_list:
        remedy = "put its items into the outer List"
        item.tell("NotAnObject", ("kind",), "is a List within a List, which kubectl refuses", remedy=remedy)
        return False
    if item.is_broken_list:
        remedy = "write the objects as a list under `items`"
        item.tell("NotAnObject", ("items",), "is no list of objects", remedy=remedy)
        return False
    if not item.raw:
        item.tell("NotAnObject", (), "is no object")
    elif missing:
        item.tell("NotAnObject", (), f"has no {' and no '.join(missing)}")
    elif item.api_version.partition("/")[0] == GROUP and not item.is_dra and item.kind not in _LEFT_ALONE:
        near = akin(item.kind, KINDS)
        remedy = f"did you mean `{near}`?" if near else f"there are: {', '.join(KINDS)}"
        remedy = _GONE.get(item.kind, remedy)
        item.tell("UnknownVersion", ("kind",), f"{GROUP} has no kind {item.kind}", remedy=remedy)
    elif item.kind in KINDS and not item.is_dra:
        _other_group(item)
    return bool(item.raw) and not missing


def _other_group(item: Item) -> None:
    """A kind of ours in what is nearly our group, or in none."""
    group = item.api_version.rpartition("/")[0]
    if not group or akin(group, [GROUP]):
        message = f"{item.api_version} has no kind {item.kind}"
        item.tell("UnknownVersion", ("apiVersion",), message)


_GONE = {
    "ResourceClass": "it became `DeviceClass` with Kubernetes 1.31",
    "ResourceClassParameters": "since Kubernetes 1.31, `config` and `selectors` stand in the DeviceClass itself",
    "ResourceClaimParameters": "since Kubernetes 1.31, requests and `config` stand in the claim itself",
    "PodSchedulingContext": "it went with Kubernetes 1.32: leave it out",
}
_LEFT_ALONE = frozenset({"ResourcePoolStatusRequest", "DevicePoolStatus"})


def _one(item: Item, known: Known, matcher: Matcher) -> None:
    if not item.is_dra:
        for path, spec in pod_specs(item.raw):
            shape = pod_shape(item, path, spec)
            pod_refused(item, path, shape)
            pod_claims(item, path, shape, known)
        return
    refused(item)
    match item.kind:
        case "DeviceClass":
            matcher.class_(item)
        case "ResourceSlice":
            others.slice_(item, known)
        case "DeviceTaintRule":
            others.rule(item, known)
        case _:
            path = claim_path(item.kind)
            others.admin_access(item, path, known)
            matcher.claim(item, path)
