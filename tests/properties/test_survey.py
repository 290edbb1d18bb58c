"""Over random small clusters, a survey counts what the metrics count, and every number follows from the rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from dra_operator.cluster import Cluster
from dra_operator.features import DEFAULT_1_37
from dra_operator.metrics import Inventory
from dra_operator.survey import survey
from dra_operator.testing.builders import device, resource_slice, result, taint_rule
from tests.unit.survey.build import fill, holding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.survey import PoolRow

DRIVERS = ("a.test", "b.test")
POOLS = ("n1", "n2")
DEVICES = ("0", "1", "2")

driver = st.sampled_from(DRIVERS)
pool = st.sampled_from(POOLS)
name = st.sampled_from(DEVICES)


@st.composite
def slices(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        names = draw(st.lists(name, unique=True))
        tainted = draw(st.sets(name))
        found = [
            device(one, taints=[{"key": "k", "effect": "NoSchedule"}] if one in tainted else ())
            for one in names
        ]
        made.append(
            resource_slice(
                f"s-{number}",
                draw(driver),
                found,
                node=draw(pool),
                generation=draw(st.integers(1, 2)),
                resourceSliceCount=draw(st.integers(1, 2)),
            )
        )
    return made


@st.composite
def claims(draw: st.DrawFn) -> list[dict[str, Any]]:
    results = st.builds(
        lambda driver, pool, name, extra: result("gpu", driver, pool, name, **extra),
        driver,
        pool,
        name,
        st.sampled_from([{}, {"adminAccess": True}, {"shareID": "s"}]),
    )
    held = draw(st.lists(st.lists(results, min_size=1, max_size=3), max_size=4))
    return [holding(f"c-{number}", *found) for number, found in enumerate(held)]


rules = st.lists(st.builds(lambda driver: taint_rule(driver, key="rule", driver=driver), driver), max_size=1)


@given(slices(), claims(), rules)
def test_a_survey_counts_what_metrics_count(
    published: list[dict[str, Any]], held: list[dict[str, Any]], tainting: list[dict[str, Any]]
) -> None:
    cluster = Cluster()
    inventory = Inventory(cluster, DEFAULT_1_37)
    cluster.on_change(inventory.changed)
    fill(cluster, *published, *held, *tainting)
    found = survey(cluster, DEFAULT_1_37)

    usable = [row for row in found.pools if row.generation and not row.problem]
    assert _without_zeros(inventory.devices()) == _by_state(usable)
    assert sum(inventory.pools().values()) == sum(bool(row.generation) for row in found.pools)
    for row in found.pools:
        devices = [one for one in found.devices if one.id.pool_id == (row.driver, row.pool)]
        states = Counter(one.state for one in devices if one.slice_name)
        assert row.total == sum(one.slice_name != "" for one in devices)
        assert row.gone == len(devices) - row.total
        assert row.used == states["in use"] + states["shared"]
        assert (row.free, row.tainted, row.unusable) == (
            states["free"],
            states["tainted"],
            states["unusable"],
        )
        assert bool(row.problem) >= bool(row.unusable)


def _by_state(pools: list[PoolRow]) -> dict[tuple[str, ...], float]:
    """As the metrics have it: driver, owned, state."""
    sums: Counter[tuple[str, ...]] = Counter()
    for row in pools:
        sums[row.driver, "false", "free"] += row.free
        sums[row.driver, "false", "allocated"] += row.used
        sums[row.driver, "false", "tainted"] += row.tainted
    return _without_zeros(sums)


def _without_zeros(found: Mapping[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {series: float(number) for series, number in found.items() if number}
