"""The gate by a webhook while nobody answers: operators that hang, or are killed, leader and standby. As documented in docs/gate-webhook.md.

Each test has operators of its own, since it ends them.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.admission import GATE
from tests.e2e.fleet import gates
from tests.e2e.harness.kubectl import KubectlError
from tests.e2e.harness.objects import pod
from tests.e2e.harness.operator_process import QUICK_LEASE, OperatorProcess
from tests.e2e.harness.waiting import wait_until
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.webhooks import Listener, is_put_on, labelled, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

__all__ = ["labelled"]

FLAGS = (*DEFAULT_FLAGS, *QUICK_LEASE)
UNANSWERED = r'failed calling webhook "gate\.dra-operator\.io"'


def test_an_operator_that_hangs_keeps_nobody_waiting_for_long(
    control_plane: ControlPlane, operator_kubeconfig: Path, labelled: Workspace, tmp_path: Path
) -> None:
    """The pod is refused when the configuration's timeoutSeconds are over, and with the operator back it is let in."""
    listener = Listener.make(tmp_path)
    with OperatorProcess.start(
        control_plane, operator_kubeconfig, *DEFAULT_FLAGS, *listener.flags
    ) as hanging:
        labelled.apply(listener.configuration(labelled.namespace))
        wait_until(lambda: is_put_on(labelled), "configuration heard of")
        asked = pod("x", templates={"gpu": "absent"})
        hanging.send(signal.SIGSTOP)
        try:
            words = refusal(labelled, asked)
        finally:
            hanging.send(signal.SIGCONT)

        assert "failed calling webhook" in words
        assert "deadline exceeded" in words or "Client.Timeout" in words
        wait_until(lambda: not refusal(labelled, asked), "answered again")


def test_while_nobody_answers_only_pods_that_need_the_gate_are_refused(
    control_plane: ControlPlane, operator_kubeconfig: Path, labelled: Workspace, tmp_path: Path
) -> None:
    """The standby answers, too; both killed, others do not notice; one started again is enough."""
    kubectl = labelled.kubectl
    leading, standing_by = Listener.make(tmp_path / "leader"), Listener.make(tmp_path / "standby")
    with OperatorProcess.start(control_plane, operator_kubeconfig, *FLAGS, *leading.flags) as leader:
        with OperatorProcess.start(
            control_plane, operator_kubeconfig, *FLAGS, *standing_by.flags, standby=True
        ) as standby:
            labelled.apply(standing_by.configuration(labelled.namespace))
            wait_until(lambda: is_put_on(labelled), "configuration heard of")
            assert (leader.decides(), standby.decides()) == (True, False)
            labelled.apply(pod("by-the-standby", templates={"gpu": "absent"}))
            leader.kill()
            standby.kill()

        with pytest.raises(KubectlError, match=UNANSWERED):
            labelled.apply(pod("refused", templates={"gpu": "absent"}))
        labelled.apply(
            pod("plain"),
            pod("with-node", templates={"gpu": "absent"}, nodeName="absent"),
            pod("for-us", templates={"gpu": "absent"}, schedulerName="dra-operator"),
        )
        default = kubectl.in_namespace("default")
        default.create(pod("elsewhere", templates={"gpu": "absent"}), "--dry-run=server")

        with OperatorProcess.start(
            control_plane, operator_kubeconfig, *FLAGS, *standing_by.flags, standby=True
        ):
            labelled.apply(pod("again", templates={"gpu": "absent"}))

    assert {found["metadata"]["name"]: gates(found) for found in kubectl.get_all("pods")} == {
        "by-the-standby": [GATE],
        "plain": [],
        "with-node": [],
        "for-us": [],
        "again": [GATE],
    }
