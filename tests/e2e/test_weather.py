"""Bad weather between the operator and a real kube-apiserver: every pod gets through, no device is held twice, nothing is left half-done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.testing.fakeapi.faults import ALWAYS, WATCHES, WEATHER, Fault, Spoil
from tests.e2e.crowd import TEMPLATE, arrive, at_rest, names_waiting, template, until_running
from tests.e2e.fleet import Fleet
from tests.e2e.harness.audit import holders
from tests.e2e.harness.faultproxy import FaultProxy
from tests.e2e.harness.objects import claim, claim_template, exactly, pod
from tests.e2e.harness.operator_process import OperatorProcess
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(240)

NODES, DEVICES_A_NODE, PODS = 2, 6, 12


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(control_plane.server, control_plane.ca_file, seed=5) as started:
        yield started


@pytest.fixture(scope="module")
def module_operator(
    control_plane: ControlPlane, operator_kubeconfig: Path, proxy: FaultProxy
) -> Iterator[OperatorProcess]:
    """The operator, which sees kube-apiserver only by way of the proxy."""
    kubeconfig = proxy.kubeconfig(operator_kubeconfig)
    with OperatorProcess.start(control_plane, kubeconfig, "--settle-seconds=1") as started:
        yield started
    assert started.exit_status == 0
    assert "Traceback" not in started.log_text()


@pytest.fixture
def fleet(managed: Workspace, proxy: FaultProxy) -> Iterator[Fleet]:
    """Twelve devices on two nodes, ours; after the test the weather is fine again. The Lease is spared: without it the operator ends, rightly."""
    proxy.faults.add(Fault(resource="leases", times=ALWAYS))
    made = Fleet.of(managed)
    made.plain(DEVICES_A_NODE, nodes=NODES)
    managed.apply(template(made))
    made.own("gpu")
    yield made
    proxy.faults.clear()


def brew(proxy: FaultProxy, name: str, probability: float) -> None:
    fault = WEATHER[name]()
    fault.times, fault.probability = ALWAYS, probability
    proxy.faults.add(fault)


WRITES_AND_READS = {"409": 0.1, "429": 0.05, "503": 0.1, "reset before": 0.05, "reset after": 0.1}
"""Of three requests one fails; an attempt has about five. With twice as much a pod in twelve, ever more patient, takes minutes."""


def test_requests_that_fail_and_answers_that_are_lost(fleet: Fleet, proxy: FaultProxy) -> None:
    with ClaimHistory(fleet.workspace) as history:
        for name, probability in WRITES_AND_READS.items():
            brew(proxy, name, probability)
        arrive(fleet, PODS)
        until_running(fleet, PODS, timeout=150)
        struck = sum(len(rule.hits) for rule in proxy.faults.rules[1:])
        proxy.faults.clear()
        assert at_rest(fleet) == []

    assert history.doubles == []
    assert struck > PODS


def test_watches_that_break_expire_and_repeat_themselves(fleet: Fleet, proxy: FaultProxy) -> None:
    for name in ("410 in watch", "watch cut", "repeated events"):
        brew(proxy, name, 0.4)
    proxy.break_watches()
    arrive(fleet, PODS)
    until_running(fleet, PODS)
    proxy.faults.clear()
    assert at_rest(fleet) == []


def test_token_that_is_not_accepted_for_a_while(
    fleet: Fleet, proxy: FaultProxy, module_operator: OperatorProcess
) -> None:
    brew(proxy, "401", 1.0)
    proxy.break_watches()
    arrive(fleet, PODS)
    wait_until(lambda: not module_operator.ready(), "the operator not ready")
    assert len(names_waiting(fleet)) == PODS
    proxy.faults.clear()
    until_running(fleet, PODS)
    wait_until(module_operator.ready, "the operator ready again")


def test_devices_that_another_allocator_took_unseen_are_told_on_both_claims(
    fleet: Fleet, ungated: Workspace, proxy: FaultProxy
) -> None:
    """The operator hears late of what kube-scheduler allocates from the same pool, by a toleration, as users could write it (cp I-13)."""
    theirs = Fleet(ungated, fleet.suffix)
    wanted = exactly(
        "gpu", fleet.name("gpu"), tolerations=[{"key": "dra-operator.io/owned", "operator": "Exists"}]
    )
    ungated.apply(claim_template(TEMPLATE, wanted))
    late = Fault(verbs=WATCHES, resource="resourceclaims", times=ALWAYS, spoil=Spoil(lag=3.0))
    proxy.faults.add(late)
    proxy.break_watches()
    wait_until(lambda: late.hits, "a watch whose events come late")
    names = [f"ours-{number}" for number in range(4)]
    fleet.workspace.apply(*(claim(name, exactly("gpu", fleet.name("gpu"))) for name in (*names, "last")))
    fleet.workspace.apply(pod("last", claims={"gpu": "last"}))
    fleet.running("last")  # so the others are known by now
    ungated.kubectl.create([pod(f"theirs-{number}", templates={"gpu": TEMPLATE}) for number in range(4)])
    until_running(theirs, 4)
    fleet.workspace.apply(*(pod(name, claims={"gpu": name}) for name in names))
    until_running(fleet, len(names) + 1)
    proxy.faults.clear()
    claims = [
        item for space in (fleet.workspace, ungated) for item in space.kubectl.get_all("resourceclaims")
    ]
    twice = {key for keys in holders(claims).values() if len(keys) > 1 for key in keys}
    assert twice, "nothing came late enough"
    wait_until(
        lambda: {
            f"{space.namespace}/{event['involvedObject']['name']}"
            for space in (fleet.workspace, ungated)
            for event in space.kubectl.get_all("events", "--field-selector=reason=DeviceHeldTwice")
        },
        "each claim that shares a device is told",
        accept=lambda told: twice <= told,
    )
