"""Pods that name the operator as their scheduler, on a real control plane: allocated for and bound by it, beside kube-scheduler.

No gate, no pin; the namespaces are not enabled, so that no admission policy has a say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.model import GATE, Pod, from_object
from dra_operator.placement.volumeclaims import entries
from tests.e2e.fleet import Fleet, conditions, gates, is_unschedulable
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, claim_template, device, exactly, node, pod
from tests.e2e.harness.waiting import wait_until
from tests.unit.manifests.build import kustomize, of_kind, overlay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

OURS = "dra-operator"


def bound(name: str, **how: Any) -> Object:
    """A pod for the operator to bind."""
    return pod(name, **{"schedulerName": OURS, **how})


def asking(cpu: str) -> list[Object]:
    """Containers that ask for so much."""
    return [{"name": "main", "image": "registry.test/workload:1", "resources": {"requests": {"cpu": cpu}}}]


@pytest.fixture
def fleet(ungated: Workspace) -> Fleet:
    """Two nodes with two devices each, in pools of the operator's."""
    made = Fleet.of(ungated)
    made.plain(2, nodes=2)
    made.own("gpu")
    ungated.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def test_a_pod_is_bound_with_its_device_and_told_as_kube_scheduler_tells_it(fleet: Fleet) -> None:
    fleet.workspace.apply(bound("train", templates={"gpu": "one-gpu"}))

    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == fleet.node()
    assert "affinity" not in served["spec"]
    assert conditions(served)["PodScheduled"] == ("True", "")
    assert fleet.devices("train") == {"gpu": ["gpu-0"]}
    assert fleet.told("train", "Scheduled") == (
        f"Successfully assigned {fleet.workspace.namespace}/train to {fleet.node()}"
    )
    assert problems(fleet.workspace.kubectl, fleet.workspace.namespace) == []


def test_bound_and_gated_pods_share_a_claim(fleet: Fleet) -> None:
    """One allocation; whoever comes later follows it to its node, by either way in."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("shared", exactly("gpu", fleet.name("gpu"))), bound("a", claims={"gpu": "shared"})
    )
    fleet.running("a")
    fleet.workspace.apply(
        bound("b", claims={"gpu": "shared"}),
        pod("c", claims={"gpu": "shared"}, gates=[GATE]),
    )
    served = fleet.running("a", "b", "c")

    assert {found["spec"]["nodeName"] for found in served} == {fleet.node()}
    consumers = kubectl.get("resourceclaim", "shared")["status"]["reservedFor"]
    assert {entry["name"] for entry in consumers} == {"a", "b", "c"}


def test_a_pod_that_waits_says_so_as_autoscalers_read_it_and_goes_when_it_can(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    big = claim_template("two-gpus", exactly("gpu", fleet.name("gpu"), count=2))
    fleet.workspace.apply(
        big, *(bound(f"big-{number}", templates={"gpu": "two-gpus"}) for number in range(3))
    )
    waiting = wait_until(
        lambda: [found for found in kubectl.get_all("pods") if is_unschedulable(found)], "one waits"
    )
    (name,) = (found["metadata"]["name"] for found in waiting)

    # Both are written anew while the others are on their way, each in its time.
    told, _ = wait_until(
        lambda: (scheduled_message(fleet, name), fleet.told(name, "AllocationFailed")),
        "condition and event say the same",
        timeout=60,
        accept=lambda pair: pair[0] == pair[1],
    )
    assert "0/" in told
    described = kubectl.run("describe", "pod", name)
    assert "PodScheduled" in described
    assert told[:60] in described

    others = {f"big-{number}" for number in range(3)} - {name}
    kubectl.delete("pod", others.pop())
    (served,) = fleet.running(name)
    assert conditions(served)["PodScheduled"] == ("True", "")


def scheduled_message(fleet: Fleet, name: str) -> str:
    """Why a pod is not bound, by its status."""
    found = fleet.workspace.kubectl.get("pod", name)["status"]["conditions"]
    return str(next(item["message"] for item in found if item["type"] == "PodScheduled"))


def test_a_pod_with_a_claim_of_kube_schedulers_stays_with_the_reason(fleet: Fleet) -> None:
    """Also one that is shared: as soon as another pod has had it allocated, it is followed to its node."""
    kubectl = fleet.workspace.kubectl
    fleet.publish("nic", fleet.node(1), [device("nic-0")])
    fleet.workspace.apply(
        claim("theirs", exactly("nic", fleet.name("nic"))), bound("ours", claims={"nic": "theirs"})
    )

    assert "ResourceClaim" in fleet.told("ours", "ClaimNotOurs")
    kubectl.until(
        "pod",
        "ours",
        lambda found: conditions(found).get("PodScheduled") == ("False", "SchedulerError"),
        "told in its status, too",
    )

    fleet.workspace.apply(pod("stock", claims={"nic": "theirs"}))
    served = fleet.running("ours", "stock")
    assert {found["spec"]["nodeName"] for found in served} == {fleet.node(1)}
    consumers = kubectl.get("resourceclaim", "theirs")["status"]["reservedFor"]
    assert {entry["name"] for entry in consumers} == {"ours", "stock"}


def test_gates_hold_it_too(fleet: Fleet) -> None:
    """Ours is only taken off; the API server lets nobody bind while another's is there."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        bound("mine", templates={"gpu": "one-gpu"}, gates=[GATE]),
        bound("other", templates={"gpu": "one-gpu"}, gates=["example.com/quota"]),
    )
    (served,) = fleet.running("mine")
    assert "affinity" not in served["spec"]

    fleet.told("other", "OtherGates")
    assert conditions(kubectl.get("pod", "other"))["PodScheduled"] == ("False", "SchedulingGated")
    kubectl.patch("pod", "other", {"spec": {"schedulingGates": None}})
    fleet.running("other")


