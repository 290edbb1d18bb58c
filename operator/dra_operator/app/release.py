"""`dra-operator release`: makes sure that nobody works against it, has `controllers.remover` give everything back, tells what was done.

Once, then it ends; run again, it goes on. Nothing is removed while a pod of the operator runs, or while new pods would still be gated.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, cast

from dra_operator.controllers.commit import POD
from dra_operator.controllers.remover import Remover
from dra_operator.errors import ApiForbidden, ApiNotFound
from dra_operator.kube.api import Api
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.listing import Listing, list_all
from dra_operator.kube.reader import Reader
from dra_operator.kube.writer import Writer

if TYPE_CHECKING:
    from dra_operator.model import Pod
    from dra_operator.settings import Settings

logger = logging.getLogger(__name__)

OPERATOR_LABEL = "app.kubernetes.io/name=dra-operator"
"""Label of the operator's pods in manifests/base, in every release so far; the release Job's pods have another."""

GATE_BINDING = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/dra-operator-gate"
"""What makes the API server put our gate on new pods (manifests/gate-policy)."""

LOOK_SECONDS = 1.0
"""Between two looks whether the operator has ended. Arbitrary."""


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


async def give_back(api: Api, settings: Settings, wait_seconds: float) -> int:
    """As `release`, on an API server that is connected already."""
    if running := await _running(api, wait_seconds):
        logger.error(
            "nothing was removed, for the operator still runs: pod %s. Stop it first: "
            "kubectl --namespace=dra-operator scale deployment dra-operator --replicas=0. A pod on a node that is lost for good "
            "goes with kubectl delete pod --force",
            ", ".join(running),
        )
        return 1
    try:
        gate_was_there = await _delete_gate_binding(api)
    except ApiForbidden as error:
        logger.error(  # noqa: TRY400 - the message is for the admin
            "nothing was removed, for new pods would still get the gate, with nobody to open it: kubectl delete "
            "mutatingadmissionpolicybinding dra-operator-gate, then run this again (%s)",
            error,
        )
        return 1
    remover = Remover(
        Reader(api), Writer(api, settings.max_writes), partial(_list, api), settings.settle_seconds
    )
    await remover.run(gate_was_there=gate_was_there)
    return _tell(remover, await _running(api, 0.0))


async def _running(api: Api, wait_seconds: float) -> list[str]:
    """Pods of the operator that run, or are going to, after the time they have to end."""
    deadline = asyncio.get_running_loop().time() + wait_seconds
    told = False
    while True:
        listed = await list_all(api, KINDS[POD], selector={"labelSelector": OPERATOR_LABEL})
        keys = [pod.key for pod in cast("list[Pod]", listed.objects) if not pod.is_done]
        if not keys or asyncio.get_running_loop().time() >= deadline:
            return keys
        if not told:
            logger.info("waiting for the operator to end: pod %s", ", ".join(keys))
            told = True
        await asyncio.sleep(LOOK_SECONDS)


async def _delete_gate_binding(api: Api) -> bool:
    """Whether it was there.

    Raises:
        ApiForbidden: it may not be deleted, and we cannot know whether it is there.
    """
    try:
        await api.request("DELETE", GATE_BINDING)
    except ApiNotFound:  # or the server has no such kind
        return False
    logger.info("MutatingAdmissionPolicyBinding dra-operator-gate is deleted: new pods get no gate")
    return True


async def _list(api: Api, kind: str) -> Listing:
    return await list_all(api, KINDS[kind])


def _tell(remover: Remover, running: list[str]) -> int:
    report = remover.report
    logger.info("released: %s", report.summary())
    for words in report.failed:
        logger.error("not done: %s", words)
    if running:
        logger.error(
            "an operator was started in the meantime, stop it and run this again: pod %s", ", ".join(running)
        )
    if report.failed or running:
        return 1
    logger.info("nothing of the operator's is left on pods, claims, taint rules and policies")
    return 0
