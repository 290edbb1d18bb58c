"""Waits until the server answers and the operator may read what it needs, before anything else reads it: missing rights are one line, not one a
feed and try.

Called once by `operator`. Feeds cope with rights that are taken away later; this must not decide anything else.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from dra_operator.errors import ApiError, ApiForbidden, ApiNotFound, ApiNotServed
from dra_operator.kube.discovery import discover
from dra_operator.kube.timing import Retries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dra_operator.kube.api import Api
    from dra_operator.kube.discovery import Served
    from dra_operator.kube.kinds import Kind

logger = logging.getLogger(__name__)

PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between looks; the last one for ever. Arbitrary: whoever has just granted rights does not wait long."""

REMEDY = "apply manifests/base/rbac.yaml, or bind its ClusterRole to this account"


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Whoever is let in at all may ask what he himself may do."""

START_PATIENCE = 50.0
"""Seconds that a server may take, at our start, to answer and to let us in. Less than the 60 of the startup probe in manifests/base: then the
process ends by itself, and its last line says why."""


async def until_discovered(api: Api, patience: float = START_PATIENCE) -> Served:
    """What is served, once the server says so: one that has just started refuses connections, tokens and everybody's rights for a moment.

    Args:
        api: the server.
        patience: seconds until its last word counts.

    Raises:
        ApiNotServed: a kind is not served that the operator cannot do without; at once.
        ApiError: the server has not answered, or not let us in, for so long.
    """
    retries, told, end = Retries(api.timing, cap=5.0), False, api.timing.monotonic() + patience
    while True:
        try:
            return await discover(api)
        except ApiNotServed:
            raise
        except ApiError as error:
            if api.timing.monotonic() >= end:
                raise
            if not told:
                told = True
                logger.warning("the API server cannot be used yet, and is tried again: %s", error)
            await retries.pause(error.retry_after)


async def until_allowed(
    api: Api, kinds: Iterable[Kind], tell: Callable[[str], None], pauses: Iterable[float] = PAUSES
) -> None:
    """Wait until all the kinds can be listed and watched, or fail for other reasons than rights; says once what is missing.

    Args:
        api: the server.
        kinds: that have to be listed and watched.
        tell: hears the sentence about what is missing; the empty one when nothing is, any more.
        pauses: seconds between looks; the last one for ever.
    """
    wanted, told, pause, steps = tuple(kinds), "", 0.0, iter(pauses)
    while refused := await _refused(api, wanted):
        pause = next(steps, pause)
        names = _named(refused)
        if names != told:
            told, words = names, next(iter(refused.values()))
            sentence = f"rights are missing: cannot {names} ({words}): {REMEDY}"
            tell(sentence)
            logger.error("%s. Waiting for them", sentence)
        await asyncio.sleep(pause)
    if told:
        tell("")
        logger.info("the rights to read are there now")


def _named(refused: Mapping[tuple[str, str], str]) -> str:
    """`list pods, nodes; watch deviceclasses`."""
    plurals: dict[str, list[str]] = {}
    for verb, plural in refused:
        plurals.setdefault(verb, []).append(plural)
    return "; ".join(f"{verb} {', '.join(found)}" for verb, found in plurals.items())


async def _refused(api: Api, kinds: Iterable[Kind]) -> dict[tuple[str, str], str]:
    """What we may not do, by verb and plural, and why that is so or matters."""
    refused: dict[tuple[str, str], str] = {}
    for kind in kinds:
        try:
            await api.request("GET", kind.path(), query={"limit": "1"})
            if kind.feed == "kopf" and not await _may_watch(api, kind):
                refused["watch", kind.plural] = "changes would be heard minutes late"
        except ApiForbidden as error:
            refused["list", kind.plural] = str(error)
        except ApiError as error:
            logger.debug("list of %s: %s", kind.plural, error)  # the feeds tell, and try again
    return refused


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = True


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


async def _may_watch(api: Api, kind: Kind) -> bool:
    """Whether Kopf's watch of a kind will be let in: it tries again for ever, and tells nobody. Our own feeds say so themselves.

    Raises:
        ApiError: it cannot be known.
    """
    attributes = {"group": kind.group, "version": kind.version, "resource": kind.plural, "verb": "watch"}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = await api.request(
            "POST", REVIEWS, body={**review, "spec": {"resourceAttributes": attributes}}
        )
    except (ApiForbidden, ApiNotFound) as error:
        logger.debug("whether %s may be watched is not known: %s", kind.plural, error)
        return True
    return msgspec.json.decode(answer.body, type=_Review).status.allowed
