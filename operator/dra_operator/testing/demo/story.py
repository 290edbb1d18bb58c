"""The steps of the demo, in order; each is shown, and then checked against the API.

Called by `__main__`, once everything is wired. A step that cannot be confirmed raises `DemoFailed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .errors import DemoFailed
from .facts import Held, attribute, devices_of, held_twice, in_words, is_gated, node_of, phase_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .kubectl import Kubectl
    from .mirror import Mirror
    from .narrator import Narrator
    from .screen import Screen

POLICY = "gpus-and-nics"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
WORKERS = tuple(f"research/train-{number}" for number in range(4))
SERVERS = tuple(f"serving/serve-{number}" for number in range(2))
BIG, NEXT_BIG, TOO_BIG = "research/big-0", "research/big-1", "research/too-big"


@dataclass(frozen=True, slots=True)
class Stage:
    """What the steps act on."""

    screen: Screen
    kubectl: Kubectl
    mirror: Mirror
    narrator: Narrator


def require(holds: object, what: str) -> None:
    """Check a claim of the demo.

    Raises:
        DemoFailed: it does not hold.
    """
    if not holds:
        raise DemoFailed(f"the API says otherwise: {what}")


async def define(stage: Stage, crd: Path) -> None:
    """The operator's own kind."""
    await stage.kubectl.within(crd.parents[1])("apply", "-f", str(crd.relative_to(crd.parents[1])))
    await stage.kubectl(
        "wait", "crd/allocationpolicies.dra-operator.io", "--for=condition=Established", "--timeout=30s"
    )


async def publish(stage: Stage) -> None:
    """Nodes of two kinds, and their devices."""
    stage.screen.step(
        "Nodes, and the devices that their drivers publish",
        "Two nodes with 8 GPUs and 4 network adapters each, two with 4 small GPUs each. On a cluster, kubelets and drivers do this.",
    )
    await stage.kubectl("apply", "-f", "nodes-gpu-efa.yaml", "-f", "nodes-small-gpu.yaml")
    await stage.kubectl("wait", "nodes", "--all", "--for=condition=Ready", "--timeout=30s")
    await stage.kubectl("get", "nodes,resourceslices")
    await stage.mirror.until(lambda: len(stage.mirror.slices) == 6, "six slices are published")


async def own(stage: Stage) -> None:
    """The policy, and the operator taking over."""
    await stage.kubectl("apply", "-f", "policy.yaml")
    await stage.kubectl("wait", f"allocationpolicy/{POLICY}", "--for=condition=Ready", "--timeout=30s")
    await stage.kubectl("get", "allocationpolicies,devicetaintrules")
    published = sum(len(slice_["spec"]["devices"]) for slice_ in stage.mirror.slices.values())
    await stage.mirror.until(
        lambda: _policy(stage, "devices") == published, f"the policy counts all {published} devices"
    )
    require(_policy(stage, "allocatedDevices") == 0, "nothing is allocated yet")


async def prepare(stage: Stage) -> None:
    """Classes, namespaces, templates."""
    stage.screen.step("Device classes, namespaces and claim templates")
    await stage.kubectl("apply", "-f", "classes.yaml", "-f", "teams.yaml", "-f", "templates.yaml")


async def train(stage: Stage) -> None:
    """A constraint over the devices of two drivers."""
    stage.screen.step(
        "Pods that want a GPU and the network adapter on the same PCIe root",
        "The operator generates each pod's claim, picks devices of both drivers and thereby the node, and releases the pod.",
    )
    await stage.kubectl("apply", "-f", "pods-training.yaml")
    await _until_served(stage, WORKERS)
    for pod_key in WORKERS:
        devices = _devices(stage, pod_key)
        roots = {attribute(stage.mirror.slices.values(), device, PCIE_ROOT) for device in devices}
        drivers = sorted(device.driver for device in devices)
        require(drivers == ["dra.net", "gpu.nvidia.com"], f"{pod_key} has a device of each driver: {drivers}")
        require(len(roots) == 1 and None not in roots, f"{pod_key}'s devices share a PCIe root: {roots}")
        stage.screen.say(f"   {pod_key}: {in_words(devices)} are both on PCIe root {min(map(str, roots))}")
    await stage.kubectl("get", "resourceclaims", "-n", "research")


async def serve(stage: Stage) -> None:
    """A prioritized list that falls to its second choice."""
    stage.screen.step(
        "Pods with a prioritized list: a Hopper GPU, or else two small ones",
        "No node has a Hopper GPU, so the second choice counts.",
    )
    await stage.kubectl("apply", "-f", "pods-serving.yaml")
    await _until_served(stage, SERVERS)
    for pod_key in SERVERS:
        chosen = [device.request for device in _devices(stage, pod_key)]
        require(chosen == ["gpu/two-small"] * 2, f"{pod_key} got its second choice: {chosen}")


async def fill(stage: Stage) -> None:
    """A whole node's GPUs."""
    stage.screen.step("A pod that takes all eight large GPUs of a node")
    await stage.kubectl("apply", "-f", "pod-big-0.yaml")
    await _until_served(stage, [BIG])
    require(len(_devices(stage, BIG)) == 8, f"{BIG} has eight devices")


