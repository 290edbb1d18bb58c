"""`make bench-real` in small: both ways to serve the same pods end rightly, and are reported beside each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.bench.real import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)


def test_twenty_pods_by_kube_scheduler_and_by_the_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "found.json"
    assert main(["--pods=20", "--nodes=5", "--repeat=1", f"--json={path}"]) == 0, capsys.readouterr().err
    found = json.loads(path.read_text())
    (stock,), (ours,) = found["runs"]["stock"], found["runs"]["operator"]
    assert stock.keys() < ours.keys()
    assert ours["writesPerPod"] >= 3  # mark, allocate, release
    assert found["ratios"]["pods/s, operator / stock"]["median"] == pytest.approx(
        ours["podsPerSecond"] / stock["podsPerSecond"]
    )
    assert found["versions"]["kubernetes"].startswith("v1.37.")
    assert "kube-scheduler" in capsys.readouterr().out