# --- the admission policy that sets the name


@pytest.fixture
def naming(ungated: Workspace, tmp_path: Path) -> Fleet:
    """A namespace of a label of its own for which the component `bind-pods` is in force; the shared policy stays as it is."""
    label = {"corner": ungated.namespace}
    ungated.control_plane.kubectl.run("label", "namespace", ungated.namespace, f"corner={ungated.namespace}")
    folder = overlay(tmp_path, components=["manifests/components/bind-pods"])
    for found in of_kind(kustomize(folder), "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"):
        found["metadata"]["name"] += f"-{ungated.namespace}"
        if "policyName" in found["spec"]:
            found["spec"]["policyName"] = f"{found['spec']['policyName']}-{ungated.namespace}"
        else:
            found["spec"]["matchConstraints"]["namespaceSelector"] = {"matchLabels": label}
        ungated.apply(found)
    made = Fleet.of(ungated)
    made.plain(2)
    made.own("gpu")
    ungated.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def test_the_policy_names_us_on_pods_whose_constraints_we_evaluate_and_gates_the_others(
    naming: Fleet,
) -> None:
    kubectl = naming.workspace.kubectl
    how = {"templates": {"gpu": "one-gpu"}}
    probe = pod("probe", **how)
    wait_until(lambda: placed_by(dry_run(naming, probe)) == (OURS, []), "the policy is in force")
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}}
    hard, soft = ({**spread, "whenUnsatisfiable": word} for word in ("DoNotSchedule", "ScheduleAnyway"))
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "x"}}
    plain = {
        "named": pod("named", **how),
        "soft": pod("soft", **how, topologySpreadConstraints=[soft]),
        "hard": pod("hard", **how, topologySpreadConstraints=[hard]),
        "elsewhere": pod("elsewhere", **how, volumes=[data]),
    }
    others = {
        "held": pod("held", **how, gates=["example.com/quota"]),
        "free": pod("free"),
        "stranger": pod("stranger", **how, schedulerName="other"),
    }
    cases = plain | others
    named: tuple[str, list[str]] = (OURS, [])
    gated: tuple[str, list[str]] = ("default-scheduler", [GATE])

    assert {name: placed_by(dry_run(naming, made)) for name, made in cases.items()} == {
        **{name: gated if has_volume_claims(made) else named for name, made in plain.items()},
        "held": ("default-scheduler", ["example.com/quota", GATE]),
        "free": ("default-scheduler", []),
        "stranger": ("other", [GATE]),
    }
    naming.workspace.apply(cases["named"])
    (served,) = naming.running("named")
    assert "affinity" not in served["spec"]
    assert kubectl.get("pod", "named")["spec"]["schedulerName"] == OURS


def has_volume_claims(made: Object) -> bool:
    return any(True for _ in entries(from_object(Pod, made)))


def dry_run(fleet: Fleet, made: Object) -> Object:
    """A pod as the API server would store it."""
    found: Object = json.loads(
        fleet.workspace.kubectl.run(
            "create", "--dry-run=server", "--output=json", "-f", "-", stdin=json.dumps(made)
        )
    )
    return found


def placed_by(found: Object) -> tuple[str, list[str]]:
    """Scheduler and gates."""
    return found["spec"]["schedulerName"], gates(found)


# --- beside kube-scheduler


def test_beside_kube_scheduler_on_the_same_nodes_no_cpu_is_given_twice(ungated: Workspace) -> None:
    """Each fills the nodes further that the other has begun to fill, with pods without claims; what is full for one is full for both."""
    fleet = Fleet.of(ungated)
    here = {"corner": fleet.suffix}
    ungated.apply(*(node(fleet.node(number), labels=here, cpu="4") for number in range(2)))
    ungated.nodes_ready(fleet.node(0), fleet.node(1))
    how: dict[str, Any] = {"containers": asking("1"), "nodeSelector": here}

    stock = [f"stock-{number}" for number in range(3)]
    ours = [f"ours-{number}" for number in range(4)]
    ungated.apply(*(pod(name, **how) for name in stock))
    fleet.running(*stock)
    ungated.apply(*(bound(name, **how) for name in ours))
    fleet.running(*ours)
    ungated.apply(pod("stock-3", **how))
    served = fleet.running("stock-3", *stock, *ours)

    per_node = [found["spec"]["nodeName"] for found in served]
    assert sorted(map(per_node.count, set(per_node))) == [4, 4]
    ungated.apply(pod("stock-late", **how), bound("ours-late", **how))
    for name in ("stock-late", "ours-late"):
        ungated.kubectl.until("pod", name, is_unschedulable, "no room for either")
    ungated.kubectl.delete("pod", "stock-0")
    wait_until(
        lambda: [found for found in ungated.kubectl.get_all("pods") if found["spec"].get("nodeName")],
        "the room of one pod is used again, once",
        accept=lambda there: len(there) == 8,
    )
