"""Runs the contract suite (`tests/contract`) against the real kube-apiserver: `python -m tests.e2e.harness.contract [pytest …]`.

Called by `make e2e`. The suite finds the server by `DRA_CONTRACT_KUBECONFIG`. kube-controller-manager runs for garbage
collection and ServiceAccounts; whoever would act on the suite's pods and claims by itself does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.harness.build import BuildError
from tests.e2e.harness.cluster import ControlPlane, StartError
from tests.e2e.harness.components import KWOK, SCHEDULER, Options

ROOT = Path(__file__).resolve().parents[3]
SERVER_ONLY = Options(
    controllers=(
        "*",
        "-resourceclaim-controller",
        "-device-taint-eviction-controller",
        "-node-lifecycle-controller",
    ),
    without=frozenset({SCHEDULER, KWOK}),
    feature_gates={"GenericWorkload": True, "DRAWorkloadResourceClaims": True},
    runtime_config={"scheduling.k8s.io/v1beta1": "true"},
    apiserver_flags=(
        "--etcd-compaction-interval=2s",
    ),  # so that continue tokens expire while a test looks on
)


def main() -> int:
    """Pytest's exit status; 1 when the control plane did not come up. No tests found is a failure, too."""
    try:
        control_plane = ControlPlane.start(SERVER_ONLY)
    except (BuildError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    with control_plane:
        environment = {**os.environ, "DRA_CONTRACT_KUBECONFIG": str(control_plane.kubeconfig)}
        command = [sys.executable, "-m", "pytest", "tests/contract", *sys.argv[1:]]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
