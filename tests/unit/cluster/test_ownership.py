"""Which pools are ours (architecture, section 2)."""

from __future__ import annotations

import pytest

from dra_operator.cluster import Cluster
from dra_operator.model import PoolId

from .build import DRIVER, policy, slice_

N1 = PoolId(DRIVER, "n1")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def owner_of(cluster: Cluster, pool_id: PoolId) -> str | None:
    found = cluster.owned(pool_id)
    return found.metadata.name if found else None


def test_a_policy_owns_all_pools_of_a_driver_or_the_named_one(cluster: Cluster) -> None:
    cluster.apply("ADDED", policy("all-nics", [{"driver": "nic"}]))
    cluster.apply("ADDED", policy("one-gpu", [{"driver": DRIVER, "pool": "n1"}]))

    pools = [N1, PoolId(DRIVER, "n2"), PoolId("nic", "n1"), PoolId("nic", "n2")]
    assert [owner_of(cluster, pool_id) for pool_id in pools] == ["one-gpu", None, "all-nics", "all-nics"]


def test_a_changed_policy_owns_what_it_selects_now(cluster: Cluster) -> None:
    cluster.apply("ADDED", policy("p", [{"driver": DRIVER}], 1))
    assert owner_of(cluster, N1) == "p"

    cluster.apply("MODIFIED", policy("p", [{"driver": "nic"}], 2))
    assert (owner_of(cluster, N1), owner_of(cluster, PoolId("nic", "x"))) == (None, "p")

    cluster.apply("DELETED", policy("p", [{"driver": "nic"}], 3))
    assert owner_of(cluster, PoolId("nic", "x")) is None


def test_of_overlapping_policies_the_oldest_rules_and_of_equally_old_ones_the_first_by_name(
    cluster: Cluster,
) -> None:
    everything = [{"driver": DRIVER}]
    cluster.apply("ADDED", policy("young", everything, creationTimestamp="2026-01-01T00:00:02Z"))
    cluster.apply("ADDED", policy("b", everything, creationTimestamp="2026-01-01T00:00:01Z"))
    cluster.apply("ADDED", policy("a", everything, creationTimestamp="2026-01-01T00:00:01Z"))

    assert [found.metadata.name for found in cluster.policies_matching(N1)] == ["a", "b", "young"]
    assert owner_of(cluster, N1) == "a"


def test_a_policy_that_is_being_deleted_owns_its_pools_until_it_is_gone_unless_another_has_them(
    cluster: Cluster,
) -> None:
    everything, deleted = [{"driver": DRIVER}], "2026-01-01T00:00:09Z"
    cluster.apply(
        "ADDED",
        policy("old", everything, deletionTimestamp=deleted, creationTimestamp="2025-01-01T00:00:00Z"),
    )
    assert owner_of(cluster, N1) == "old"

    cluster.apply("ADDED", policy("next", everything, creationTimestamp="2026-01-01T00:00:00Z"))
    assert owner_of(cluster, N1) == "next"


def test_the_pools_of_a_policy_are_the_published_ones_that_it_rules(cluster: Cluster) -> None:
    for name in ("n2", "n1"):
        cluster.apply("ADDED", slice_(name, node=name))
    cluster.apply("ADDED", slice_("nic", node="n1", driver="nic"))
    cluster.apply("ADDED", policy("a", [{"driver": DRIVER, "pool": "n1"}]))
    cluster.apply("ADDED", policy("b", [{"driver": DRIVER}]))

    found = {name: list(cluster.pools_of_policy(name)) for name in ("a", "b", "unknown")}

    assert found == {"a": [N1], "b": [PoolId(DRIVER, "n2")], "unknown": []}
