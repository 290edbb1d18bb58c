"""`python -m tests.bench.real` (`make bench-real`): the operator beside stock kube-scheduler, on a real control plane and identical objects.

`stock`: the pools are nobody's, the pods have no gate, kube-scheduler allocates and binds. `operator`: the operator owns the pools,
the same pods have its gate, it allocates, pins and releases, and kube-scheduler binds; or they have its scheduler name, and it binds. Each run has a control plane of its own, the
two take turns, and what counts is the ratio of the two runs of a turn: they saw the same machine. There are no kubelets.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from typing import TYPE_CHECKING

from tests.contract.client import Server
from tests.e2e.harness.build import BuildError, ensure_binaries
from tests.e2e.harness.cluster import ControlPlane, Options, StartError
from tests.e2e.harness.components import APISERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.waiting import NotInTimeError, wait_until

from . import load
from .arguments import forget_settings, parser, size_of
from .figures import ratios
from .load import LoadError, Timeline, burst, client, create, everything, is_bound, policy_is_ready
from .processes import Meter, NotReadyError, await_calm, machine, memory
from .report import Goal, Result, document, table, write
from .subject import Writes, served_writes
from .verification import WrongEndError, check
from .workload import NAMESPACE, Size, Way, common, nodes, pods, policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .figures import Figures

STOCK, OPERATOR = "stock", "operator"
SETTLE_SECONDS = 2
"""Small, and far more than kube-scheduler needs here to see a DeviceTaintRule."""

RATIOS = {
    "pods/s, operator / stock": "podsPerSecond",
    "CPU a pod of all processes, operator / stock": "totalCpu",
    "CPU a pod of kube-apiserver, operator / stock": "apiserverCpu",
}
RATIO_GOALS = {"pods/s, operator / stock": Goal(0.9, at_least=True)}

METERED = {
    "schedulerCpu": SCHEDULER,
    "apiserverCpu": APISERVER,
    "etcdCpu": ETCD,
    "controllerManagerCpu": CONTROLLER_MANAGER,
}

BINDER = {Way.GATE: "kube-scheduler", Way.SCHEDULER: "kube-scheduler or by the operator"}

QUIET_NODES = ("*", "-node-lifecycle-controller")
"""Controllers of kube-controller-manager: no kubelet renews a lease, so nobody may call the nodes lost."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """How a run is done.

    Attributes:
        size: of the cluster and of the burst.
        clients: pods that are created at the same time.
        timeout: seconds in which all pods have to be bound.
        gogc: GOGC of the control plane's processes; empty for Go's default.
        more_flags: of the operator, after those of the bench.
        way: how the operator's pods come to it.
    """

    size: Size = dataclasses.field(default_factory=Size)
    clients: int = 16
    timeout: float = 300.0
    gogc: str = ""
    more_flags: tuple[str, ...] = ()
    way: Way = Way.GATE

    @property
    def flags(self) -> tuple[str, ...]:
        """The operator's."""
        return (f"--settle-seconds={SETTLE_SECONDS}", *self.more_flags)

    @property
    def options(self) -> Options:
        """Of the control plane: stock, but for nodes that nothing keeps alive."""
        return Options(
            controllers=QUIET_NODES,
            without=frozenset({KWOK}),
            apiserver_flags=("--disable-admission-plugins=TaintNodesByCondition",),
            environment={"GOGC": self.gogc} if self.gogc else {},
        )


def run(plan: Plan, who: str) -> tuple[Figures, str]:
    """One run on a new control plane; its figures, and the version of Kubernetes.

    Raises:
        LoadError, NotInTimeError, StartError, WrongEndError: it failed, or ended wrongly.
    """
    with ControlPlane.start(plan.options) as control_plane:
        server = Server.of_kubeconfig(control_plane.kubeconfig)
        version = asyncio.run(_furnish(server, plan))
        wait_until(
            lambda: control_plane.kubectl.in_namespace(NAMESPACE).find("serviceaccount", "default"),
            f"ServiceAccount {NAMESPACE}/default",
        )
        kubeconfig = install(control_plane)  # for both: new kinds and policies give kube-apiserver work
        if who == STOCK:
            return _measure(control_plane, server, plan, None), version
        with OperatorProcess.start(control_plane, kubeconfig, *plan.flags) as operator:
            asyncio.run(_own(server, plan))
            figures = _measure(control_plane, server, plan, operator)
            return figures | {"memoryPeak": memory(operator.pid, "VmHWM")}, version