async def refuse(stage: Stage) -> None:
    """One pod that has to wait, one that waits in vain, and the reasons."""
    stage.screen.step(
        "Pods that cannot be served, and why",
        "Both get an event with the reason: big-1 wants eight large GPUs of one node, too-big wants twelve.",
    )
    await stage.kubectl("apply", "-f", "pod-big-1.yaml", "-f", "pod-too-big.yaml")
    for pod_key, verdict in ((NEXT_BIG, "Waiting:"), (TOO_BIG, "Waiting will not help")):
        await stage.mirror.until(partial(_reason, stage, pod_key), f"an event says why {pod_key} waits")
        require(
            verdict in _reason(stage, pod_key), f"{pod_key} is told {verdict!r}: {_reason(stage, pod_key)}"
        )
        require(is_gated(stage.mirror.pods[pod_key]), f"{pod_key} still has its gate")
        require(not _devices(stage, pod_key), f"{pod_key} holds nothing")
    namespace, name = TOO_BIG.split("/")
    told = await stage.kubectl("events", "--for", f"pod/{name}", "-n", namespace)
    require("AllocationFailed" in told, "kubectl shows the event")
    await stage.kubectl("get", "pods", "--all-namespaces", "-o", "wide")


async def free(stage: Stage) -> None:
    """Devices come free, and the pod that waited is served."""
    stage.screen.step(
        "A pod goes, its devices come free, and the pod that waited for them is served",
    )
    before = set(_devices(stage, BIG))
    namespace, name = BIG.split("/")
    await stage.kubectl("delete", "pod", name, "-n", namespace)
    await _until_served(stage, [NEXT_BIG])
    require(_ids(before) == _ids(_devices(stage, NEXT_BIG)), f"{NEXT_BIG} has the devices that {BIG} had")
    require(not _devices(stage, TOO_BIG), f"{TOO_BIG} still holds nothing")
    await stage.kubectl("get", "resourceclaims", "--all-namespaces")


async def end(stage: Stage) -> None:
    """All pods go; nothing is left behind."""
    stage.screen.step("All pods go; no claim and no device is left behind")
    for namespace in ("research", "serving"):
        await stage.kubectl("delete", "pods", "--all", "-n", namespace)
    await stage.mirror.until(lambda: not stage.mirror.pods, "all pods are gone")
    await stage.mirror.until(lambda: not stage.mirror.claims, "all generated claims are gone")
    await stage.mirror.until(lambda: _policy(stage, "allocatedDevices") == 0, "no device counts as allocated")
    await stage.kubectl("get", "allocationpolicies")
    for pod_key in (*WORKERS, *SERVERS, BIG, NEXT_BIG):
        require(stage.narrator.stories[pod_key].is_gone, f"{pod_key}'s devices were seen to come free")


async def play(stage: Stage) -> None:
    """All steps after the operator runs and owns the pools.

    Raises:
        DemoFailed: something did not happen.
    """
    for step in (prepare, train, serve, fill, refuse, free, end):
        await step(stage)


def summary(stage: Stage) -> list[tuple[str, str, str, str]]:
    """Rows of the final table: pod, node, devices, outcome."""
    rows = []
    for story in sorted(stage.narrator.stories.values(), key=lambda story: (not story.devices, story.pod)):
        waited = " after waiting" if story.waits and story.devices else ""
        outcome = f"served{waited}, devices free again" if story.devices else "never served: no such node"
        rows.append((story.pod, story.node or "-", in_words(story.devices) or "-", outcome))
    return rows


async def _until_served(stage: Stage, pod_keys: Iterable[str]) -> None:
    """Wait until pods run where their devices are, and the audience has been told; then check that no device is held twice."""
    for pod_key in pod_keys:
        await stage.mirror.until(partial(_is_served, stage, pod_key), f"{pod_key} runs with its devices")
        places = {device.pool for device in _devices(stage, pod_key)}
        where = node_of(stage.mirror.pods[pod_key])
        require(places == {where}, f"{pod_key} runs on {where}, where its devices are: {places}")
    twice = held_twice(stage.mirror.claims.values())
    require(not twice, f"no device is held by two claims: {twice}")


def _is_served(stage: Stage, pod_key: str) -> bool:
    pod, story = stage.mirror.pods.get(pod_key), stage.narrator.stories.get(pod_key)
    return bool(pod and phase_of(pod) == "Running" and story and story.devices)


def _devices(stage: Stage, pod_key: str) -> tuple[Held, ...]:
    return devices_of(stage.mirror.pods[pod_key], stage.mirror.claims)


def _ids(devices: Iterable[Held]) -> list[str]:
    return sorted(map(str, devices))


def _reason(stage: Stage, pod_key: str) -> str:
    story = stage.narrator.stories.get(pod_key)
    return story.waits if story else ""


def _policy(stage: Stage, count: str) -> int | None:
    value = stage.mirror.policies.get(POLICY, {}).get("status", {}).get(count)
    return None if value is None else int(value)
