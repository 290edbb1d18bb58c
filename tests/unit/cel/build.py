"""Devices and selectors in a few words."""

from __future__ import annotations

from typing import Any

from dra_operator.cel import Compiler, default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import ResourceSlice, from_object

DRIVER = "gpu.example.com"
COMPILER = default_compiler()

GPU: dict[str, Any] = {
    "attributes": {
        "model": {"string": "a100-sxm"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "550.54.15-rc.1+b5"},
        "uni": {"string": "Grüße"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "other.example.com/name": {"string": "x"},
        "numbers": {"ints": [1, 2, 3]},
        "names": {"strings": ["a", "b"]},
        "flags": {"bools": [True, False]},
        "versions": {"versions": ["1.0.0", "2.0.0"]},
    },
    "capacity": {
        "memory": {"value": "40Gi"},
        "cores": {"value": "1500m"},
        "other.example.com/bw": {"value": "10G"},
    },
}


def slice_of(*devices: dict[str, Any], driver: str = DRIVER) -> ResourceSlice:
    """A slice with these devices, named device-0, device-1 and so on."""
    named = [{"name": f"device-{number}", **device} for number, device in enumerate(devices)]
    return from_object(
        ResourceSlice, {"metadata": {"name": "s"}, "spec": {"driver": driver, "devices": named}}
    )


def matches(expression: str, device: dict[str, Any] | None = None, compiler: Compiler = COMPILER) -> bool:
    """What a selector answers for one device; `$a` stands for the attributes of its driver, `$c` for its capacities."""
    slice_ = slice_of(GPU if device is None else device)
    text = expression.replace("$a", f'device.attributes["{DRIVER}"]').replace(
        "$c", f'device.capacity["{DRIVER}"]'
    )
    return compiler.compile(text, DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])