def _measure(
    control_plane: ControlPlane, server: Server, plan: Plan, operator: OperatorProcess | None
) -> Figures:
    timeline, count = Timeline(is_bound), plan.size.pods
    await_calm(control_plane.pid(APISERVER))
    pids = {figure: control_plane.pid(name) for figure, name in METERED.items()}
    if operator is not None:
        pids["operatorCpu"] = operator.pid
    before = _served_writes(control_plane)
    meter, own = Meter.start(**pids), Meter.start(loadCpu=os.getpid())
    counted = Writes(operator.url) if operator is not None else None
    way = Way.STOCK if operator is None else plan.way
    asyncio.run(_place(server, plan, timeline, way))
    used = meter.per_pod(count)
    used |= {"totalCpu": sum(used.values()), **own.per_pod(count)}
    used["allWrites"] = (_served_writes(control_plane) - before) / count
    asyncio.run(_verify(server, plan, pinned=way is Way.GATE))
    return {**timeline.figures(), **used, **(counted.per_pod(count) if counted else {})}


def _served_writes(control_plane: ControlPlane) -> float:
    return served_writes(control_plane.kubectl.run("get", "--raw=/metrics"))


async def _furnish(server: Server, plan: Plan) -> str:
    """All objects but the pods. Returns: the version of Kubernetes."""
    async with client(server) as api:
        await create(api, common(), 1)
        await create(api, nodes(plan.size), plan.clients)
        return await load.version(api)


async def _own(server: Server, plan: Plan) -> None:
    async with client(server) as api:
        await create(api, [policy()], 1)
        await policy_is_ready(api, plan.size.nodes)


async def _place(server: Server, plan: Plan, timeline: Timeline, way: Way) -> None:
    async with client(server) as api:
        await burst(api, pods(plan.size, way), timeline, plan.clients, plan.timeout)


async def _verify(server: Server, plan: Plan, *, pinned: bool) -> None:
    async with client(server) as api:
        check(*await everything(api), plan.size.pods, pinned=pinned)


def turns(repeat: int) -> list[str]:
    """Who runs when: in pairs, each pair the other way round, so that a machine that gets slower favours nobody."""
    pairs = ((STOCK, OPERATOR) if number % 2 == 0 else (OPERATOR, STOCK) for number in range(repeat))
    return [who for pair in pairs for who in pair]


def _result(plan: Plan, runs: dict[str, list[Figures]], before: dict[str, object]) -> Result:
    size = plan.size
    title = (
        f"real control plane: {size.pods} pods on {size.nodes} nodes with {size.devices} devices each, claims made by "
        f"kube-controller-manager; placed = bound, by {BINDER[plan.way]}"
    )
    parameters = {
        **dataclasses.asdict(size),
        "clients": plan.clients,
        "gogc": plan.gogc,
        "way": plan.way.value,
    }
    parameters |= {"repeat": len(runs[STOCK]), "operatorFlags": list(plan.flags), "qps": plan.options.qps}
    found = {text: ratios(runs[OPERATOR], runs[STOCK], key) for text, key in RATIOS.items()}
    return Result("real", title, parameters, before, runs, ratios=found, ratio_goals=RATIO_GOALS)


def main(argv: Sequence[str] | None = None) -> int:
    """Build if needed, run, print, write. Exit status: 0 when every run ended rightly, 1 when not."""
    made = parser("real", __doc__, Size(), repeat=3)
    made.add_argument("--gogc", default="", help="GOGC of the control plane's processes, such as 400")
    arguments = made.parse_args(argv)
    more = tuple(arguments.operator_flag)
    plan = Plan(
        size_of(arguments, made),
        arguments.clients,
        arguments.timeout,
        arguments.gogc,
        more,
        Way(arguments.way),
    )
    forget_settings()
    runs: dict[str, list[Figures]] = {STOCK: [], OPERATOR: []}
    versions = {}
    try:
        ensure_binaries()
        before = machine()
        for who in turns(arguments.repeat):
            figures, versions["kubernetes"] = run(plan, who)
            runs[who].append(figures)
            print(f"{who}: {runs[who][-1]['podsPerSecond']:.1f} pods/s", flush=True)
    except (BuildError, LoadError, NotInTimeError, NotReadyError, StartError, WrongEndError) as error:
        print(f"bench: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    result = dataclasses.replace(_result(plan, runs, before), versions=versions)
    write(arguments.json, document(result))
    print(f"\n{table(result)}\n\nwritten to {arguments.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
