"""Twenty fail-overs under load: a device is never given twice. `failovers` says how; 200 by hand (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .failovers import GUARDED, LEASES, NODES, STAGES, trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)  # a minute or two on a quiet machine

FAILOVERS = 20


async def test_twenty_fail_overs_and_no_device_given_twice(tmp_path: Path) -> None:
    outcome = await trial(FAILOVERS, seed=1, folder=tmp_path)
    print(outcome.text())
    assert outcome.doubles == []
    assert outcome.pairs == 0
    assert outcome.ways.total() == FAILOVERS
    assert outcome.allocations > FAILOVERS  # there was something to double
    assert outcome.served > NODES
    # Nothing that was held back until another worked was taken, but for marks that mean nothing by themselves; there was some of each kind.
    assert outcome.done_late == []
    assert {code for (resource, code) in outcome.late if resource != GUARDED[0]} <= {404, 409}
    assert {resource for resource, _ in outcome.late} == {*GUARDED, LEASES}
    assert len(STAGES) <= outcome.ways["asleep"]
    assert outcome.odd == []
