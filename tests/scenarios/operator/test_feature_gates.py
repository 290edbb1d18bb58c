"""Feature gates as the cluster has them: named in a setting, as the control plane cannot be asked (alloc G-2)."""

from __future__ import annotations

import pytest

from dra_operator.errors import InvalidSettings
from dra_operator.settings import build

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import World

STOCK = ("claims", "binding", "kubelet")
DERIVED = {
    "devices": {
        "requests": [
            {
                "name": "r",
                "exactly": {
                    "deviceClassName": "gpu",
                    "derivedAttributes": [{"name": "example.com/driver", "expression": "device.driver"}],
                    "count": 2,
                },
            }
        ],
        "constraints": [{"requests": ["r"], "matchAttribute": "example.com/driver"}],
    }
}
"""A claim that only a cluster with DRADerivedAttributes takes."""

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), template("gpu", DERIVED), policy())


async def test_a_feature_that_is_named_is_served() -> None:
    async with World(*STOCK, feature_gates="DRADerivedAttributes=true") as here:
        here.add(*CLUSTER, pod("web", by_template("gpu")))
        await here.start()
        await here.until(lambda: here.node_of("web"))
        assert [len(held) for held in here.devices().values()] == [2]


async def test_one_that_is_not_is_told_with_its_gate() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER, pod("web", by_template("gpu")))
        await here.start()
        await here.until(lambda: here.messages("InvalidClaim", "web"))
        assert "derived attributes" in here.messages("InvalidClaim", "web")[0]
        assert not here.devices()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DRADerivedAttribute=true", "did you mean DRADerivedAttributes"),
        ("DRADerivedAttributes", "a feature gate is true or false"),
    ],
)
def test_a_wrong_one_is_named(text: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=f"--feature-gates.*{words}"):
        build(feature_gates=text)
