"""Which features an older Kubernetes has switched off (cp G-1)."""

from __future__ import annotations

import pytest

from dra_operator.features import DEFAULT_1_37, GATES, ON_SINCE, off_by_default


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
