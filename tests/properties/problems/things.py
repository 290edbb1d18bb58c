"""Names and values that problems are made of: few, so that they meet."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

DRIVERS: Final = ("gpu.example.com", "nic.example.com", "fpga.vendor.io")
NODES: Final = ("node-0", "node-1", "node-2")
MODELS: Final = ("a100", "h100", "l4")
VERSIONS: Final = ("1.0.0", "1.2.3", "2.0.0-rc.1", "2.0.0", "2.0.0+b7")
TAGS: Final = ("x", "y", "z")
GROUPS: Final = ("ga", "gb", "gc")
ROOT: Final = "resource.kubernetes.io/pcieRoot"
DERIVED: Final = "derived.example.com/key"
CONDITIONS: Final = ("example.com/ready", "example.com/attached")
TAINT_KEYS: Final = ("example.com/broken", "example.com/maint")
OPERATIONS: Final = "DRAOptionalNodeOperations"
GI: Final = 1024**3


def meta(name: str, kind: str, **more: Any) -> Json:
    """The head of an object of `resource.k8s.io/v1`."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **more}}


def cel(expression: str) -> Json:
    """A selector."""
    return {"cel": {"expression": expression}}
