"""Selectors as drivers' documentation and users write them, on devices as drivers publish them."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37

from .build import slice_of

GPU: dict[str, Any] = {
    "attributes": {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA A100-SXM4-40GB"},
        "architecture": {"string": "Ampere"},
        "cudaComputeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "550.54.15"},
        "index": {"int": 4},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:07"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:07:00.0"},
    },
    "capacity": {"memory": {"value": "40Gi"}, "multiprocessors": {"value": "98"}},
}
MIG: dict[str, Any] = {
    "attributes": {
        "type": {"string": "mig"},
        "profile": {"string": "1g.5gb"},
        "parentUUID": {"string": "GPU-1"},
    },
    "capacity": {"memory": {"value": "4864Mi"}, "multiprocessors": {"value": "14"}},
}
NIC: dict[str, Any] = {
    "attributes": {
        "ifName": {"string": "eth4"},
        "rdma": {"bool": True},
        "virtual": {"bool": False},
        "numaNode": {"int": 0},
        "pciDevice": {"string": "Elastic Adapter"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:07"},
    }
}

SELECTORS: list[tuple[str, str, list[bool]]] = [
    ("gpu.vendor.example", 'device.driver == "gpu.vendor.example" && device.attributes["gpu.vendor.example"].type == "gpu"', [True, False]),
    ("gpu.vendor.example", "device.attributes['gpu.vendor.example'].?profile.orValue('') == '1g.5gb'", [False, True]),
    ("gpu.vendor.example", "device.attributes['gpu.vendor.example'].type == 'mig' && device.attributes['gpu.vendor.example'].profile.startsWith('1g')", [False, True]),
    (
        "gpu.vendor.example",
        """
        has(device.attributes['gpu.vendor.example'].productName) &&
        device.attributes['gpu.vendor.example'].productName.lowerAscii().matches('^.*a100.*$')
        &&
        (device.attributes['gpu.vendor.example'].index == 0 || device.attributes['gpu.vendor.example'].index == 4)
        """,
        [True, False],
    ),
    ("gpu.vendor.example", "device.capacity['gpu.vendor.example'].memory.compareTo(quantity('4Gi')) >= 0", [True, True]),
    ("gpu.vendor.example", "device.capacity['gpu.vendor.example'].memory.isGreaterThan(quantity('10Gi'))", [True, False]),
    ("gpu.vendor.example", "'driverVersion' in device.attributes['gpu.vendor.example'] && device.attributes['gpu.vendor.example'].driverVersion.compareTo(semver('550.0.0')) > 0", [True, False]),
    ("gpu.vendor.example", "device.attributes['resource.kubernetes.io'].?pciBusID.orValue('none') in ['0000:07:00.0', '0000:08:00.0']", [True, False]),
    ("gpu.vendor.example", "device.attributes['gpu.vendor.example'].?cudaComputeCapability.orValue(semver('0.0.1')).isGreaterThan(semver('7.5.0'))", [True, False]),
]  # fmt: skip


@pytest.mark.parametrize(("driver", "expression", "expected"), SELECTORS)
def test_selects_gpus_and_their_parts(driver: str, expression: str, expected: list[bool]) -> None:
    slice_ = slice_of(GPU, MIG, driver=driver)
    selector = default_compiler().compile(expression, DEFAULT_1_37)
    assert [selector.matches(slice_, device) for device in slice_.spec.devices] == expected


def test_selects_a_network_interface_by_topology() -> None:
    slice_ = slice_of(
        NIC, {"attributes": {**NIC["attributes"], "numaNode": {"int": 1}}}, driver="net.example"
    )
    selector = default_compiler().compile(
        'device.attributes["net.example"].rdma == true &&\ndevice.attributes["net.example"].virtual == false &&\n'
        'device.attributes["net.example"].numaNode == 0',
        DEFAULT_1_37,
    )
    assert [selector.matches(slice_, device) for device in slice_.spec.devices] == [True, False]
