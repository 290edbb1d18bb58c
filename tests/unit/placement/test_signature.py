"""Which pods are alike, so that one failed search speaks for all."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from dra_operator.model import Pod, ResourceClaim, from_object
from dra_operator.placement import Allocate, signature


def pod(name: str, **spec: Any) -> Pod:
    entries = [{"name": "gpu", "resourceClaimTemplateName": f"template-of-{name}"}]
    return from_object(
        Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": {"resourceClaims": entries, **spec}}
    )


def claim(name: str, count: int = 1) -> ResourceClaim:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}
    metadata = {"name": name, "namespace": "default"}
    return from_object(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def test_pods_that_differ_in_names_only_are_alike() -> None:
    one, other = (
        signature(pod("a"), Allocate(ours=(claim("x"),))),
        signature(pod("b"), Allocate(ours=(claim("y"),))),
    )
    assert one == other != b""


def test_what_placement_reads_tells_pods_apart() -> None:
    work = Allocate(ours=(claim("x"),))
    resources = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    different = [
        signature(pod("a"), work),
        signature(pod("a", containers=resources), work),
        signature(pod("a", nodeSelector={"zone": "a"}), work),
        signature(pod("a"), Allocate(ours=(claim("x", 2),))),
        signature(pod("a"), Allocate(ours=(claim("x"),), theirs=(claim("z"),))),
        signature(pod("a"), Allocate(theirs=(claim("x"),))),
    ]
    assert len(set(different)) == len(different)


def test_pods_with_something_of_their_own_are_like_no_other() -> None:
    answers = [
        signature(pod("a"), Allocate(allocated=(claim("x"),))),
        signature(pod("a"), Allocate(bound_node="n1")),
    ]
    assert answers == [b"", b""]


def test_labels_tell_pods_apart_only_where_somebody_looks_at_them() -> None:
    """Those of a StatefulSet or an indexed Job differ in every pod: a burst of them is to cost one search all the same."""
    work = Allocate(ours=(claim("x"),))
    spread = [{"topologyKey": "zone"}]

    def alike(*, by_labels: bool = False, **spec: Any) -> bool:
        pods = [
            structs.replace(made, metadata=structs.replace(made.metadata, labels={"index": index}))
            for made, index in ((pod("a", **spec), "0"), (pod("a", **spec), "1"))
        ]
        one, other = (signature(made, work, by_labels=by_labels) for made in pods)
        return one == other

    assert alike()
    assert not alike(by_labels=True)
    assert not alike(topologySpreadConstraints=spread)
    assert not alike(affinity={"podAntiAffinity": {}})
