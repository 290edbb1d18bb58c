"""Two operators on a real control plane: a leader that sleeps, dies, or ends, and what becomes of the writes that it had in hand.

A loopback proxy keeps a request of the leader back between its decision and the API server; the leader is stopped (SIGSTOP), another takes over
and does the work, and only then the request goes on its way. The leader wakes up to find that it leads no longer.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.crowd import TEMPLATE, at_rest, template
from tests.e2e.fleet import Fleet, is_running
from tests.e2e.harness.faultproxy import FaultProxy
from tests.e2e.harness.objects import claim, exactly, pod
from tests.e2e.harness.operator_process import QUICK_LEASE, OperatorProcess
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(240)

FLAGS = ("--settle-seconds=0", "--sweep-seconds=1", *QUICK_LEASE)
LEASE_SECONDS = 4.0
MARGIN = 2.0
"""Seconds beyond the lease until the first pod is served after a crash; and seconds until one is after an orderly end. Each beyond those that it takes
while nothing happens to the leader: `kubectl apply` alone takes one of them on a busy machine."""

CONFLICT = 409


@dataclass
class Pair:
    """A leader behind a proxy, and what takes its place."""

    control_plane: ControlPlane
    kubeconfig: Path
    proxy: FaultProxy
    leader: OperatorProcess
    stack: ExitStack

    def follower(self) -> OperatorProcess:
        """One more operator, which stands by."""
        started = OperatorProcess.start(self.control_plane, self.kubeconfig, *FLAGS, standby=True)
        self.stack.callback(started.kill)
        return started


@contextmanager
def pair(control_plane: ControlPlane, kubeconfig: Path) -> Iterator[Pair]:
    """The leader alone at first: the other one has to be started."""
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(control_plane.server, control_plane.ca_file))
        leader = OperatorProcess.start(control_plane, proxy.kubeconfig(kubeconfig), *FLAGS)
        stack.callback(leader.kill)
        yield Pair(control_plane, kubeconfig, proxy, leader, stack)


@pytest.fixture
def two(control_plane: ControlPlane, operator_kubeconfig: Path) -> Iterator[Pair]:
    """A leader behind a proxy."""
    with pair(control_plane, operator_kubeconfig) as made:
        yield made


@pytest.fixture
def team(control_plane: ControlPlane, two: Pair, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A namespace whose pods get the gate; closed while an operator still runs."""
    yield from open_workspace(control_plane, request, labels=ENABLED)


@pytest.fixture
def fleet(team: Workspace) -> Fleet:
    """One device, in a pool of ours: whatever is given twice is this one."""
    made = Fleet.of(team)
    made.plain(1)
    team.apply(template(made))
    made.own("gpu")
    return made


LATE = {
    "mark": ("patch", "resourceclaims"),
    "status": ("patch", "resourceclaims/status"),
    "pin": ("patch", "pods"),
    "binding": ("create", "pods/binding"),
}
"""What is kept back: the last but one is the pin of a gated pod, the last that of a pod that names us as its scheduler."""


@pytest.mark.parametrize("kind", LATE)
def test_a_write_that_a_stopped_leader_had_in_hand_comes_too_late(fleet: Fleet, two: Pair, kind: str) -> None:
    """Whichever of its writes it is: refused, and the device went to one claim, for the pod that runs."""
    other = two.follower()
    held = two.proxy.hold(*LATE[kind])
    spec: dict[str, Any] = {"schedulerName": "dra-operator"} if kind == "binding" else {}
    with ClaimHistory(fleet.workspace) as history:
        fleet.workspace.apply(pod("web", templates={"gpu": TEMPLATE}, **spec))
        assert held.hold.reached.wait(30), "the leader never came to that write"
        two.leader.send(signal.SIGSTOP)
        wait_until(other.decides, "another leads")
        fleet.workspace.kubectl.until("pod", "web", is_running, "Running")
        held.hold.released.set()
        wait_until(lambda: held.fault.codes, "an answer to the late write")
        two.leader.send(signal.SIGCONT)
        wait_until(lambda: two.leader.exit_status is not None, "the end of the old leader")

    assert held.fault.codes == [CONFLICT]
    assert two.leader.exit_status == 1
    assert history.doubles == []
    assert at_rest(fleet) == []


