"""Admin access: who may look at devices that others use, and what becomes of pods where that is not allowed any longer (cp V-70 to V-74)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import by_name, claim, device_class, node, pod, policy, requests, slice_
from .world import world

if TYPE_CHECKING:
    from .world import World

STOCK = ("claims", "binding", "kubelet")

LABEL = "resource.kubernetes.io/admin-access"
PATH = "spec.devices.requests[0].exactly.adminAccess"
NAMESPACE = "/api/v1/namespaces/default"


async def label(here: World, value: str | None) -> None:
    await here.user.request(
        "PATCH",
        NAMESPACE,
        body={"metadata": {"labels": {LABEL: value}}},
        content_type="application/merge-patch+json",
    )


def eye(name: str) -> dict[str, object]:
    """A claim that looks at all devices."""
    wanted = requests()
    wanted["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": "gpu",
        "allocationMode": "All",
        "adminAccess": True,
    }
    return claim(name, wanted)


async def test_a_monitor_sees_what_others_use_waits_without_the_label_and_keeps_what_it_has() -> None:
    async with world(*STOCK, objects=(device_class(), policy(), node("n1"), slice_("n1", 2))) as here:
        await label(here, "true")
        here.add(claim("mine"), pod("user", by_name("mine")), eye("first"), eye("second"))
        await here.until(lambda: here.node_of("user"), "an ordinary pod runs")
        here.add(pod("watch-1", by_name("first")))
        await here.until(lambda: here.node_of("watch-1"), "the monitor runs beside it")
        assert len(here.devices()["first"]) == 2

        await label(here, None)
        here.add(pod("watch-2", by_name("second")))
        await here.until(lambda: here.messages("AdminAccessNotAllowed", "watch-2"), "told")
        (text,) = here.messages("AdminAccessNotAllowed", "watch-2")
        assert text.startswith(f"ResourceClaim default/second: {PATH}: Namespace default lacks the label")
        await here.until(
            lambda: here.messages("AdminAccessNotAllowed", "second") == [text], "the claim is told, too"
        )
        assert (here.is_gated("watch-2"), sorted(here.devices())) == (True, ["first", "mine"])

        await label(here, "true")
        await here.until(lambda: here.node_of("watch-2"), "it goes on by itself")
        assert here.devices()["second"] == here.devices()["first"]
        assert here.node_of("watch-1") == "n1"
