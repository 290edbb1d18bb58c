"""A run that ended wrongly is found out, whatever its figures."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.testing import builders as make

from .verification import WrongEndError, check, problems
from .workload import DRIVER, NAMESPACE, Size, Way, pods

Obj = dict[str, Any]

FINALIZER = "resource.kubernetes.io/delete-protection"


def ended(count: int = 2) -> tuple[list[Obj], list[Obj]]:
    """Pods and claims as they are when all went well."""
    made, claims = pods(Size(pods=count), Way.GATE), []
    for number, pod in enumerate(made):
        pod["metadata"]["uid"] = f"uid-{number}"
        pod["spec"].pop("schedulingGates")
        pod["spec"]["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": make.on_node("n1")}
        }
        pod["spec"]["nodeName"] = "n1"
        pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]}
        claim = make.claim(f"claim-{number}", make.request("gpu", "gpu"), namespace=NAMESPACE)
        claim["metadata"]["finalizers"] = [FINALIZER]
        results = make.result("gpu", DRIVER, "n1", f"gpu-{number}")
        reserved = {"resource": "pods", "name": pod["metadata"]["name"], "uid": f"uid-{number}"}
        claim["status"] = {"allocation": make.allocation(results, node="n1"), "reservedFor": [reserved]}
        claims.append(claim)
    return made, claims


def test_a_right_end_has_no_problems() -> None:
    assert problems(*ended(), 2, pinned=True) == []


def test_without_the_operator_nobody_pins() -> None:
    made, claims = ended()
    for pod in made:
        del pod["spec"]["affinity"]
    assert problems(made, claims, 2, pinned=False) == []
    assert len(problems(made, claims, 2, pinned=True)) == 2


def wrong(what: str) -> tuple[list[Obj], list[Obj]]:
    made, claims = ended()
    first, claim = made[0], claims[0]
    if what == "still gated":
        first["spec"]["schedulingGates"] = [{"name": make.GATE}]
    elif what == "another node":
        claim["status"]["allocation"]["nodeSelector"] = make.on_node("n2")
    elif what == "not reserved":
        claim["status"]["reservedFor"] = []
    elif what == "held twice":
        claim["status"]["allocation"]["devices"] = claims[1]["status"]["allocation"]["devices"]
    elif what == "no claim":
        first["status"] = {}
    elif what == "a pod is missing":
        made.remove(first)
    return made, claims


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("still gated", "pod pod-00000 still waits at its gate"),
        ("another node", "pod pod-00000 is pinned to ['n1'], its claim claim-0 is allocated on ['n2']"),
        ("not reserved", "claim claim-0 is not reserved for pod pod-00000"),
        ("held twice", f"device {DRIVER}/n1/gpu-1 is held by bench/claim-0, bench/claim-1"),
        ("no claim", "pod pod-00000 was placed before its claims were generated"),
        ("a pod is missing", "there are 1 pods instead of 2"),
    ],
)
def test_what_is_wrong_is_told(what: str, words: str) -> None:
    assert words in problems(*wrong(what), 2, pinned=True)
    with pytest.raises(WrongEndError, match="did not end rightly"):
        check(*wrong(what), 2, pinned=True)


def test_a_long_list_of_problems_is_cut() -> None:
    made, claims = ended(30)
    for claim in claims:
        claim["status"]["reservedFor"] = []
    with pytest.raises(WrongEndError, match=r"… and \d+ more$"):
        check(made, claims, 30, pinned=True)
