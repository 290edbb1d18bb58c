"""Waits until the server answers and the operator may read what it needs, before anything else reads it: missing rights are one line, not one a
feed and try.

Called once by `operator`. Feeds cope with rights that are taken away later; this must not decide anything else.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dra_operator.errors import ApiError, ApiForbidden, ApiNotServed
from dra_operator.kube.discovery import discover
from dra_operator.kube.timing import Retries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.kube.api import Api
    from dra_operator.kube.discovery import Served
    from dra_operator.kube.kinds import Kind

logger = logging.getLogger(__name__)

PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between looks; the last one for ever. Arbitrary: whoever has just granted rights does not wait long."""

REMEDY = "apply manifests/base/rbac.yaml, or bind its ClusterRole to this account"


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
    """Wait until all the kinds can be listed, or fail for other reasons than rights; says once what is missing.

    Args:
        api: the server.
        kinds: that have to be listed.
        tell: hears the sentence about what is missing; the empty one when nothing is, any more.
        pauses: seconds between looks; the last one for ever.
    """
    wanted, told, pause, steps = tuple(kinds), "", 0.0, iter(pauses)
    while refused := await _refused(api, wanted):
        pause = next(steps, pause)
        names = ", ".join(refused)
        if names != told:
            told, words = names, next(iter(refused.values()))
            sentence = f"rights are missing: cannot list {names} ({words}): {REMEDY}"
            tell(sentence)
            logger.error("%s. Waiting for them", sentence)
        await asyncio.sleep(pause)
    if told:
        tell("")
        logger.info("the rights to read are there now")


async def _refused(api: Api, kinds: Iterable[Kind]) -> dict[str, str]:
    """The kinds that we may not list, by plural, and the server's words."""
    refused = {}
    for kind in kinds:
        try:
            await api.request("GET", kind.path(), query={"limit": "1"})
        except ApiForbidden as error:
            refused[kind.plural] = str(error)
        except ApiError as error:
            logger.debug("list of %s: %s", kind.plural, error)  # the feeds tell, and try again
    return refused
