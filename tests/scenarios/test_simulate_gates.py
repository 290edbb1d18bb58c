"""`kubectl dra simulate` for API servers with other feature gates: what is off is dropped and told, what is on counts."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.cli.simulate import begin
from dra_operator.lint import gates
from dra_operator.testing.builders import (
    Obj,
    claim,
    device,
    device_class,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    template,
)
from dra_operator.testing.fakeapi import FakeApi, discovery

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

DRIVER = "cpu.test"
CLASS = device_class("cores", driver=DRIVER)
NODE = node("n1", allocatable={"cpu": "8", "memory": "16Gi"})
CORE = {
    "cpu": {"mapping": {"deviceMultiplier": "5"}},
    "memory": {"overhead": {"perPod": "1Gi", "perContainer": "512Mi"}},
}
GATE = "--feature-gates=DRANodeAllocatableResources=true"


def cores() -> Obj:
    found = [device(name, nodeAllocatableResources=CORE) for name in ("a", "b")]
    return resource_slice("n1-cores", DRIVER, found, node="n1")


def user(name: str) -> Obj:
    found = pod(name, pod_claim("c", template="t"))
    found["spec"]["containers"][0]["resources"] = {"claims": [{"name": "c"}], "requests": {"cpu": "1"}}
    return found


OBJECTS = (NODE, CLASS, cores(), template("t", request("core", "cores")), user("one"), user("two"))


def run(*arguments: str, objects: tuple[Obj, ...] = OBJECTS) -> Result:
    stdin = "\n---\n".join(json.dumps(obj) for obj in objects)
    return CliRunner().invoke(main, ["simulate", "-f", "-", *arguments], input=stdin)


def test_what_a_gate_that_is_off_drops_is_told_by_object_place_and_flag() -> None:
    shown = run()

    assert shown.exit_code == 0
    assert shown.stderr.count("warning: FeatureOff: ResourceSlice n1-cores") == 2
    assert "spec.devices[1].nodeAllocatableResources" in shown.stderr
    assert "--feature-gates=DRANodeAllocatableResources=true" in shown.stderr
    assert "take of n1" not in shown.stdout


def test_with_the_gate_devices_take_of_their_node_and_the_room_counts() -> None:
    """Five cores and one asked for leave two of eight (alloc J-3)."""
    shown = run(GATE)

    assert shown.exit_code == 3
    assert "FeatureOff" not in shown.stderr
    assert (
        "The devices of Pod default/one take of n1, beside its requests: cpu 5, memory 1536Mi.\n"
        in shown.stdout
    )
    assert "Pod default/two is not placed" in shown.stdout
    assert "Insufficient cpu for the pod and what its devices take" in shown.stdout


def test_what_they_take_stands_in_the_status_of_the_pod_and_counts_as_input_again() -> None:
    whole = json.loads(run(GATE, "--output=json").stdout)

    by_name = {one["metadata"]["name"]: one for one in whole["items"] if one["kind"] == "Pod"}
    [status] = by_name["one"]["status"]["nodeAllocatableResourceClaimStatuses"]
    assert status == {
        "resourceClaimName": "one-c-00000",
        "containers": ["main"],
        "mapping": [{"name": "cpu", "quantity": "5"}],
        "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}],
    }
    assert "nodeAllocatableResourceClaimStatuses" not in by_name["two"].get("status", {})
    again = run(GATE, objects=(*OBJECTS, *whole["items"], user("three")))
    assert "Pods default/two, default/three are not placed" in again.stdout


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), {"DRANodeAllocatableResources"}),
        (("DRANodeAllocatableResources=true",), set()),
        (("DRADeviceTaints=false,DRANodeAllocatableResources=true",), {"DRADeviceTaints"}),
        (
            ("DRADeviceTaints=false", "DRAConsumableCapacity=0"),
            {"DRADeviceTaints", "DRAConsumableCapacity", "DRANodeAllocatableResources"},
        ),
    ],
)
def test_each_field_hangs_on_its_own_gate(flags: tuple[str, ...], expected: set[str]) -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    mixed = device("a", taints=[taint], allowMultipleAllocations=True, nodeAllocatableResources=CORE)
    objects = (NODE, CLASS, resource_slice("n1-cores", DRIVER, [mixed], node="n1"), claim("c"))

    shown = run(*(f"--feature-gates={flag}" for flag in flags), objects=objects)

    assert {gate for gate in gates.KNOWN if f"({gate})" in shown.stderr} == expected


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("DRANodeAllocatableResource=true", "did you mean DRANodeAllocatableResources?"),
        ("DRANodeAllocatableResources", "a feature gate is true or false"),
    ],
)
def test_a_flag_that_is_none_ends_it_with_a_hint(flag: str, words: str) -> None:
    shown = run(f"--feature-gates={flag}")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert words in shown.stderr


def test_gates_without_fields_change_nothing() -> None:
    """The flag of a server can be taken over as it is."""
    flag = "--feature-gates=DynamicResourceAllocation=true,DRADeviceTaintRules=false,DRAExtendedResource=true"

    assert run(GATE, flag).output == run(GATE).output


def test_what_the_operator_has_off_is_told_to_be_so() -> None:
    shown = run("--feature-gates=DRAListTypeAttributes=true,DRADerivedAttributes=true")

    assert (
        "With DRADerivedAttributes, DRAListTypeAttributes this is what kube-scheduler's allocator could give: the operator allocates without them unless its setting featureGates says so too"
        in shown.stderr
    )
    assert "kube-scheduler" not in run(GATE).stderr


# --- on top of a cluster


@pytest.mark.parametrize(
    ("minor", "flags", "dropped"),
    [
        (37, (), set()),
        (None, (), set()),
        (36, (), {"DRAFractionalCapacityRange"}),
        (34, ("DRAFractionalCapacityRange=true",), {"DRAConsumableCapacity", "DRADeviceTaints"}),
    ],
)
def test_files_are_for_the_version_of_the_cluster(
    minor: int | None, flags: tuple[str, ...], dropped: set[str]
) -> None:
    """A server's gates cannot be asked for: those of its version count, and what is named."""
    read = begin("default", flags, minor)

    assert dropped <= gates.DEFAULT - read.gates
    assert bool(read.notes) is bool(dropped)
    assert all(gate in read.notes[0] for gate in dropped)
    assert read.given.features == gates.features(gates.DEFAULT)


async def test_a_live_server_says_which_version_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(discovery.VERSION, "emulationMinor", "35")
    tainted = device("b", taints=[{"key": "broken", "effect": "NoSchedule"}])
    files = json.dumps(resource_slice("n2-cores", DRIVER, [tainted], node="n2"))
    async with FakeApi() as server:
        for obj in (NODE, CLASS, cores()):
            server.create(obj)
        where = f"--kubeconfig={server.write_kubeconfig(tmp_path / 'kubeconfig')}"
        command = ["simulate", where, "-f", "-"]
        plain = await asyncio.to_thread(CliRunner().invoke, main, command, files)
        named = [*command, "--feature-gates=DRADeviceTaints=true"]
        told = await asyncio.to_thread(CliRunner().invoke, main, named, files)

    assert "Note: The cluster is Kubernetes 1.35" in plain.stderr
    assert "warning: FeatureOff: ResourceSlice n2-cores: spec.devices[0].taints" in plain.stderr
    assert "FeatureOff" not in told.stderr
