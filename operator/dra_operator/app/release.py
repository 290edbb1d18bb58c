"""`dra-operator release`: makes sure that nobody works against it, has `controllers.remover` give everything back, tells what was done.

Once, then it ends; run again, it goes on. Nothing is removed while a pod of the operator runs, or while new pods would still be gated.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from dra_operator.controllers.remover import Remover
from dra_operator.errors import ApiForbidden, ApiNotFound
from dra_operator.kube.api import Api
from dra_operator.kube.discovery import look
from dra_operator.kube.listing import Listing, list_all
from dra_operator.kube.reader import Reader
from dra_operator.kube.writer import Writer
from dra_operator.model import SCHEDULER_NAME
from dra_operator.words import listed

from .running import running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.kube.listing import RawMeta
    from dra_operator.settings import Settings

logger = logging.getLogger(__name__)

GATES = {
    "MutatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/dra-operator-gate",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/dra-operator-gate",
}
"""What makes the API server put our gate on new pods (manifests/gate-policy), or ask the operator to, and refuse them when nobody answers
(manifests/components/gate-webhook)."""

NAMED = 10
"""Pods that a line of the log names; the others are counted."""

LOOK_SECONDS = 1.0
"""Between two looks whether the operator has ended. Arbitrary."""

GATE_SECONDS = 15.0
"""How long an API server may take to hear that the gate policy is gone, whoever deleted it. Arbitrary; they hear by a watch, as kube-scheduler
does of taints, so a shorter settle time holds for them, too."""


async def release(settings: Settings, wait_seconds: float) -> int:
    """Give everything back.

    Args:
        settings: connection, writes at a time, and the settle time.
        wait_seconds: how long the operator's pods may take to end.

    Returns: the exit status: 0 if nothing of the operator's is left on any object, else 1, and the log tells why.

    Raises:
        DraError: the API server cannot be reached, or does not let us see what there is.
    """
    async with await Api.connect(settings.kubeconfig, settings.context) as api:
        return await give_back(api, settings, wait_seconds)


async def give_back(
    api: Api, settings: Settings, wait_seconds: float, gate_seconds: float | None = None
) -> int:
    """As `release`, on an API server that is connected already; how long API servers may gate pods is `GATE_SECONDS` at most."""
    if found := await _after(api, wait_seconds):
        logger.error("nothing was removed, for the operator still runs: %s", _stop(found))
        return 1
    try:
        await _delete_gates(api)
    except ApiForbidden as error:
        logger.error(  # noqa: TRY400 - the message is for the admin
            "nothing was removed, for new pods would still get the gate, with nobody to open it: kubectl delete --ignore-not-found %s, "
            "then run this again (%s)",
            " ".join(f"{kind.lower()}/dra-operator-gate" for kind in GATES),
            error,
        )
        return 1
    await look(api)  # rules may be there in an older version only
    remover = Remover(
        Reader(api), Writer(api, settings.max_writes), partial(_list, api), settings.settle_seconds
    )
    if gate_seconds is None:
        gate_seconds = min(settings.settle_seconds, GATE_SECONDS)
    await remover.run(gate_seconds=gate_seconds)
    return _tell(remover, await running(api))


async def _after(api: Api, wait_seconds: float) -> list[RawMeta]:
    """Pods of the operator that run, after the time they have to end."""
    deadline = asyncio.get_running_loop().time() + wait_seconds
    told = False
    while True:
        found = await running(api)
        if not found or asyncio.get_running_loop().time() >= deadline:
            return found
        if not told:
            logger.info("waiting for the operator to end: pod %s", _keys(found))
            told = True
        await asyncio.sleep(LOOK_SECONDS)


def _keys(pods: Sequence[RawMeta]) -> str:
    return ", ".join(pod.key for pod in pods)


def _stop(pods: Sequence[RawMeta]) -> str:
    """Who runs, and how to end it there."""
    one, rest = pods[0], "" if len(pods) == 1 else ", and likewise for the others"
    return (
        f"pod {_keys(pods)}. Stop it first: kubectl --namespace={one.namespace} scale deployment dra-operator --replicas=0, or whatever "
        f"else starts it there. A pod on a node that is lost for good goes with kubectl --namespace={one.namespace} delete pod "
        f"{one.name} --force{rest}"
    )


async def _delete_gates(api: Api) -> None:
    """Delete them, should they be there.

    Raises:
        ApiForbidden: one may not be deleted, and we cannot know whether it is there.
    """
    for kind, path in GATES.items():
        try:
            await api.request("DELETE", path)
        except ApiNotFound:  # or the server has no such kind
            continue
        logger.info("%s dra-operator-gate is deleted: new pods get no gate", kind)


async def _list(api: Api, kind: str) -> Listing:
    return await list_all(api, api.kinds[kind])


def _tell(remover: Remover, started: Sequence[RawMeta]) -> int:
    report = remover.report
    logger.info("released: %s", report.summary())
    if report.orphans:
        logger.warning(
            "nobody binds pods any more whose spec.schedulerName is %s, which cannot be changed: recreate them without that name: %s",
            SCHEDULER_NAME,
            listed(report.orphans, NAMED),
        )
    for words in report.failed:
        logger.error("not done: %s", words)
    if started:
        logger.error("an operator was started in the meantime: %s. Then run this again", _stop(started))
    if report.failed or started:
        return 1
    logger.info("nothing of the operator's is left on pods, claims, taint rules and policies")
    return 0
