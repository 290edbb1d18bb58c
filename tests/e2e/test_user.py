"""A user with rights in one namespace, who is no admin, on a real control plane: everything is done and understood with kubectl.

The admin installs with the README's command, publishes classes and a policy, labels the namespace and binds Kubernetes' own role
`edit` there. All the rest is typed by the user, and what is judged is what the user reads.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.e2e.fleet import PCIE_ROOT, Fleet
from tests.e2e.harness.objects import claim, claim_template, exactly, pod, policy
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.terminal import Terminal
from tests.e2e.install_fixtures import open_installation
from tests.e2e.inventory import everything, everything_at_rest, settled, traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace
    from tests.e2e.install_fixtures import Installation

pytestmark = pytest.mark.timeout(300)

INSTALL_ENVIRONMENT = {"DRA_OPERATOR_SETTLE_SECONDS": "1"}

Object = dict[str, Any]

APPLY = "kubectl apply -f -"
CREATE = "kubectl create -f -"
ANEW = "kubectl replace --force -f -"
MINE = "deployments,pods,resourceclaims,resourceclaimtemplates"
ALL = "kubectl get all,resourceclaims,resourceclaimtemplates"


@pytest.fixture(scope="module")
def module_installation(install_plane: ControlPlane) -> Iterator[Installation]:
    """Installed when a test first wants it, removed after the last one."""
    with open_installation(install_plane, INSTALL_ENVIRONMENT, install=False) as opened:
        yield opened


@pytest.fixture
def installation(module_installation: Installation) -> Installation:
    """The operator, installed; the same one for all tests that do not remove it."""
    if not module_installation.left():
        module_installation.install()
    return module_installation


@pytest.fixture
def team(install_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A namespace that the admin has labelled."""
    for opened in open_workspace(install_plane, request, labels=ENABLED):
        yield opened
        # Whoever makes pods anew goes before them.
        opened.kubectl.run("delete", "deployments", "--all", "--cascade=foreground")


@pytest.fixture
def fleet(team: Workspace) -> Fleet:
    """The drivers' and the admin's part: an 8-GPU node with NICs, a node with two accelerators, and a class for each kind."""
    made = Fleet.of(team)
    made.training_node()
    node = made.plain_node(1, 2, "acc")
    made.publish("acc", node, [{"name": "acc-0"}, {"name": "acc-1"}])
    return made


@pytest.fixture
def owned(fleet: Fleet, installation: Installation) -> Fleet:
    """All these devices are the operator's."""
    fleet.own("gpu", "net", "acc")
    fleet.workspace.until_gated()
    return fleet


@pytest.fixture
def jane(team: Workspace) -> Terminal:
    """A user with `edit` in the team's namespace, and nothing else anywhere."""
    return Terminal.jane(team, "edit")


def cel(text: str) -> list[Object]:
    return [{"cel": {"expression": text}}]


