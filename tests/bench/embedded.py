"""One run on the embedded API server: the server with its stand-ins, the operator and the load generator are three processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.contract.client import Server
from tests.e2e.harness.process import Process
from tests.e2e.harness.waiting import wait_until

from .load import Timeline, burst, client, create, everything, is_bound, is_released, policy_is_ready
from .processes import Meter, NotReadyError, cpu_seconds, memory
from .subject import Subject, Writes
from .verification import check
from .workload import Size, Way, common, nodes, pods, policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .figures import Figures

CRD = Path(__file__).parents[2] / "crds" / "allocationpolicies.yaml"
REST_SECONDS = 1.0
"""How long the operator is watched at rest, for its CPU time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is done.

    Attributes:
        size: of the cluster and of the burst.
        generator: who makes claims out of templates: `stand-in` (of kube-controller-manager, in the server) or `operator`.
        clients: pods that are created at the same time.
        timeout: seconds in which all pods have to be placed.
        rest: seconds for which the operator is watched at rest.
        more_flags: of the operator, after those of the bench.
        way: how the pods come to the operator.
    """

    size: Size = field(default_factory=Size)
    generator: str = "stand-in"
    clients: int = 16
    timeout: float = 300.0
    rest: float = REST_SECONDS
    more_flags: tuple[str, ...] = ()
    way: Way = Way.GATE

    @property
    def standins(self) -> str:
        """Stand-ins of the server: kube-scheduler's binding, and the claim controller unless the operator does its work."""
        return "binding" if self.generator == "operator" else "claims,binding"

    @property
    def flags(self) -> tuple[str, ...]:
        """The operator's."""
        mine = "always" if self.generator == "operator" else "never"
        return ("--settle-seconds=0", f"--generate-claims={mine}", *self.more_flags)


def run(plan: Plan) -> Figures:
    """One run on a new server with a new operator; its figures.

    Raises:
        LoadError, NotReadyError, WrongEndError: it failed, or ended wrongly.
    """
    with run_folder() as folder, server_process(folder, plan.standins) as process:
        server = Server.of_kubeconfig(folder / "kubeconfig")
        asyncio.run(_create(server, plan, yaml.safe_load(CRD.read_text())))
        with Subject(folder / "kubeconfig", folder, *plan.flags) as operator:
            figures = {"startEmpty": operator.start_seconds, **_rest(operator.pid, plan.rest)}
            asyncio.run(_furnish(server, plan))
            figures |= _burst(server, plan, operator, process.pid)
            figures |= {"memoryAfter": memory(operator.pid), "memoryPeak": memory(operator.pid, "VmHWM")}
        with Subject(folder / "kubeconfig", folder, *plan.flags) as operator:
            figures["startFull"] = operator.start_seconds
    return figures


def _burst(server: Server, plan: Plan, operator: Subject, server_pid: int) -> Figures:
    timeline = Timeline(is_released if plan.way is Way.GATE else is_bound)
    counted = Writes(operator.url)
    meter = Meter.start(operatorCpu=operator.pid, serverCpu=server_pid, loadCpu=os.getpid())
    asyncio.run(_place(server, plan, timeline))
    used = meter.per_pod(plan.size.pods)
    asyncio.run(_verify(server, plan))
    return {**timeline.figures(), **used, **counted.per_pod(plan.size.pods)}


async def _create(server: Server, plan: Plan, *objects: dict[str, object]) -> None:
    async with client(server) as api:
        await create(api, objects, plan.clients)


async def _furnish(server: Server, plan: Plan) -> None:
    async with client(server) as api:
        await create(api, common(), 1)
        await create(api, nodes(plan.size), plan.clients)
        await create(api, [policy()], 1)
        await policy_is_ready(api, plan.size.nodes)


async def _place(server: Server, plan: Plan, timeline: Timeline) -> None:
    async with client(server) as api:
        await burst(api, pods(plan.size, plan.way), timeline, plan.clients, plan.timeout)


async def _verify(server: Server, plan: Plan) -> None:
    async with client(server) as api:
        check(*await everything(api), plan.size.pods, pinned=plan.way is Way.GATE)


def _rest(pid: int, seconds: float) -> Figures:
    """The operator with nothing to do."""
    before, begin = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)  # what is measured is that nothing happens
    used = 1000 * (cpu_seconds(pid) - before) / (time.monotonic() - begin)
    return {"memoryAtRest": memory(pid), "cpuAtRest": used}


@contextmanager
def run_folder() -> Iterator[Path]:
    """Kubeconfig and logs; kept when the run fails, and then told."""
    folder = Path(tempfile.mkdtemp(prefix="dra-bench-"))
    try:
        yield folder
    except BaseException as error:
        error.add_note(f"logs are in {folder}")
        raise
    shutil.rmtree(folder)


@contextmanager
def server_process(folder: Path, standins: str) -> Iterator[Process]:
    """The embedded server as a process; its kubeconfig is in the folder."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "dra_operator.testing.fakeapi"]
    more = [f"--kubeconfig={kubeconfig}", f"--standins={standins}"]
    process = Process("fakeapi", [*command, *more], folder / "fakeapi.log", {})

    def listens() -> bool:
        if process.exit_status is not None:
            raise NotReadyError(f"the embedded server ended:\n{process.log_tail()}")
        return "serving on" in process.log_tail()

    try:
        wait_until(listens, "the embedded server listens")
        yield process
    finally:
        process.stop()
