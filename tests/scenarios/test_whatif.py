"""What-ifs of `kubectl dra simulate` as its user runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.testing.builders import (
    Obj,
    device_class,
    devices,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    template,
)

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

WORLD = (
    node("n1"),
    device_class("gpu", driver="gpu.test"),
    resource_slice("n1-gpus", "gpu.test", devices(2), node="n1"),
    template("t", request("gpu", "gpu", count=2)),
    *(pod(name, pod_claim("gpu", template="t")) for name in ("a", "b")),
)


def text(*objects: Obj) -> str:
    return "\n---\n".join(json.dumps(obj) for obj in objects)


def run(*arguments: str, objects: tuple[Obj, ...] = WORLD) -> Result:
    return CliRunner().invoke(main, ["simulate", "-f", "-", *arguments], input=text(*objects))


def test_what_was_supposed_is_told_first_and_stands_in_the_list() -> None:
    assert run().exit_code == 3

    shown = run("--add-node=n1")
    listed = run("--add-node=n1", "--output=json")

    assert shown.exit_code == 0
    supposed = "1 more node(s) like n1, ready and with no pods: n1-new-1; their pools are gpu.test/n1-new-1"
    assert shown.stderr.splitlines()[0] == f"Supposed: {supposed}."
    assert "gpu.test/n1-new-1/gpu-0,gpu-1" in shown.stdout
    assert json.loads(listed.stdout)["supposed"] == [supposed]
    assert "supposed" not in json.loads(run("--output=json").stdout)


def test_a_file_is_a_template_of_nodes_and_not_a_node_itself(tmp_path: Path) -> None:
    file = tmp_path / "shape.yaml"
    file.write_text(text(node("big"), resource_slice("big-gpus", "gpu.test", devices(2), node="big")))

    shown = run(f"--add-node={file}", "--count=2", "--drain=n1")

    assert shown.exit_code == 0
    assert {line.split()[2] for line in shown.stdout.splitlines()[1:]} == {"big-new-1", "big-new-2"}


def test_suppositions_are_made_in_one_order_whatever_that_of_the_flags() -> None:
    """A copy of a node is not drained, nor are its devices gone."""
    one = run("--drain=n1", "--remove=gpu.test/n1/gpu-0", "--add-node=n1")
    other = run("--add-node=n1", "--remove=gpu.test/n1/gpu-0", "--drain=n1")

    assert one.output == other.output
    assert "gpu.test/n1-new-1/gpu-0" in one.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--count=2",), "--count: says how many nodes: name one to copy with --add-node"),
        (("--add-node=n2",), "--add-node n2: is neither a node nor a file; nodes there are: n1"),
        (("--drain=n2",), "--drain n2: there is no node of that name"),
        (("--remove=gpu.test/n1/gpu-2",), "no ResourceSlice has device gpu.test/n1/gpu-2"),
        (("--taint=gpu.test/n1/gpu-0=a",), "write the taint as key[=value]:effect"),
        (("--free=c",), "--free c: there is no ResourceClaim default/c"),
    ],
)
def test_what_cannot_be_supposed_is_exit_2_with_its_flag_and_a_remedy(
    arguments: tuple[str, ...], words: str
) -> None:
    shown = run(*arguments)

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert words in shown.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (text(*WORLD[1:3]), "a template has one Node and its ResourceSlices, and this has 0 Nodes"),
        ("kind: [", "`kubectl dra lint -f"),
    ],
)
def test_a_file_that_is_no_template_is_told(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "shape.yaml"
    file.write_text(content)

    shown = run(f"--add-node={file}")

    assert shown.exit_code == 2
    assert f"--add-node {file}" in shown.stderr
    assert words in shown.stderr
