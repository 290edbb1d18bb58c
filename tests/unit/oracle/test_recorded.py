"""What was recorded of upstream's allocator is compared in all that counts, and in nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.recorded import INPUTS, difference, pairs

SHARE: dict[str, Any] = {"device": "d", "shareID": "x", "consumedCapacity": {"memory": "1024Mi"}}


def results(*devices: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"outcome": "results", "results": [{"devices": {"results": list(devices)}}], **more}


def test_a_line_gives_its_problem_or_one_for_each_copy_of_upstreams() -> None:
    case = {
        **dict.fromkeys(INPUTS),
        "actual": {"stable": {"outcome": "none"}, "experimental": {"outcome": "none"}},
    }

    assert list(pairs("x", {"problem": {"id": "p"}, "result": {"outcome": "none"}})) == [
        ({"id": "p"}, {"outcome": "none"})
    ]
    assert [problem["channel"] for problem, _ in pairs("x", case)] == ["experimental"]
    assert list(pairs("x", {"expression": "true"})) == []


@pytest.mark.parametrize(
    ("now", "differs"),
    [
        (results(SHARE), ""),
        (results(SHARE, allocateNs=7, error="", perNode=False), ""),
        (results({**SHARE, "shareID": "y", "consumedCapacity": {"memory": "1Gi"}}), ""),
        (results({**SHARE, "consumedCapacity": {"memory": "1G"}}), "results"),
        (results({**SHARE, "shareID": None}), "results"),
        (results({**SHARE, "device": "e"}), "results"),
        (results(SHARE, SHARE), "results"),
        (results(SHARE, allocateOneInvocations=3), "allocateOneInvocations"),
        ({"outcome": "none"}, "outcome"),
    ],
)
def test_what_counts_is_compared(now: dict[str, Any], differs: str) -> None:
    found = difference(results(SHARE), now)

    assert found.partition(":")[0] == differs


def test_an_amount_that_upstream_prints_wrongly_is_recorded_as_printed_and_answered_as_it_is() -> None:
    recorded = results({**SHARE, "consumedCapacity": {"memory": "100"}})

    assert not difference(recorded, results({**SHARE, "consumedCapacity": {"memory": "1e23"}}))
    assert difference(recorded, results({**SHARE, "consumedCapacity": {"memory": "1e22"}}))
