"""The nodes that we let a pod go to are those that kube-scheduler lets it go to, so that no pinned pod is stranded (cp I-27).

The worlds are random but fixed; `python -m tests.e2e.feasible` runs any number of others.
"""

from __future__ import annotations

import pytest

from tests.e2e.feasible.compare import Comparison, compare, oracle

SEEDS = range(5)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """All seeds, compared."""
    with oracle() as asked:
        *_, found = compare(asked, SEEDS)
    return found


def test_the_same_nodes_pass(comparison: Comparison) -> None:
    assert comparison.differences == []


def test_the_worlds_are_worth_the_comparison(comparison: Comparison) -> None:
    """Pods pass and are turned down often enough, and for reasons of each kind: worlds that no filter minds would prove nothing."""
    assert comparison.passed > comparison.pairs // 10
    assert comparison.refused.total() > comparison.pairs // 10
    assert {text for text in REASONS if any(text in found for found in comparison.refused)} == REASONS


REASONS = {
    "Insufficient cpu",
    "Insufficient ephemeral-storage",
    "Insufficient example.com/licence",
    "Insufficient hugepages-2Mi",
    "Insufficient memory",
    "Too many pods",
    "node(s) cannot reach the devices",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "CSI driver is not installed on the node",
    "is being deleted",
    "node(s) did not have enough free storage",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) exceed max volume count",
    "node(s) had no available disk",
    "node(s) had untolerated taint",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    "node(s) were unschedulable",
    "pod has unbound immediate PersistentVolumeClaims",
    "waiting for ephemeral volume controller to create the persistentvolumeclaim",
}
