"""The page about real drivers' manifests, out of the table that the tests feed (`tests/inputs/cases.py`)."""

from __future__ import annotations

from typing import Final

from tests.inputs.cases import CASES, Case

from .markdown import generated, joined, table

DRIVERS: Final = {
    "nvidia": "gpu.nvidia.com, with dra.net for NICs",
    "example": "dra-example-driver (gpu, net)",
    "spyre": "spyre.ibm.com",
    "amd": "gpu.amd.com",
    "cpu": "dra.cpu",
    "tpu": "tpu.google.com",
    "intel": "gpu.intel.com, gaudi.intel.com, with dra.net",
    "sriov": "sriovnetwork.k8snetworkplumbingwg.io",
    "hami": "hami-core-gpu.project-hami.io",
    "rbln": "npu.rebellions.ai",
    "traps": "odd input",
}
"""What the folders of `tests/inputs` stand for."""

HEAD: Final = """
What becomes of manifests such as the users of published DRA drivers write. Each row is a test on the embedded API server (extended resources
excepted, which it does not schedule) and one on a real Kubernetes 1.37 control plane with the real kubectl: half of them in every run, all with
`DRA_E2E_INPUTS=all`. The manifests are the project's own, written from the facts in drivers' documents and live dumps.

"Allocated" means: each pod got the devices that the manifest's writer meant (number, attributes, alignment, sharing, configuration), and runs.
"Waits" means: nothing is allocated, the pod keeps its gate, and an event on it names what is missing.

To see how manifests of your own fare, name them, or folders of them, out of a clone of the repository:

```console
$ .venv/bin/python -m tests.e2e.feed tests/inputs/nvidia/two-pods.yaml --devices=tests/inputs/nvidia/a100-indexed.devices.yaml
nvidia/two-pods.yaml  pod first
      on gpu-worker-1, gpu: gpu.nvidia.com/gpu-worker-1/gpu-0
nvidia/two-pods.yaml  pod second
      on gpu-worker-1, gpu: gpu.nvidia.com/gpu-worker-1/gpu-1
```

starts a control plane, publishes the slices and classes that it finds, feeds each file and prints what each pod got or was told.
"""

TAIL: Final = """
## Traps of real input

* **A v1beta1 body under a v1 header.** Devices with `basic:`, requests without `exactly:`. kubectl refuses it (`strict decoding error: unknown field
  "spec.devices[0].basic"`). With `--validate=ignore`, or from a client that does not ask for strictness, the API server drops what it does not
  know: devices stay without attributes, requests are refused for want of `exactly`. A selector that then fails on such a device says "That device
  publishes no attributes at all".
* **v1beta1 and v1beta2 objects.** Kubernetes 1.37 does not serve these versions unless told to (`--runtime-config`); kubectl says `no matches for
  kind`. Where they are served, the API server converts, and the operator, which reads v1, sees no difference.
* **Live dumps of slices.** `kubectl get resourceslices -o yaml` of another cluster holds the node's uid as owner. Applied elsewhere, the slices are
  accepted and deleted at once by the garbage collector: take `metadata.ownerReferences` off. Owner references without uid are refused.
* **generateName** works with `kubectl create`, not with `kubectl apply`.
* **Unquoted values.** `n`, `no` and `on` are booleans in YAML, long numbers are numbers: node names, bus ids and 64-bit device ids want quotes.
* **Amounts.** `6Gi`, `196592Mi`, `0.5Gi`, `1e3` are fine; `6 GiB` and `6GiB` are refused with `quantities must match the regular expression`.
* **An attribute that only some devices have.** `device.attributes["d"].a == 1` fails on the others, and with it the whole claim: guard it with
  `has(…)` or `.?a.orValue(0)`. In `matchAttribute`, devices without the attribute are passed over.
* **Extended resources.** Pods that ask for `nvidia.com/gpu: 1` have no claim, so the gate policy leaves them alone and kube-scheduler is kept off our
  pools: they stay pending with the event `ExtendedResource`.
"""


def page() -> str:
    """The whole page."""
    rows = [
        (
            DRIVERS[case.driver],
            _upper(case.does),
            _outcome(case),
            f"`{case.file}`, `{case.driver}/{case.devices}`",
        )
        for case in CASES
    ]
    columns = ("driver", "asks for", "outcome", "manifest and devices, below `tests/inputs`")
    title, note = "# Real drivers' manifests", generated("`tests/inputs/cases.py`")
    return joined(title, note, HEAD, table(columns, rows), TAIL)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _outcome(case: Case) -> str:
    return f"waits: needs {case.needs}" if case.needs else "allocated"