def test_a_roll_back_that_a_stopped_leader_had_in_hand_comes_too_late(fleet: Fleet, two: Pair) -> None:
    """The pod's second claim cannot be had, so what the first got is being taken back; meanwhile both can, and another leader gives them."""
    kubectl = fleet.workspace.kubectl
    other = two.follower()
    mark = two.proxy.hold("patch", "pods")  # the pin: by then the claim is allocated
    fleet.workspace.apply(claim("own", exactly("gpu", fleet.name("gpu"))), pod("web", claims={"gpu": "own"}))
    assert mark.hold.reached.wait(30)
    # The pin fails, as the pod has changed; nothing serves it any more, as its node takes no pods; so the claim is rolled back.
    roll_back = two.proxy.hold("patch", "resourceclaims/status")
    kubectl.run("cordon", fleet.node())
    kubectl.run("annotate", "pod", "web", "changed=true")
    mark.hold.released.set()
    assert roll_back.hold.reached.wait(30), "the leader never came to the roll-back"
    two.leader.send(signal.SIGSTOP)
    kubectl.run("uncordon", fleet.node())
    wait_until(other.decides, "another leads")
    kubectl.until("pod", "web", is_running, "Running")
    before = kubectl.get("resourceclaim", "own")
    roll_back.hold.released.set()
    wait_until(lambda: roll_back.fault.codes, "an answer to the late roll-back")
    two.leader.send(signal.SIGCONT)
    wait_until(lambda: two.leader.exit_status is not None, "the end of the old leader")

    assert roll_back.fault.codes == [CONFLICT]
    assert kubectl.get("resourceclaim", "own")["status"] == before["status"]
    assert at_rest(fleet) == []


def test_a_leader_that_wakes_up_with_a_decision_sends_nothing(fleet: Fleet, two: Pair) -> None:
    """It is stopped before it hears of the pod, and finds its lease gone when it does: the fence, not the API server, keeps it off."""
    other = two.follower()
    two.leader.send(signal.SIGSTOP)
    fleet.workspace.apply(pod("web", templates={"gpu": TEMPLATE}))
    wait_until(other.decides, "another leads")
    fleet.workspace.kubectl.until("pod", "web", is_running, "Running")
    passed = two.proxy.passed
    two.leader.send(signal.SIGCONT)
    wait_until(lambda: two.leader.exit_status is not None, "the end of the old leader")

    assert two.leader.exit_status == 1
    assert "the operator ends" in two.leader.log_text()
    assert two.proxy.passed - passed <= 3, "it may look at the Lease, and nothing else"
    assert at_rest(fleet) == []


def test_a_killed_leader_is_followed_within_the_lease_and_two_seconds(fleet: Fleet, two: Pair) -> None:
    other = two.follower()
    usual = usually_served(fleet)
    two.leader.kill()
    took = served(fleet, "after") - usual
    print(f"killed: first allocation after {took:.2f} s with a lease of {LEASE_SECONDS:g} s")
    assert other.decides()
    assert took < LEASE_SECONDS + MARGIN


def test_a_leader_that_ends_in_order_hands_over_within_two_seconds(fleet: Fleet, two: Pair) -> None:
    other = two.follower()
    usual = usually_served(fleet)
    two.leader.send(signal.SIGTERM)
    took = served(fleet, "after") - usual
    print(f"handed over: first allocation after {took:.2f} s")
    assert other.decides()
    assert took < MARGIN
    wait_until(lambda: two.leader.exit_status is not None, "the end of the old leader")
    assert two.leader.exit_status == 0


def usually_served(fleet: Fleet) -> float:
    """The seconds that it takes while one leads; the pod is gone afterwards."""
    kubectl, began = fleet.workspace.kubectl, time.monotonic()
    fleet.workspace.apply(pod("before", templates={"gpu": TEMPLATE}))
    wait_until(
        lambda: [
            found for found in kubectl.get_all("resourceclaims") if "allocation" in found.get("status", {})
        ],
        "an allocation",
    )
    took = time.monotonic() - began
    kubectl.delete("pod", "before")
    wait_until(lambda: not kubectl.get_all("resourceclaims"), "its claim gone")
    return took


def served(fleet: Fleet, name: str) -> float:
    """A pod comes, and its claim is allocated; the seconds that it took."""
    began = time.monotonic()
    with ClaimHistory(fleet.workspace) as history:
        fleet.workspace.apply(pod(name, templates={"gpu": TEMPLATE}))
        wait_until(lambda: history.allocated, f"an allocation for {name}")
        (at,) = history.allocated.values()
    return at - began
