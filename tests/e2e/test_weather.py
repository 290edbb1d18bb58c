"""Bad weather between the operator and a real kube-apiserver: every pod gets through, no device is held twice, nothing is left half-done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.testing.fakeapi.faults import ALWAYS, WEATHER, Fault
from tests.e2e.crowd import arrive, at_rest, names_waiting, template, until_running
from tests.e2e.fleet import Fleet
from tests.e2e.harness.faultproxy import FaultProxy
from tests.e2e.harness.operator_process import OperatorProcess
from tests.e2e.harness.waiting import wait_until

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


WRITES_AND_READS = {"409": 0.2, "429": 0.1, "503": 0.2, "reset before": 0.1, "reset after": 0.2}


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
