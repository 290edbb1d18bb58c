"""An embedded Kubernetes API server for tests and the demo.

In process: `async with FakeApi(standins=("kubelet",)) as api: …` with `api.url`, `api.create(obj)`, `api.faults`. As a program:
`python -m dra_operator.testing.fakeapi --port 0 --kubeconfig FILE`. Real kubectl works with it. It serves what DRA needs, and no
more; where it differs from a real kube-apiserver, the real one is right (`tests/contract` runs on both).
"""

from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Call, Fault, gone, internal_error, throttled, unavailable
from dra_operator.testing.fakeapi.server import FakeApi

__all__ = ["Call", "FakeApi", "Fault", "StatusError", "gone", "internal_error", "throttled", "unavailable"]
