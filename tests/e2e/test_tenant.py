"""A tenant who may do everything in one namespace, and nothing elsewhere, tries to have the operator touch another's claims.

What it forges: names, statuses, owners with the uids of other pods, the operator's own marks, PodGroups, gates. The victim's objects must stay
exactly as they are (resourceVersion included), the victim's devices the victim's, and the operator must go on serving.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import Fleet
from tests.e2e.harness.kubectl import KubectlError
from tests.e2e.harness.objects import claim, claim_template, exactly, pod
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.kubectl import Kubectl
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.workspace import Workspace

Object = dict[str, Any]

OPERATOR_FLAGS = ("--settle-seconds=1", "--sweep-seconds=1")
"""What is forged as unused is swept early, if at all."""

EVERYTHING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: everything}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: everything}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: everything}
subjects: [{kind: User, name: jane}]
"""
MARK = "dra-operator.io/allocated"
KUBERNETES_FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture
def victim(managed: Workspace) -> Fleet:
    """Two of three devices are held: by a shared claim with two pods, and by a claim made out of a template."""
    fleet = Fleet.of(managed)
    fleet.plain(3)
    fleet.own("gpu")
    gpu = exactly("gpu", fleet.name("gpu"))
    managed.apply(
        claim("shared", gpu),
        claim_template("one-gpu", gpu),
        pod("a", claims={"gpu": "shared"}),
        pod("b", claims={"gpu": "shared"}),
        pod("c", templates={"gpu": "one-gpu"}),
    )
    fleet.running("a", "b", "c")
    return fleet


@pytest.fixture
def mallory(
    control_plane: ControlPlane, module_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Kubectl]:
    """Kubectl of the tenant, in a namespace of its own where it may do everything, statuses included."""
    for workspace in open_workspace(control_plane, request, labels=ENABLED):
        workspace.kubectl.apply(EVERYTHING)
        tenant = workspace.kubectl.as_user(control_plane.user_kubeconfig(workspace.namespace))
        wait_until(partial(tenant.may, "create", "resourceclaims.resource.k8s.io"), "the role is known")
        yield tenant


def state(fleet: Fleet) -> dict[str, tuple[str, str]]:
    """Uid and resourceVersion of all of the victim's claims and pods."""
    kubectl = fleet.workspace.kubectl
    return {
        f"{found['kind']}/{found['metadata']['name']}": (
            found["metadata"]["uid"],
            found["metadata"]["resourceVersion"],
        )
        for kind in ("resourceclaims", "pods")
        for found in kubectl.get_all(kind)
    }


def held(fleet: Fleet) -> set[str]:
    """The victim's devices."""
    return {
        result["device"]
        for found in fleet.workspace.kubectl.get_all("resourceclaims")
        for result in found["status"]["allocation"]["devices"]["results"]
    }


def forged_owner(victims_pod: Object) -> Object:
    """Metadata of a claim that says it was generated for the victim's pod, and allocated by the operator."""
    meta = victims_pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {
        "ownerReferences": [owner],
        "annotations": {
            "resource.kubernetes.io/pod-claim-name": "gpu",
            MARK: "generated",
            "dra-operator.io/epoch": "1",
        },
        "finalizers": [KUBERNETES_FINALIZER],
    }


def forge(mallory: Kubectl, fleet: Fleet) -> None:
    """All that the tenant can write; what the API server refuses is no business of the operator's."""
    victims_pod = fleet.workspace.kubectl.get("pod", "c")
    victims_claim = victims_pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    gpu = exactly("gpu", fleet.name("gpu"))
    # Names of the victim's claims and pods, in the tenant's namespace: one allocated, one that never will be.
    mallory.create(claim("shared", gpu))
    mallory.create(pod("a", claims={"gpu": "shared"}))
    mallory.create(pod("c", claims={"gpu": victims_claim}))
    # A claim "generated" for the victim's pod, with the operator's mark and finalizer; the garbage collector will not let it be for long.
    forged = claim("forged", gpu)
    forged["metadata"] |= forged_owner(victims_pod)
    mallory.create(forged)
    # A pod that says its claim is the victim's.
    mallory.create(pod("liar", templates={"gpu": "none"}))
    status = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": victims_claim}]}}
    mallory.patch("pod", "liar", status, "--subresource=status")
    # A pod of a group of the victim's name, and one with gates that look like ours.
    mallory.create(pod("grouped", claims={"gpu": "shared"}, schedulingGroup={"podGroupName": "train"}))
    mallory.create(
        pod("odd", claims={"gpu": "shared"}, gates=["dra-operator.io/allocate", "dra-operator.io/owned"])
    )


def refused(mallory: Kubectl, fleet: Fleet) -> None:
    """What stands between the tenant and the victim is the API server's: rights, and the cluster-wide right to allocate (cp V-78)."""
    status = {
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "gpu",
                            "driver": fleet.name("gpu"),
                            "pool": fleet.node(),
                            "device": min(held(fleet)),
                        }
                    ]
                }
            }
        }
    }
    mallory.create(claim("bare", exactly("gpu", fleet.name("gpu"))))
    with pytest.raises(KubectlError, match="resourceclaims/binding"):
        mallory.patch("resourceclaim", "bare", status, "--subresource=status")
    with pytest.raises(KubectlError, match="Forbidden"):
        mallory.in_namespace(fleet.workspace.namespace).get_all("resourceclaims")


def test_another_tenants_claims_are_not_touched(
    victim: Fleet, mallory: Kubectl, module_operator: OperatorProcess
) -> None:
    before, devices = state(victim), held(victim)
    forge(mallory, victim)
    refused(mallory, victim)

    # The last device is all that the tenant gets, once its own odd pods are out of the way.
    mallory.delete("pods", "grouped", "odd")
    mallory.until(
        "pod", "a", lambda found: found["status"]["phase"] == "Running", "served with its own claim"
    )
    mine = mallory.get("resourceclaim", "shared")["status"]["allocation"]["devices"]["results"]
    assert {result["device"] for result in mine}.isdisjoint(devices)
    # Marks on a claim in use, and its end: only the tenant's own device comes free.
    mallory.run("annotate", "resourceclaim", "shared", f"{MARK}=sha256:forged", "--overwrite")
    mallory.delete("pods", "a", "c", "liar")
    mallory.until("resourceclaim", "shared", lambda found: "allocation" not in found["status"], "given back")

    assert held(victim) == devices
    assert state(victim) == before
    assert module_operator.ready()
    victim.workspace.apply(pod("d", templates={"gpu": "one-gpu"}))
    victim.running("d")
    assert state(victim).items() >= before.items()