def deployment(name: str, template: str, replicas: int) -> Object:
    """Pods that use one template each."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": pod(name, templates={"devices": template})["spec"],
            },
        },
    }


def gpu_and_nic(fleet: Fleet) -> Object:
    """A GPU and the fast NIC beside it."""
    near = {"requests": ["gpu", "nic"], "matchAttribute": PCIE_ROOT}
    requests = exactly("gpu", fleet.name("gpu")), exactly("nic", fleet.name("efa"))
    return claim_template("gpu-and-nic", *requests, constraints=[near])


def of_all_kinds(fleet: Fleet) -> list[Object]:
    """What users write: a Deployment, a claim that two pods share, alternatives, devices that belong together."""
    acc = fleet.name("acc")
    choices = [
        {"name": "many", "deviceClassName": acc, "count": 8},
        {"name": "one", "deviceClassName": acc},
    ]
    return [
        gpu_and_nic(fleet),
        deployment("train", "gpu-and-nic", 2),
        claim("shared", exactly("acc", acc)),
        pod("left", claims={"acc": "shared"}),
        pod("right", claims={"acc": "shared"}),
        claim_template("any", {"name": "acc", "firstAvailable": choices}),
        pod("choosy", templates={"acc": "any"}),
    ]


def until_all_run(jane: Terminal) -> None:
    jane.type("kubectl rollout status deployment/train --timeout=30s")
    jane.type("kubectl wait pod --all --for=condition=Ready --timeout=30s")


def held(jane: Terminal) -> dict[str, Object]:
    """The rows of `kubectl dra claims`, by claim."""
    return {row["claim"]: row for row in jane.read("kubectl dra claims -o json")}


# --------------------------------------------------------------------------- the good way


def test_each_kind_of_claim_is_served_shown_and_given_back(owned: Fleet, jane: Terminal) -> None:
    jane.type(APPLY, *of_all_kinds(owned))
    until_all_run(jane)
    jane.type("kubectl get pods,resourceclaims -o wide")

    jane.shows("kubectl describe pod choosy", f"to {owned.node(1)}")
    # kube-scheduler may see a pod before it sees the claim's allocation, and says so once.
    warnings = [line for line in jane.type("kubectl events").splitlines() if "Warning" in line]
    assert [line for line in warnings if "FailedScheduling" not in line] == []
    shared = jane.type("kubectl describe resourceclaim shared")
    assert all(word in shared for word in ("left", "right", owned.name("acc")))
    rows = held(jane)
    assert sorted(rows["shared"]["consumers"]) == ["left", "right"]
    assert {row["state"] for row in rows.values()} == {"in use"}
    assert {row["node"] for name, row in rows.items() if name.startswith("train")} == {owned.node()}
    assert "shared" in jane.type("kubectl dra claims")

    # A claim that is in use goes with its last pod, and says until then that it is going.
    jane.type("kubectl delete resourceclaim shared --wait=false")
    jane.type("kubectl get resourceclaim shared")
    jane.type("kubectl delete deployment train --cascade=foreground")
    jane.type("kubectl delete pod left right choosy")
    jane.shows("kubectl get resourceclaims", "No resources found")
    jane.type("kubectl delete resourceclaimtemplate --all")
    assert "No resources found" in jane.type(ALL)
    assert jane.type("kubectl dra claims") == f"No claims found in namespace {owned.workspace.namespace}.\n"


def test_a_pod_that_waits_says_why_and_goes_on_when_its_user_makes_room(owned: Fleet, jane: Terminal) -> None:
    jane.type(APPLY, gpu_and_nic(owned), deployment("train", "gpu-and-nic", 4))
    jane.type("kubectl rollout status deployment/train --timeout=30s")
    jane.type(APPLY, pod("late", templates={"devices": "gpu-and-nic"}))

    told = jane.shows("kubectl describe pod late", "AllocationFailed", "dra-operator")
    assert "SchedulingGated" in jane.type("kubectl get pod late")
    assert "4 in use" in told
    assert "Waiting: the pod goes on by itself as soon as that changes" in told
    (pending,) = [row for row in held(jane).values() if row["state"] == "pending"]
    assert pending["waiting"] == ["late"]
    jane.type("kubectl dra claims")

    jane.type("kubectl scale deployment/train --replicas=3")
    jane.type("kubectl wait pod/late --for=condition=Ready --timeout=30s")
    jane.shows("kubectl events --for pod/late", "Allocated")


# --------------------------------------------------------------------------- mistakes


class Mistake(NamedTuple):
    """A request that is wrong, what its user is told, and the request as the text says that it should be."""

    request: Object
    reason: str
    words: str
    right: Object


def mistakes(fleet: Fleet) -> dict[str, Mistake]:
    gpu, request = fleet.name("gpu"), "spec.devices.requests[0].exactly"
    good = exactly("gpu", gpu)
    kind = 'device.attributes["{}"].architecture == "{}"'
    return {
        "no-class": Mistake(
            exactly("gpu", f"no.{gpu}"),
            "DeviceClassMissing",
            f"{request}.deviceClassName: DeviceClass no.{gpu}, which request gpu asks for, does not exist",
            good,
        ),
        "too-many": Mistake(
            exactly("gpu", gpu, count=33),
            "InvalidClaim",
            f"{request}.count: request gpu asks for 33 devices; a claim can hold 32",
            exactly("gpu", gpu, count=2),
        ),
        "no-attribute": Mistake(
            exactly("gpu", gpu, selectors=cel(f'device.attributes["{gpu}"].speed > 3')),
            "SelectorFailed",
            f"{request}.selectors[0].cel.expression: fails on device {gpu}/{fleet.node()}/gpu-0: no such key: speed",
            exactly("gpu", gpu, selectors=cel(f'device.attributes["{gpu}"].index > 3')),
        ),
        "typo": Mistake(
            exactly("gpu", gpu, selectors=cel(kind.format(gpu, "Ampre"))),
            "AllocationFailed",
            f"8 not matching the selector {kind.format(gpu, 'Ampre')}). Waiting will not help",
            exactly("gpu", gpu, selectors=cel(kind.format(gpu, "Ampere"))),
        ),
        "too-much": Mistake(
            exactly("gpu", gpu, capacity={"requests": {"memory": "10Ti"}}),
            "AllocationFailed",
            "8 with too little capacity (memory: 10Ti asked for, 80Gi there)",
            good,
        ),
    }


def test_each_mistake_is_told_with_its_remedy_and_mended_by_its_user(owned: Fleet, jane: Terminal) -> None:
    wrong = mistakes(owned)
    jane.type(CREATE, *(item for name, one in wrong.items() for item in pair(name, one.request)))
    jane.type(CREATE, pod("early", templates={"gpu": "later"}), pod("claimless", claims={"gpu": "mine"}))
    syntax = jane.refused(CREATE, claim("syntax", exactly("gpu", owned.name("gpu"), selectors=cel("1 =="))))
    assert "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value" in syntax

    for name, one in wrong.items():
        told = jane.shows(f"kubectl describe pod {name}", one.reason)
        assert one.words in told
        assert jane.type(f"kubectl logs {name}") == ""  # as Kubernetes has it for pods without a node
    namespace = owned.workspace.namespace
    told = jane.shows("kubectl events --for pod/early", "TemplateMissing")
    assert f"ResourceClaimTemplate {namespace}/later does not exist: create it" in told
    told = jane.shows("kubectl events --for pod/claimless", "ClaimNotReady")
    assert f"create ResourceClaim {namespace}/mine, and the pod goes on by itself" in told
    jane.shows("kubectl describe resourceclaim too-many", "asks for 33 devices")
    jane.type("kubectl get pods")

    jane.type(ANEW, *(item for name, one in wrong.items() for item in pair(name, one.right)))
    request = exactly("gpu", owned.name("gpu"))
    jane.type(APPLY, claim_template("later", request), claim("mine", request))
    jane.type("kubectl wait pod --all --for=condition=Ready --timeout=30s")
    for name in ("early", "claimless"):
        jane.shows(f"kubectl events --for pod/{name}", "Allocated")


def pair(name: str, request: Object) -> list[Object]:
    return [claim(name, request), pod(name, claims={"gpu": name})]


def test_a_wrong_template_of_a_deployment_is_replaced_and_its_pods_made_anew(
    owned: Fleet, jane: Terminal
) -> None:
    acc = owned.name("acc")
    jane.type(APPLY, claim_template("one", exactly("acc", f"no.{acc}")), deployment("web", "one", 1))
    told = jane.shows("kubectl describe pod --selector=app=web", "DeviceClassMissing")
    assert f"DeviceClass no.{acc}, which request acc asks for, does not exist" in told
    assert "or name another in the template or manifest and create claim and pod anew" in told

    jane.type(ANEW, claim_template("one", exactly("acc", acc)))
    jane.type("kubectl rollout restart deployment/web")

    jane.type("kubectl rollout status deployment/web --timeout=60s")


# --------------------------------------------------------------------------- what is not the user's


def test_what_is_not_the_users_is_refused_in_plain_words(owned: Fleet, jane: Terminal) -> None:
    jane.type(APPLY, *pair("mine", exactly("acc", owned.name("acc"))))
    jane.type("kubectl wait pod/mine --for=condition=Ready --timeout=30s")
    nothing = json.dumps({"status": {"allocation": None}})
    for line in (
        "kubectl get allocationpolicies",
        "kubectl get deviceclasses,resourceslices",
        "kubectl get pods -n dra-operator",
        "kubectl logs -n dra-operator deployment/dra-operator",
        "kubectl delete devicetaintrules --all",
        "kubectl label namespace default dra-operator.io/enabled=true",
        f"kubectl patch resourceclaim mine --subresource=status --type=merge --patch='{nothing}'",
        "kubectl dra claims -A",
        "kubectl dra claims -n default",
        "dra-operator release",
    ):
        assert 'forbidden: User "jane" cannot ' in jane.refused(line)
    assert "forbidden" in jane.refused(CREATE, policy("mine", {"driver": owned.name("acc")}))
    assert "Name a namespace of yours" in jane.refused("kubectl dra claims -A")
    look_with_the_shipped_roles(owned, jane)


def look_with_the_shipped_roles(owned: Fleet, jane: Terminal) -> None:
    """The admin lets her look where events send users; she may change nothing there."""
    admin, namespace = owned.workspace.kubectl, owned.workspace.namespace
    roles = ("dra-operator-view", "dra-operator-device-viewer")
    names = [f"{namespace}-{role}" for role in roles]
    for name, role in zip(names, roles, strict=True):
        admin.run("create", "clusterrolebinding", name, f"--clusterrole={role}", "--user=jane")
    try:
        jane.shows("kubectl get deviceclasses,resourceslices", owned.name("gpu"))
        jane.shows("kubectl get allocationpolicies", owned.name("policy"))
        assert "forbidden" in jane.refused("kubectl delete allocationpolicies --all")
    finally:
        admin.delete("clusterrolebinding", *names)


def test_a_gate_that_its_user_takes_off_brings_no_device(owned: Fleet, jane: Terminal) -> None:
    """The taint keeps kube-scheduler off our pools, and the pod says why it gets nothing and what to do."""
    acc = owned.name("acc")
    jane.type(APPLY, *pair("big", exactly("acc", acc, count=3)))
    jane.shows("kubectl describe pod big", "AllocationFailed", "3 wanted")
    off = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
    jane.type(f"kubectl patch pod big --type=json --patch='{off}'")

    told = jane.shows("kubectl describe pod big", "FailedScheduling", "NotGated")
    assert "recreate the pod with the gate" in told


# --------------------------------------------------------------------------- removal


def test_the_removal_leaves_the_users_things_as_they_were_and_nothing_else(
    module_installation: Installation, team: Workspace, fleet: Fleet, jane: Terminal
) -> None:
    admin = module_installation.control_plane.kubectl
    if module_installation.left():
        module_installation.uninstall()
    before = everything_at_rest(admin)
    module_installation.install()
    admin.apply(policy("all", *({"driver": fleet.name(word)} for word in ("gpu", "net", "acc"))))
    admin.wait("allocationpolicy/all", "condition=Ready")
    team.until_gated()
    jane.type(APPLY, *of_all_kinds(fleet))
    until_all_run(jane)
    jane.type(APPLY, *pair("waits", exactly("acc", fleet.name("acc"), count=2)))
    jane.shows("kubectl describe pod waits", "AllocationFailed")
    kept = of_user(jane, without="waits")

    bound = f"{team.namespace}-looks"
    admin.run("create", "clusterrolebinding", bound, "--clusterrole=dra-operator-view", "--user=jane")

    said = module_installation.uninstall()

    print(said)
    assert f"your ClusterRoleBindings to its roles stay, without effect: {bound}" in said
    admin.delete("clusterrolebinding", bound)
    after = everything(admin)
    assert traces(after) == []
    assert {key: settled(after[key]) for key in before if key in after} == {
        key: settled(item) for key, item in before.items()
    }
    assert [key for key in after if key not in before and f" {team.namespace}/" not in key] == []
    assert of_user(jane, without="waits") == kept

    jane.type("kubectl delete pod choosy left right")
    jane.type("kubectl wait pod/waits --for=condition=Ready --timeout=60s")
    jane.type(f"kubectl delete {MINE} --all --cascade=foreground")
    assert "No resources found" in jane.type(ALL)
    assert set(everything(admin)) == set(before)


def of_user(jane: Terminal, without: str) -> dict[str, Object]:
    """The user's objects by kind and name, spec and status as they are; without those of a certain name."""
    jane.type(f"{ALL} -o wide")
    items = jane.read(f"kubectl get {MINE},replicasets -o json")["items"]
    return {
        f"{item['kind']} {item['metadata']['name']}": {"uid": item["metadata"]["uid"]}
        | {key: item.get(key) for key in ("spec", "status")}
        for item in items
        if item["metadata"]["name"] != without
    }
