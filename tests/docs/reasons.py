"""docs/reasons.md, out of the table of reason codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.explain.codes import CHANGES, DEVICES, NODES, STATES

from .markdown import generated, joined, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.explain.codes import Code

INTRODUCTION: Final = """
# Why a pod or claim is not served

`kubectl dra explain POD`, `pod/NAME` or `claim/NAME` tells in its first line the verdict, the cause and the remedy; then, for each request, what became of the devices, pool by pool; then which
node comes closest, and which changes would work. It only reads: a cluster (with the operator running or not), a snapshot (`--from FILE`, see [snapshot.md](snapshot.md)), or manifests
(`-f FILE`, as often as you like). `-o wide` shows all reasons, `-o json` and `-o yaml` the codes below, which are stable.

* **Verdict**: `served` (the claims hold devices); `now` (they could be had now; nothing is reserved); `not now` (something that is in use, tainted or incomplete has to pass first); `never` (as things are
  published and written); `gave up` (the search stopped at its limit, which says nothing about whether there is a solution).
* **Figures** count each device once, by the first thing that speaks against it, in this order: selectors of the class, selectors of the request (with the clause that `&&` joins, and what the device has
  instead), pool, features, use (by which claim and pods, since when), taints, capacity, counters. Pools of which the same is to be said are one row. Sizes are bounded: 12 rows a request, the rest is counted.
* **Changes** are each tried by the allocator on input so changed, at most 48 searches, on the three nodes that come closest; one that was not found to work is not shown. Changes are looked for one at a time.
  Freeing a claim counts its devices only, not what its pods take of the node besides.
* **Exit status**: 0 served, or could be now; 3 not; 2 there is no such pod or claim, or it cannot be read.

All pools count as the operator's unless there are AllocationPolicies. A pod that does not wait for the operator is explained with the pools that no policy owns, as kube-scheduler sees them.
Reasons of events, such as `DeviceClassMissing`, are codes, too: [runbook.md](runbook.md) has them.
"""


def page() -> str:
    """The whole page."""
    return joined(
        generated("operator/dra_operator/explain/codes.py"),
        INTRODUCTION,
        "## Devices\n\nWhy a device does not serve a request.",
        _table(DEVICES),
        "## Nodes and pods\n\nWhy a node does not serve a pod.",
        _table(NODES),
        "## States\n\nWhere nothing is wrong with devices, or nobody has to do anything.",
        _table(STATES),
        "## Changes\n\nWhat is proposed, the cheapest first.",
        _table(CHANGES),
    )


def _table(codes: Mapping[str, Code]) -> str:
    return table(
        ("code", "meaning", "remedy"),
        [(f"`{name}`", code.meaning, code.remedy) for name, code in codes.items()],
    )
