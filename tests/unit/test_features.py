"""Which features an older Kubernetes has switched off (cp G-1)."""

from __future__ import annotations

import pytest

from dra_operator.features import (
    DEFAULT_1_37,
    FIELDS,
    GATES,
    ON_SINCE,
    THERE_SINCE,
    Features,
    off_by_default,
)


@pytest.mark.parametrize(
    ("minor", "gates"),
    [
        (37, set()),
        (36, {"DRAFractionalCapacityRange"}),
        (
            34,
            {
                "DRAConsumableCapacity",
                "DRADeviceBindingConditions",
                "DRADeviceTaints",
                "DRAFractionalCapacityRange",
                "DRAPartitionableDevices",
            },
        ),
    ],
)
def test_what_is_off_is_named_with_the_version_that_has_it_on(minor: int, gates: set[str]) -> None:
    found = off_by_default(minor)
    assert found.keys() == gates
    for gate, words in found.items():
        assert words.endswith(f"off by default before Kubernetes 1.{ON_SINCE[gate]}")


def test_the_table_agrees_with_the_features_of_1_37() -> None:
    for switch, gates in GATES.items():
        since = [ON_SINCE[gate] for gate in gates]
        is_on = all(minor is not None and minor <= 37 for minor in since)
        assert getattr(DEFAULT_1_37, switch) == is_on, switch


def test_every_switch_has_its_gates_and_every_gate_its_row_in_each_table() -> None:
    assert set(GATES) == set(Features.__struct_fields__)
    gates = {gate for several in GATES.values() for gate in several}
    assert gates == set(ON_SINCE)
    assert gates <= set(THERE_SINCE)
    assert set(FIELDS) == set(THERE_SINCE)


def test_nothing_is_on_before_it_is_there() -> None:
    for gate, since in ON_SINCE.items():
        assert since is None or since >= THERE_SINCE[gate], gate
