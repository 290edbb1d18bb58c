"""The benches themselves work (`tests.bench`, `tests.bench.selectors`, `tests.bench.allocations`, `tests.bench.start_up`): miniature runs with all their processes, and what they say when a run fails.

`tests.bench.reporting` is tried in `test_reporting`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dra_operator.testing.fakeapi.server import FakeApi
from tests.contract.client import Server

from . import allocations, hard, selectors, start_up
from .__main__ import main
from .figures import TABLE
from .load import LoadError, Timeline, burst, client, create, is_released
from .workload import Size, Way, common, pods

if TYPE_CHECKING:
    from pathlib import Path

MINIATURE = ("--pods=10", "--nodes=3", "--devices=4", "--repeat=1", "--rest=0.1")
START_UP = {"startLarge", "memoryReady", "memoryStartPeak", "startCpu"}
REAL_ONLY = {"schedulerCpu", "apiserverCpu", "etcdCpu", "controllerManagerCpu", "totalCpu", "allWrites"}


def test_ten_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    assert main([*MINIATURE, "--generate-claims=operator", f"--json={path}"]) == 0, capsys.readouterr().err
    found = json.loads(path.read_text())
    (run,) = found["runs"]["operator"]
    assert (found["parameters"]["pods"], found["parameters"]["generator"]) == (10, "operator")
    assert run["writesPerPod"] >= 4  # create and record, allocate, release
    assert run.keys() == {key for key in TABLE if key not in REAL_ONLY | START_UP}
    assert all(value >= 0 for value in run.values())
    assert "pods placed" in capsys.readouterr().out


def test_selectors_over_a_hundred_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    assert selectors.main(["--devices=100", "--rounds=1", f"--json={path}"]) == 0
    assert "the same again" in capsys.readouterr().out
    assert json.loads(path.read_text())["fleet"]["evaluated"] == 0


def test_calls_of_the_allocator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    assert allocations.main(["--rounds=1", "--seconds=0.05", f"--json={path}"]) == 0
    assert "hard problems" in capsys.readouterr().out
    assert json.loads(path.read_text()).keys() == {*allocations.USUAL, *hard.FAMILIES}


def test_ten_pods_that_the_operator_binds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    assert main([*MINIATURE, "--way=scheduler", f"--json={path}"]) == 0, capsys.readouterr().err
    found = json.loads(path.read_text())
    (run,) = found["runs"]["operator"]
    assert found["parameters"]["way"] == "scheduler"
    assert run["writesPerPod"] >= 3  # mark, allocate, bind
    assert "bound by the operator" in capsys.readouterr().out


def test_a_start_among_many_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    size = ("--claims=60", "--pods=30", "--slices=4", "--repeat=1")
    assert start_up.main([*size, f"--json={path}"]) == 0, capsys.readouterr().err
    (run,) = json.loads(path.read_text())["runs"]["operator"]
    assert run.keys() == START_UP
    assert all(value > 0 for value in run.values())
    assert "30 running pods" in capsys.readouterr().out


def test_an_operator_that_is_ready_before_it_knows_all_fails_the_start() -> None:
    text = '# TYPE dra_operator_model_objects gauge\ndra_operator_model_objects{kind="Pod"} 3.0\n'
    assert start_up.known(text) == {"Pod": 3}
    crowd = start_up.Crowd(claims=2, pods=3, slices=1)
    assert start_up.missing(text, crowd) == {"ResourceClaim": None, "ResourceSlice": None}
    assert crowd.problem() is not None  # two claims cannot be shared out among three pods


def test_an_operator_that_does_not_get_ready_fails_the_bench(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "found.json"
    assert main([*MINIATURE, "--operator-flag=--no-such-flag", f"--json={path}"]) == 1
    assert "--no-such-flag" in capsys.readouterr().err
    assert not path.exists()


async def test_pods_that_nobody_places_end_the_load_generator(tmp_path: Path) -> None:
    made, timeline = pods(Size(pods=2), Way.GATE), Timeline(is_released)
    async with FakeApi() as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        async with client(Server.of_kubeconfig(kubeconfig)) as api:
            await create(api, common(), 1)
            with pytest.raises(
                LoadError, match=r"2 of 2 pods were not placed within 0.05 s, the first is pod-00000"
            ):
                await burst(api, made, timeline, 2, 0.05)
            with pytest.raises(LoadError, match=r"Pod pod-00000 was refused: .*already exists"):
                await create(api, made, 1)
