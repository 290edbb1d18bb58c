"""Sentences about what somebody wrote wrong: the object, the path in it, what is wrong, what to do.

Used by `Placer`, `Intake` and `Rules`, where the facts are. Errors of the allocator are in upstream's words, for the sake of sameness; here
they become what a user reads, shortened to fit an event with all around it. It must not decide anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelUnsupported, InvalidClaim
from dra_operator.features import feature_name
from dra_operator.model import ADMIN_ACCESS
from dra_operator.words import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.errors import (
        CelError,
        DraError,
        FeatureUnsupported,
        InvalidInput,
        InvalidPod,
        Spot,
        WorkLimitReached,
    )
    from dra_operator.model import DeviceSubRequest, ExactDeviceRequest, ResourceClaim

    Form = ExactDeviceRequest | DeviceSubRequest

MAX_DETAIL: Final = 360
"""Characters of an error in a message: an event holds 1024 bytes, names and paths take some, and some characters are several.
Arbitrary below that."""

MAX_SENTENCE: Final = 600
"""Characters of a sentence that names objects, before its next step. Names are 253 characters at most; again arbitrary below the limit."""

BY_KUBE_SCHEDULER: Final = "ask for devices of a pool that no AllocationPolicy owns: kube-scheduler allocates them (kubectl get allocationpolicies, or ask an admin)"
"""The way around the operator. The gate does not matter: a pod that wants nothing of ours is released."""

REWRITE: Final = "A claim's spec cannot be edited: correct the template or manifest, then delete and create claim and pod anew"
"""The next step for a claim that can never be allocated as written."""

DO_WITHOUT: Final = (
    f"Leave that out of the template or manifest and create claim and pod anew, or {BY_KUBE_SCHEDULER}"
)
"""The next step for a claim that uses what is not built."""

EDIT_CLASS: Final = "Correct the class: the pod goes on by itself"
"""The next step for a selector of a class, which can be edited."""

WITHOUT: Final = "Write the selector without it"
"""The next step for a selector that the engine does not evaluate."""

NO_ATTRIBUTES: Final = "That device publishes no attributes at all: look at its ResourceSlice, which may have been written for another version of the API"
"""What the API server makes of a v1beta1 body under a v1 header: it drops what it does not know."""

_COMPILE_FAULT: Final = re.compile(
    r"compilation failed: ERROR: <input>:(\d+):(\d+): (.*?)\n \| (.*?)(?:\n|$)", re.DOTALL
)
HIDDEN: Final = "With .? or has(), a wrong name just never matches"
"""What upstream's advice after such a failure leaves out."""

_MISSING_KEY: Final = re.compile(r"no such key: ([^\s.]+)")
_NEAR: Final = (24, 12)
"""Characters shown before and after the column of a compile error. Arbitrary: enough to find the place."""


def forms(claim: ResourceClaim) -> Iterator[tuple[str, str, Form]]:
    """Path, name as results carry it (`gpu`, `gpu/big`) and content of all forms in which a claim's requests can be had."""
    for index, request in enumerate(claim.spec.devices.requests):
        path = f"spec.devices.requests[{index}]"
        if request.first_available:
            for number, sub in enumerate(request.first_available):
                yield f"{path}.firstAvailable[{number}]", f"{request.name}/{sub.name}", sub
        elif request.exactly is not None:
            yield f"{path}.exactly", request.name, request.exactly


def class_missing(claim: ResourceClaim, path: str, name: str, class_name: str, classes: Iterable[str]) -> str:
    """A request names a class that is not among the classes."""
    found = nearest(class_name, classes)
    meant = f" (did you mean {found}?)" if found else ""
    sentence = (
        f"ResourceClaim {claim.key}: {path}.deviceClassName: DeviceClass {class_name}, which request {name} asks for, does not "
        f"exist{meant}"
    )
    return (
        f"{shortened(sentence, MAX_SENTENCE)}: create it, and the pod goes on by itself, or name another in the template or manifest "
        "and create claim and pod anew"
    )


def admin_access_forbidden(claim: ResourceClaim, path: str) -> str:
    """A request looks at devices that others use, where that is not allowed (any longer)."""
    namespace = claim.metadata.namespace
    return (
        f"ResourceClaim {claim.key}: {path}.adminAccess: Namespace {namespace} lacks the label {ADMIN_ACCESS}=true, without which the "
        "API server takes no allocation with admin access: have an admin label it, and the pod goes on by itself, or leave adminAccess out"
    )


def invalid_claim(error: InvalidInput) -> str:
    """A claim that can never be allocated as written."""
    if not isinstance(error, InvalidClaim) or not error.claim:
        return f"{shortened(str(error))}. {REWRITE}"
    return (
        f"{shortened(f'ResourceClaim {error.claim}: {error.path}: {error.plain}', MAX_SENTENCE)}. {REWRITE}"
    )


