"""`python -m tests.bench.start_up`: how long the operator takes to get ready, and how large it is then, in a cluster that is full already.

On the embedded server: nodes with a slice of devices each; pods that run on them, each with some claims, allocated and reserved; claims
come to the operator through Kopf, as always. Server and operator are processes of their own. Exit status: 0 when the operator knew all
of it when it said that it is ready, however long that took; 1 when not.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from dra_operator.testing import builders as make
from tests.contract.client import CLAIM, POD, Server

from .arguments import RESULTS, forget_settings
from .embedded import CRD, run_folder, server_process
from .load import LoadError, client, create
from .processes import NotReadyError, cpu_seconds, machine, memory
from .report import Goal, Result, document, table, write
from .subject import Subject, scrape
from .workload import CLASS, DRIVER, NAMESPACE, Size, common, nodes, policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.contract.client import Client

    from .figures import Figures

GOALS = {"startLarge": Goal(15, at_least=False), "memoryReady": Goal(350, at_least=False)}
FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True)
class Crowd:
    """How much of everything is there.

    Attributes:
        claims: allocated, each with one device.
        pods: running; the claims are shared out among them.
        slices: one a node.
    """

    claims: int = 10_000
    pods: int = 5_000
    slices: int = 2_000

    @property
    def devices(self) -> int:
        """Of each slice: enough for its claims."""
        return -(-self.claims // self.slices)

    def problem(self) -> str | None:
        """What is wrong with it; None if nothing is."""
        if min(self.claims, self.pods, self.slices) < 1 or self.claims % self.pods:
            return "claims, pods and slices must be at least 1, and claims a multiple of pods"
        return None

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Of each claim the numbers of its pod, node and device: pods go to nodes in turn."""
        each = self.claims // self.pods
        used = [0] * self.slices
        for pod in range(self.pods):
            node = pod % self.slices
            for _ in range(each):
                yield pod, node, used[node]
                used[node] += 1


def _allocation(node: int, device: int) -> dict[str, Any]:
    name = f"node-{node:04}"
    result = {"request": "gpu", "driver": DRIVER, "pool": name, "device": f"gpu-{device}"}
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [pin]}}


async def _furnish(server: Server, crowd: Crowd, clients: int) -> None:
    places = list(crowd.places())
    by_pod: dict[int, list[int]] = {}
    for number, (pod, _, _) in enumerate(places):
        by_pod.setdefault(pod, []).append(number)
    most = max(device for _, _, device in places) + 1
    async with client(server) as api:
        await create(api, [yaml.safe_load(CRD.read_text()), *common()], 1)
        await create(api, nodes(Size(crowd.pods, crowd.slices, most)), clients)
        await create(api, [policy()], 1)
        uids = await _pods(api, by_pod, crowd, clients)
        left = iter(list(enumerate(places)))

        async def work() -> None:
            for number, place in left:
                await _claim(api, number, place, uids[place[0]])

        await asyncio.gather(*(work() for _ in range(clients)))


async def _pods(api: Client, by_pod: dict[int, list[int]], crowd: Crowd, clients: int) -> dict[int, str]:
    """Create the pods, bound and running. Returns: the uid of each."""
    uids: dict[int, str] = {}
    left = iter(by_pod.items())

    async def work() -> None:
        for number, claims in left:
            entries = [make.pod_claim(f"c{claim}", claim=f"claim-{claim:05}") for claim in claims]
            body = make.pod(f"pod-{number:05}", *entries, namespace=NAMESPACE, requests={"cpu": "10m"})
            body["spec"]["nodeName"] = f"node-{number % crowd.slices:04}"
            created = (await api.create(POD, body)).ok()
            uids[number] = created.meta["uid"]
            running = {"status": {"phase": "Running"}}
            (await api.merge(f"{POD}/pod-{number:05}/status", running)).ok()

    await asyncio.gather(*(work() for _ in range(clients)))
    return uids


async def _claim(api: Client, number: int, place: tuple[int, int, int], uid: str) -> None:
    pod, node, device = place
    name = f"claim-{number:05}"
    body = make.claim(name, make.request("gpu", CLASS), namespace=NAMESPACE)
    body["metadata"]["finalizers"] = [FINALIZER]
    (await api.create(CLAIM, body)).ok()
    consumer = {"resource": "pods", "name": f"pod-{pod:05}", "uid": uid}
    status = {"status": {"allocation": _allocation(node, device), "reservedFor": [consumer]}}
    (await api.merge(f"{CLAIM}/{name}/status", status)).ok()


def known(text: str) -> dict[str, float]:
    """Objects that the operator knows, by kind, out of the text of `/metrics`."""
    return {
        sample.labels["kind"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "dra_operator_model_objects"
    }


def missing(text: str, crowd: Crowd) -> dict[str, float | None]:
    """Kinds of which the operator knows another number than there are, with that number."""
    there = known(text)
    wanted = {"ResourceClaim": crowd.claims, "Pod": crowd.pods, "ResourceSlice": crowd.slices}
    return {kind: there.get(kind) for kind, count in wanted.items() if there.get(kind) != count}


def run(crowd: Crowd, repeat: int, clients: int) -> list[Figures]:
    """Fill a server once, and start operators on it.

    Raises:
        AssertionError, LoadError, NotReadyError: it failed, or an operator was ready before it knew all.
    """
    found: list[Figures] = []
    with run_folder() as folder, server_process(folder, "") as _:
        kubeconfig = folder / "kubeconfig"
        asyncio.run(_furnish(Server.of_kubeconfig(kubeconfig), crowd, clients))
        for _ in range(repeat):
            found.append(_start(kubeconfig, folder, crowd))
            print(
                f"ready after {found[-1]['startLarge']:.1f} s, {found[-1]['memoryReady']:.0f} MB", flush=True
            )
    return found


def _start(kubeconfig: Path, folder: Path, crowd: Crowd) -> Figures:
    with Subject(kubeconfig, folder, "--settle-seconds=0") as operator:
        figures = {
            "startLarge": operator.start_seconds,
            "startCpu": cpu_seconds(operator.pid),
            "memoryReady": memory(operator.pid),
            "memoryStartPeak": memory(operator.pid, "VmHWM"),
        }
        wrong = missing(scrape(operator.url), crowd)
    if wrong:
        raise LoadError(f"the operator said that it is ready, and knew other numbers than {crowd}: {wrong}")
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
    )
    for entry in dataclasses.fields(Crowd):
        made.add_argument(f"--{entry.name}", type=int, default=entry.default, help="that are there")
    made.add_argument("--repeat", type=int, default=3, help="starts")
    made.add_argument("--clients", type=int, default=16, help="objects that are created at the same time")
    made.add_argument(
        "--json", type=type(RESULTS), default=RESULTS / "start-up.json", help="where the document is written"
    )
    arguments = made.parse_args(argv)
    crowd = Crowd(arguments.claims, arguments.pods, arguments.slices)
    if (problem := crowd.problem()) is not None:
        made.error(problem)
    forget_settings()
    before = machine()
    try:
        runs = run(crowd, arguments.repeat, arguments.clients)
    except (LoadError, NotReadyError) as error:
        print(f"bench: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    title = f"start on the embedded server: {crowd.claims} allocated claims, {crowd.pods} running pods, {crowd.slices} slices"
    result = Result("start-up", title, dataclasses.asdict(crowd), before, {"operator": runs}, GOALS)
    write(arguments.json, document(result))
    print(f"\n{table(result)}\n\nwritten to {arguments.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
