"""Validation of what a pod says of claims: its list of them, and which containers want which (cp V-131, V-132).

The rest of a pod is not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import dns_label, dns_subdomain, duplicate, repeated, required, wrong
from dra_operator.validation.objects import Obj, dicts, dig

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def check_pod_claims(spec: Obj, path: str) -> list[Cause]:
    """All that a pod's spec says of claims."""
    causes = _check_claims(spec, path)
    known = {str(claim.get("name")) for claim in dicts(spec.get("resourceClaims"))}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(dicts(spec.get(field))):
            entries = dicts(dig(container, "resources", "claims"))
            causes += _check_entries(entries, known, f"{path}.{field}[{index}].resources.claims")
    return causes


def _check_claims(spec: Obj, path: str) -> list[Cause]:
    claims = list(dicts(spec.get("resourceClaims")))
    causes: list[Cause] = []
    for index, claim in enumerate(claims):
        at = f"{path}.resourceClaims[{index}]"
        causes += dns_label(f"{at}.name", claim.get("name"))
        sources = [name for name in _SOURCES if claim.get(name) is not None]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(wrong(at, claim, detail))
        elif not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(wrong(at, claim, detail))
        else:
            causes += dns_subdomain(f"{at}.{sources[0]}", claim[sources[0]])
    return [*causes, *repeated(f"{path}.resourceClaims", [claim.get("name") for claim in claims], ".name")]


def _check_entries(entries: Iterable[Obj], known: set[str], path: str) -> list[Cause]:
    seen: set[tuple[str, str]] = set()
    causes: list[Cause] = []
    for index, entry in enumerate(entries):
        at, name, request = f"{path}[{index}]", entry.get("name") or "", entry.get("request") or ""
        if not name:
            causes.append(required(at))
            continue
        if request:
            causes += dns_label(f"{at}.request", request)
        if (
            (name, "") in seen
            or (name, request) in seen
            or (not request and any(name == other for other, _ in seen))
        ):
            causes.append(duplicate(at, f"{name}/{request}" if request else name))
        seen.add((name, request))
        if name not in known:
            causes.append(_not_found(at, name, known))
    return causes


def _not_found(path: str, name: str, known: set[str]) -> Cause:
    among = f"are: {', '.join(sorted(known))}" if known else "is empty"
    message = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims which {among}'
    return Cause(path, "FieldValueNotFound", message, refers=True)
