"""Names in selectors that nobody publishes, and names of objects that are not there: warnings, as all of it is legal.

Without a cluster, what is not given may well exist: then only what is nearly the name of something given is told, and attributes of drivers whose
slices are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.objects import Obj, dicts, dig
from dra_operator.words import akin, listed, nearest

from . import misplaced
from .lookups import ATTRIBUTES, CAPACITY, facts

if TYPE_CHECKING:
    from dra_operator.model import ResourceClaimSpec

    from .known import Known
    from .lookups import Lookup
    from .objects import Item
    from .places import Path

NAMED = 8
"""Names that a remedy lists."""


def lookups(item: Item, path: Path, expression: str, known: Known) -> None:
    """Tell which names in an expression no device publishes.

    Args:
        item: that the expression stands in.
        path: of the expression.
        expression: its text.
        known: with what is published.
    """
    if not known.published.drivers:
        return
    _drivers(item, path, expression, known)
    insisted = {str(one.value) for one in facts(expression).equalities if one.what == "driver"}
    judged = "ResourceSlice" in known.whole or not insisted or bool(insisted & known.published.drivers)
    wrong = misplaced.misplaced(expression)
    is_refused = any(one.code == "CelInvalid" and one.path == item.place(path) for one in item.found)
    for lookup in facts(expression).lookups:
        is_cut = is_refused and misplaced.is_cut(expression, lookup.start + lookup.length)
        if is_cut or any(one.covers(lookup.start) for one in wrong):
            continue
        if lookup.domain not in known.published.domains:
            if not lookup.name:
                _domain(item, path, lookup, known)
        elif lookup.name:
            _name(item, path, lookup, known, judged=judged)


def _drivers(item: Item, path: Path, expression: str, known: Known) -> None:
    published = known.published.drivers
    for one in facts(expression).drivers:
        near = nearest(str(one.value), published)
        if one.value not in published and near:
            message = f"no ResourceSlice of driver {one.value} is published"
            part = (one.start, one.length)
            item.tell("UnknownDriver", path, message, remedy=f"did you mean `{near}`?", part=part)


def _domain(item: Item, path: Path, lookup: Lookup, known: Known) -> None:
    domains = known.published.domains
    near = nearest(lookup.domain, domains)
    if not near and ("ResourceSlice" not in known.whole or lookup.guarded):
        return
    alike = akin(lookup.domain, domains)
    remedy = f"did you mean `{alike}`?" if alike else f"there are: {listed(sorted(domains), NAMED)}"
    message = f"no published device has attributes or capacities of the domain {lookup.domain}"
    item.tell("UnknownDomain", path, message, remedy=remedy, part=(lookup.start, lookup.length))


def _name(item: Item, path: Path, lookup: Lookup, known: Known, *, judged: bool) -> None:
    here = known.published.names[lookup.map].get(lookup.domain, set())
    if lookup.name in here:
        return
    part = (lookup.start, lookup.length)
    other = CAPACITY if lookup.map == ATTRIBUTES else ATTRIBUTES
    full = f"{lookup.domain}/{lookup.name}"
    one = "attribute" if lookup.map == ATTRIBUTES else "capacity"
    if lookup.name in known.published.names[other].get(lookup.domain, ()):
        form = f'device.{other}["{lookup.domain}"].{lookup.name}'
        published = "a capacity" if other == CAPACITY else "an attribute"
        compared = ", and compare it with `.compareTo(quantity(…))`" if other == CAPACITY else ""
        remedy = f"write `{form}`{compared}"
        item.tell(
            "WrongMap",
            path,
            f"{full} is {published}, not an {one}".replace("an capacity", "a capacity"),
            remedy=remedy,
            part=part,
        )
        return
    near = nearest(lookup.name, here)
    if not near and (lookup.guarded or not judged):
        return
    alike = akin(lookup.name, here)
    remedy = (
        f"did you mean `{alike}`?" if alike else f"there are: {listed(sorted(here), NAMED)}" if here else ""
    )
    count = sum(1 for slice_, _ in known.devices() if slice_.spec.driver == lookup.domain) or sum(
        1 for _ in known.devices()
    )
    code = "UnknownAttribute" if lookup.map == ATTRIBUTES else "UnknownCapacity"
    item.tell(
        code, path, f"the {one} {full} exists on 0 of {count} published devices", remedy=remedy, part=part
    )


# --- objects


def class_name(item: Item, path: Path, name: str, known: Known) -> None:
    """Tell of a class that is not there."""
    if not name or name in known.classes:
        return
    near = nearest(name, known.classes)
    if near or "DeviceClass" in known.whole:
        where = "" if "DeviceClass" in known.whole else " among those given"
        alike = akin(name, known.classes)
        remedy = f"did you mean `{alike}`?" if alike else ""
        item.tell("UnknownClass", path, f"there is no DeviceClass {name}{where}", remedy=remedy)


def pod_claims(item: Item, path: Path, spec: Obj, known: Known) -> None:
    """Tell of claims and templates that a pod names and that are not there, and of requests that containers name and claims have not."""
    namespace = item.namespace or known.namespace
    wanted: dict[str, ResourceClaimSpec] = {}
    for index, entry in enumerate(dicts(spec.get("resourceClaims"))):
        here = (*path, "resourceClaims", index)
        template, claim = entry.get("resourceClaimTemplateName"), entry.get("resourceClaimName")
        if template:
            found = known.templates.get(f"{namespace}/{template}")
            names = [key.partition("/")[2] for key in known.templates if key.startswith(f"{namespace}/")]
            if found is not None:
                wanted[str(entry.get("name"))] = found.spec.spec
            else:
                _missing(
                    item,
                    (*here, "resourceClaimTemplateName"),
                    "ResourceClaimTemplate",
                    template,
                    names,
                    known,
                )
        elif claim:
            held = known.claims.get(f"{namespace}/{claim}")
            names = [key.partition("/")[2] for key in known.claims if key.startswith(f"{namespace}/")]
            if held is not None:
                wanted[str(entry.get("name"))] = held.spec
            else:
                _missing(item, (*here, "resourceClaimName"), "ResourceClaim", claim, names, known)
    _containers(item, path, spec, wanted)


def _missing(item: Item, path: Path, kind: str, name: str, names: list[str], known: Known) -> None:
    near = nearest(name, names)
    whole = kind in known.whole
    if not near and not whole:
        return
    code = "UnknownTemplate" if kind == "ResourceClaimTemplate" else "UnknownClaim"
    where = f" in namespace {item.namespace or known.namespace}" if whole else " among those given"
    item.tell(
        code, path, f"there is no {kind} {name}{where}", remedy=f"did you mean `{near}`?" if near else ""
    )


def _containers(item: Item, path: Path, spec: Obj, wanted: dict[str, ResourceClaimSpec]) -> None:
    for field in ("initContainers", "containers"):
        for number, container in enumerate(dicts(spec.get(field))):
            for index, entry in enumerate(dicts(dig(container, "resources", "claims"))):
                claim = wanted.get(str(entry.get("name")))
                request = entry.get("request")
                if claim is None or not request:
                    continue
                names = [one.name for one in claim.devices.requests]
                if request not in names:
                    near = akin(request, names)
                    here = (*path, field, number, "resources", "claims", index, "request")
                    remedy = (
                        f"did you mean `{near}`?"
                        if near
                        else f"there are: {listed(names, NAMED)}"
                        if names
                        else ""
                    )
                    message = f"the claim {entry.get('name')} has no request {request}"
                    item.tell("UnknownContainerRequest", here, message, remedy=remedy)
