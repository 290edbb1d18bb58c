"""Whether a run ended rightly, by the API objects alone: a fast wrong answer is no figure.

Beside what must hold of any cluster at rest (`tests.e2e.harness.audit`): every pod was placed, and pinned pods to their claim's node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.harness.audit import claim_names, find_problems

from .workload import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Obj = dict[str, Any]

SHOWN = 10
"""Problems that a message names."""


class WrongEndError(Exception):
    """Pods or claims are not as they should be; the text names the first of them."""


def problems(pods: Iterable[Obj], claims: Iterable[Obj], count: int, *, pinned: bool) -> list[str]:
    """Everything that is wrong, one sentence each; empty is good.

    Args:
        pods: all of the run's namespace.
        claims: all of the cluster.
        count: pods that there should be.
        pinned: whether the operator was to place them, so that each must name its node.
    """
    mine, there = list(pods), list(claims)
    by_name = {
        claim["metadata"]["name"]: claim for claim in there if claim["metadata"]["namespace"] == NAMESPACE
    }
    found = [text for pod in mine for text in _of_pod(pod, by_name, pinned=pinned)]
    if len(mine) != count:
        found.append(f"there are {len(mine)} pods instead of {count}")
    return [*found, *find_problems(there, mine, NAMESPACE)]


def check(pods: Iterable[Obj], claims: Iterable[Obj], count: int, *, pinned: bool) -> None:
    """As `problems`.

    Raises:
        WrongEndError: there are some.
    """
    if found := problems(pods, claims, count, pinned=pinned):
        more = f"\n… and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise WrongEndError("the run did not end rightly:\n" + "\n".join(found[:SHOWN]) + more)


def _of_pod(pod: Obj, claims: Mapping[str, Obj], *, pinned: bool) -> Iterator[str]:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    if pod["spec"].get("schedulingGates"):
        yield f"pod {name} still waits at its gate"
        return
    names = list(claim_names(pod))
    if len(names) != len(pod["spec"]["resourceClaims"]):
        yield f"pod {name} was placed before its claims were generated"
    for claim_name in names:
        claim = claims.get(claim_name, {})
        consumers = claim.get("status", {}).get("reservedFor") or []
        if uid not in {consumer["uid"] for consumer in consumers}:
            yield f"claim {claim_name} is not reserved for pod {name}"
        if pinned and pinned_nodes(pod) != _nodes(_selector(claim)):
            yield f"pod {name} is pinned to {pinned_nodes(pod)}, its claim {claim_name} is allocated on {_nodes(_selector(claim))}"


def pinned_nodes(pod: Obj) -> list[str]:
    """Nodes that the required affinity of a pod names."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return _nodes(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))


def _selector(claim: Obj) -> Obj | None:
    allocation = claim.get("status", {}).get("allocation") or {}
    found: Obj | None = allocation.get("nodeSelector")
    return found


def _nodes(selector: Obj | None) -> list[str]:
    return [
        name
        for term in (selector or {}).get("nodeSelectorTerms", [])
        for field in term.get("matchFields", [])
        if field["key"] == "metadata.name"
        for name in field["values"]
    ]
