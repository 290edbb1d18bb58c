"""Many equal pods at once, and what must hold of them when everything is at rest. Used by the tests of bursts."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.fleet import gates, is_running
from tests.e2e.harness.audit import find_problems
from tests.e2e.harness.components import SCHEDULER
from tests.e2e.harness.objects import claim_template, exactly, pod
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.fleet import Fleet, Object
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.history import ClaimHistory

GATE = "dra-operator.io/allocate"
TEMPLATE = "one-gpu"
PHASES = "--output=jsonpath={range .items[*]}{.status.phase}{'\\n'}{end}"
MOMENT = 0.02  # seconds; kube-scheduler, or the operator, has a handful of pods under way in that time
CLOCK_TICKS = 100  # a second; the kernel's unit for users, on all machines that Go runs on


@contextmanager
def scheduler_asleep(control_plane: ControlPlane) -> Iterator[None]:
    """kube-scheduler does nothing and forgets nothing; afterwards it has everything at once to do."""
    pid = control_plane.pid(SCHEDULER)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def scheduler_away(control_plane: ControlPlane) -> Iterator[None]:
    """kube-scheduler is killed, and started again afterwards: it reads all that there is before it looks at the first pod.

    One that slept hears of a pod and of a node by two watches, in either order.
    """
    control_plane.kill_component(SCHEDULER)
    try:
        yield
    finally:
        control_plane.start_component(SCHEDULER)


def work_by_moments(control_plane: ControlPlane, done: Callable[[], int], count: int) -> None:
    """Wakes the sleeping kube-scheduler for moments, until it has done so much: it gets no time to do everything."""
    by_moments(control_plane.pid(SCHEDULER), done, count)


def by_moments(pid: int, done: Callable[[], int], count: int) -> None:
    """Wakes a stopped process for moments, until it has done so much.

    What it has sent arrives while it sleeps between two moments, so that it is never far ahead of what is seen.
    """

    def moment() -> int:
        os.kill(pid, signal.SIGCONT)
        time.sleep(MOMENT)
        os.kill(pid, signal.SIGSTOP)
        return done()

    wait_until(moment, f"{count} done by process {pid}", timeout=60, accept=lambda seen: seen >= count)


def template(fleet: Fleet, word: str = "gpu") -> Object:
    """One device a pod."""
    return claim_template(TEMPLATE, exactly("gpu", fleet.name(word)))


def arrive(fleet: Fleet, count: int, prefix: str = "pod", **spec: Any) -> None:
    """So many pods of the template at once, by one `kubectl create`; `spec` holds further fields of each."""
    fleet.workspace.kubectl.create(
        [pod(f"{prefix}-{number:03}", templates={"gpu": TEMPLATE}, **spec) for number in range(count)]
    )


def running_count(fleet: Fleet) -> int:
    """Pods that run; a cheap question."""
    return Counter(fleet.workspace.kubectl.run("get", "pods", PHASES).split())["Running"]


def until_running(fleet: Fleet, count: int, *, timeout: float = 90.0) -> None:
    """Waits until exactly so many pods run: one more would have come to stay."""
    wait_until(
        lambda: running_count(fleet),
        f"{count} pods of {fleet.workspace.namespace} running",
        timeout=timeout,
        accept=lambda seen: seen >= count,
    )


def until_allocated(history: ClaimHistory, count: int) -> None:
    """Waits until so many claims have been allocated since the history began."""
    wait_until(lambda: len(history.allocated), f"{count} allocations", accept=lambda seen: seen >= count)


def at_rest(fleet: Fleet, *, timeout: float = 30.0) -> list[str]:
    """Waits until nothing is half-done; returns what is wrong even then."""
    return wait_until(
        lambda: loose_ends(fleet),
        "nothing half-done or wrong",
        timeout=timeout,
        accept=lambda found: not found,
    )


def loose_ends(fleet: Fleet) -> list[str]:
    """What may be so for a moment, but not at rest; and everything that is wrong (see `audit`)."""
    kubectl = fleet.workspace.kubectl
    pods = kubectl.get_all("pods")
    claims = kubectl.get_all("resourceclaims", "--all-namespaces")
    return [
        *find_problems(claims, kubectl.get_all("pods", "--all-namespaces"), fleet.workspace.namespace),
        *_of_pods(pods, claims),
        *_of_claims(fleet, claims, pods),
    ]


def _of_pods(pods: list[Object], claims: list[Object]) -> list[str]:
    """A pod waits at its gate and holds nothing, or it is bound."""
    served = {
        consumer["uid"] for item in claims for consumer in item.get("status", {}).get("reservedFor") or []
    }
    found = []
    for item in pods:
        name = item["metadata"]["name"]
        if gates(item) and item["metadata"]["uid"] in served:
            found.append(f"pod {name} waits at its gate and has a claim reserved for it")
        if not gates(item) and not item["spec"].get("nodeName"):
            found.append(f"pod {name} is released but not bound")
    return found


def _of_claims(fleet: Fleet, claims: list[Object], pods: list[Object]) -> list[str]:
    """A generated claim belongs to a pod that lives, and a pod has one for each of its entries."""
    uids = {item["metadata"]["uid"] for item in pods}
    own = [item for item in claims if item["metadata"]["namespace"] == fleet.workspace.namespace]
    owners = Counter(
        (reference["uid"], item["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"])
        for item in own
        for reference in item["metadata"].get("ownerReferences", [])
    )
    orphans = [f"a claim of pod {uid}, which is gone, is left" for uid, _ in owners if uid not in uids]
    twins = [
        f"pod {uid} has {count} claims for {entry}" for (uid, entry), count in owners.items() if count > 1
    ]
    return orphans + twins


def names_running(fleet: Fleet) -> list[str]:
    """Names of the pods that run, sorted."""
    found = fleet.workspace.kubectl.get_all("pods")
    return sorted(item["metadata"]["name"] for item in found if is_running(item))


def names_waiting(fleet: Fleet) -> list[str]:
    """Names of the pods that wait at our gate and no other, sorted."""
    found = fleet.workspace.kubectl.get_all("pods")
    return sorted(item["metadata"]["name"] for item in found if gates(item) == [GATE])


def cpu_seconds(operator: OperatorProcess) -> float:
    """CPU time that the operator has used, user and system."""
    fields = Path(f"/proc/{operator.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