def invalid_pod(error: InvalidPod) -> str:
    """A pod that kube-scheduler will not place as written."""
    return f"{shortened(str(error))}. Correct the pod's template or manifest, then recreate the pod"


def unsupported(error: FeatureUnsupported) -> str:
    """A claim that uses what is not built."""
    needs = f"needs {feature_name(error.feature)}, which this release does not allocate"
    return f"{shortened(error.what, MAX_SENTENCE)}: {needs}. {DO_WITHOUT}"


def selector_failed(error: CelError, claim: str = "", path: str = "") -> str:
    """A selector that does not compile, fails, or cannot be evaluated, with the next step.

    Args:
        error: from the allocator or the census.
        claim: `namespace/name` for errors that claims share; else the error knows it.
        path: of the form of the request in that claim.
    """
    spot = error.spot
    of_claim = spot is not None and not spot.ref.startswith("DeviceClass ")
    step = REWRITE if of_claim else EDIT_CLASS
    without = f"{WITHOUT}. " if isinstance(error, CelUnsupported) else ""
    return f"{selector_fault(error, claim, path)}. {without}{step}"


def selector_fault(error: CelError, claim: str = "", path: str = "") -> str:
    """The same without the next step."""
    spot = error.spot
    if spot is None:
        return shortened(str(error))
    ref = spot.ref or (f"ResourceClaim {claim}" if claim else "")
    where = ": ".join(filter(None, (ref, f"{path}.{spot.path}" if not spot.ref and path else spot.path)))
    detail = shortened(plain_cel(spot.detail))
    if isinstance(error, CelUnsupported):
        return f"{where}: {detail}"
    if spot.bare:
        detail = f"{detail}. {NO_ATTRIBUTES}"
    detail += _meant(spot)
    return f"{where}: fails on device {spot.device}: {detail}" if spot.device else f"{where}: {detail}"


def _meant(spot: Spot) -> str:
    """What was probably meant by a key that the device does not have, and why a guard is no remedy for a wrong one."""
    missing = _MISSING_KEY.match(spot.detail.removeprefix("CEL: "))
    if missing is None or spot.bare:
        return ""
    key = missing[1]
    names = {qualified.rpartition("/")[2]: qualified for qualified in spot.published}
    if key in names:
        return f". The device publishes {names[key]}: look at the domain, and at whether it is an attribute or a capacity"
    found = nearest(key, names)
    return f". {f'Did you mean {found}? ' if found else ''}{HIDDEN}"


def costly(error: WorkLimitReached, claims: Iterable[ResourceClaim]) -> tuple[str, str]:
    """What a user reads whose selectors take more work than one decision may do, and the claim that is named, `namespace/name`.

    Args:
        error: with the selector at which the work ended, if it was at one.
        claims: those of the pod that are to be allocated.
    """
    where, claim = _work_ended(error.spot, tuple(claims))
    text = (
        f"{shortened(where, MAX_SENTENCE)}: the selectors take more work than a pod gets at a time. What is found is kept, and the pod goes on "
        "by itself, after others. Fewer or simpler selectors in the template or manifest (claim and pod created anew) are served sooner"
    )
    return text, claim


def _work_ended(spot: Spot | None, claims: Sequence[ResourceClaim]) -> tuple[str, str]:
    """The place of a selector, and its claim; claims share answers, so the place is looked for by the text of the expression."""
    kind, _, name = (spot.ref if spot else "").partition(" ")
    for claim in claims:
        for path, _, form in forms(claim):
            if kind == "DeviceClass" and form.device_class_name == name and spot:
                return (
                    f"ResourceClaim {claim.key}: {path}.deviceClassName: DeviceClass {name}: {spot.path}",
                    claim.key,
                )
            texts = [selector.cel.expression if selector.cel else "" for selector in form.selectors]
            if kind != "DeviceClass" and spot and spot.detail in texts:
                index = texts.index(spot.detail)
                return f"ResourceClaim {claim.key}: {path}.selectors[{index}].cel.expression", claim.key
    key = claims[0].key if claims else ""
    return (f"ResourceClaim {key}: spec.devices.requests" if key else "the pod's claims"), key


def plain_cel(detail: str) -> str:
    """A failure of an expression in one line: upstream's picture of the first fault becomes line, column and the text there."""
    fault, _, hints = detail.partition("\nhint: ")
    hint = f" ({hints.partition(chr(10))[0]})" if hints else ""
    found = _COMPILE_FAULT.match(fault)
    if found is None:
        return fault.removeprefix("CEL: ") + hint
    row, column, message, line = found.groups()
    at, (before, after) = int(column) - 1, _NEAR
    near = line[max(0, at - before) : at + after].strip()
    return f"does not compile at line {row}, column {column} (near `{near}`): {message}{hint}"


def shortened(text: str, limit: int = MAX_DETAIL) -> str:
    """Without line breaks, and short enough for an event with words around it."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def one_line(error: DraError) -> str:
    """The error's own words, shortened."""
    return shortened(str(error))
