"""A real Kubernetes 1.37 control plane for tests, built from Go modules and run on loopback.

`build` makes the binaries, `cluster` runs the components, `kubectl` drives them as a user would, `plugin` holds the
pytest fixtures, and `python -m tests.e2e.harness` keeps a cluster up for a developer. Used by `tests/e2e`, the contract
suite and the benchmarks; the package under test is never imported here.
"""

from tests.e2e.harness.cluster import ControlPlane, Options
from tests.e2e.harness.kubectl import Kubectl, KubectlError
from tests.e2e.harness.waiting import NotInTimeError, wait_until

__all__ = ["ControlPlane", "Kubectl", "KubectlError", "NotInTimeError", "Options", "wait_until"]
