"""The main job, from a pod with a template to a bound pod with a device."""

from __future__ import annotations

import pytest

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template())


@pytest.mark.parametrize(
    ("standins", "generate"),
    [(("binding", "kubelet"), "always"), (("claims", "binding", "kubelet"), "never")],
)
async def test_a_pod_with_a_template_gets_its_device(standins: tuple[str, ...], generate: str) -> None:
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web") == "n1")
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]
