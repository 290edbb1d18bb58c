"""`manifests/uninstall.sh`: what the release Job takes over from the Deployment, what is removed, and what becomes of it on a bad day."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.manifests.build import COMPONENTS, RELEASES, built, built_with, one
from tests.unit.manifests.removal_script import KINDS, Machine, counted, failing, printing

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = "manifests/release"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def installed(machine: Machine) -> Machine:
    """The Deployment is there, as it is shipped."""
    machine.deployment = tailored()
    return machine


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


def tailored(**more: Any) -> dict[str, Any]:
    """The shipped Deployment with more in its container."""
    made = copy.deepcopy(one(built(), "Deployment"))
    made["spec"]["template"]["spec"]["containers"][0] |= more
    return made


# --------------------------------------------------------------------------- the Job


def test_the_job_runs_with_the_settings_of_the_operator(machine: Machine) -> None:
    """From whichever place they come: the mounted file, variables and arguments are the Deployment's."""
    variables = [{"name": "DRA_OPERATOR_SETTLE_SECONDS", "value": "60"}]
    machine.deployment = tailored(env=variables)
    machine.deployment["spec"]["template"]["spec"]["containers"][0]["args"].append("--max-writes=4")

    assert machine.run().returncode == 0

    operator = container(machine.deployment)
    assert machine.container["args"] == ["release", *operator["args"][1:]]
    assert machine.container["env"] == variables
    assert machine.container["volumeMounts"] == operator["volumeMounts"]
    assert machine.pod["volumes"] == machine.deployment["spec"]["template"]["spec"]["volumes"]


def test_the_job_can_run_wherever_the_operator_could(machine: Machine) -> None:
    machine.deployment = tailored(
        image="registry.example.com/dra-operator:0.3.0",
        imagePullPolicy="Always",
        resources={"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi"}},
    )
    demands = {
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
    }
    machine.deployment["spec"]["template"]["spec"] |= demands

    assert machine.run().returncode == 0

    assert {name: machine.pod[name] for name in demands} == demands
    assert machine.container["image"] == "registry.example.com/dra-operator:0.3.0"
    assert machine.container["imagePullPolicy"] == "Always"
    assert machine.container["resources"]["limits"] == {"memory": "8Gi"}


def test_pull_secrets_of_the_operators_account_do_for_the_job(installed: Machine) -> None:
    """Kubernetes puts them on pods of that account only."""
    installed.rules["*get serviceaccount/dra-operator*"] = printing('[{"name":"registry"}]')

    assert installed.run().returncode == 0

    assert installed.pod["imagePullSecrets"] == [{"name": "registry"}]


def test_the_job_stays_the_one_that_is_shipped_else(installed: Machine) -> None:
    """Its account, its end, its confinement: of the Deployment only where it may run gets there, probes and priority do not."""
    assert installed.run().returncode == 0

    shipped = one(built(RELEASE), "Job", "dra-operator-release")
    pod, mine = shipped["spec"]["template"]["spec"], installed.pod
    taken = {"affinity", "volumes", "containers"}
    assert {k: v for k, v in mine.items() if k not in taken} == {
        k: v for k, v in pod.items() if k not in taken
    }
    assert set(installed.container) - set(pod["containers"][0]) <= {"volumeMounts", "imagePullPolicy"}
    assert installed.job["metadata"] == shipped["metadata"]


def test_without_a_deployment_the_job_is_the_shipped_one_and_can_be_told_otherwise(machine: Machine) -> None:
    chosen = {
        "DRA_OPERATOR_IMAGE": "registry.example.com/dra-operator:x",
        "DRA_OPERATOR_SETTLE_SECONDS": "60",
    }

    assert machine.run(environment=chosen).returncode == 0

    assert machine.container["image"] == chosen["DRA_OPERATOR_IMAGE"]
    assert machine.container["args"] == ["release", "--log-format=json", "--settle-seconds=60"]


def test_0_1_0_is_removed_by_the_present_image_with_its_own_settings(machine: Machine) -> None:
    old = list(yaml.safe_load_all((RELEASES / "0.1.0.yaml").read_text(encoding="utf-8")))
    machine.deployment = one(old, "Deployment")

    assert machine.run().returncode == 0

    assert machine.container["image"] == container(one(built(), "Deployment"))["image"]
    assert machine.container["args"] == ["release", *container(machine.deployment)["args"][1:]]


def test_settings_that_cannot_be_read_stop_it_before_the_job(installed: Machine) -> None:
    """It would run on defaults, where somebody had chosen others for a reason."""
    installed.rules["*get deployment/dra-operator*volumes*"] = failing()

    done = installed.run()

    assert done.returncode != 0
    assert "run this again" in done.stderr
    assert not (installed.folder / "job").exists()


# --------------------------------------------------------------------------- what is removed


def test_everything_outside_of_the_namespace_is_deleted_by_its_name_and_looked_for_at_the_end(
    machine: Machine,
) -> None:
    """Others may use our labels; 0.1.0 had no other names."""
    old = list(yaml.safe_load_all((RELEASES / "0.1.0.yaml").read_text(encoding="utf-8")))
    objects = [*built_with(tuple(COMPONENTS)), *built(RELEASE), *old]
    free = {
        f"{found['kind'].lower()}/{found['metadata']['name']}"
        for found in objects
        if found["kind"] == "Namespace" or "namespace" not in found["metadata"]
    }

    assert machine.run().returncode == 0

    short = {found.replace("customresourcedefinition/", "crd/") for found in free}
    assert machine.deleted() - {"job/dra-operator-release"} == short
    deletions = [call for call in machine.calls if call.startswith("delete")]
    assert [call for call in deletions if "--selector" in call or "--all" in call] == []
    (check,) = [
        call for call in machine.calls if call.startswith("get ") and "clusterrole/dra-operator-view" in call
    ]
    assert {word for word in check.split() if "/" in word} == short


def test_what_is_left_is_named(machine: Machine) -> None:
    machine.rules["get *clusterrole/dra-operator-view*"] = printing(
        "clusterrole.rbac.authorization.k8s.io/dra-operator"
    )

    done = machine.run()

    assert done.returncode == 1
    assert "these are left: clusterrole.rbac.authorization.k8s.io/dra-operator" in done.stderr
    assert "is removed" not in done.stdout


def test_bindings_that_people_made_and_labels_that_they_gave_are_named(machine: Machine) -> None:
    bindings = ["view look", "dra-operator-view everybody", "dra-operator-policy-editor owners"]
    machine.rules["*get clusterrolebindings*"] = printing("\n".join(bindings))
    machine.rules["*get namespaces --selector=dra-operator.io/enabled*"] = "printf team"

    said = machine.run().stdout

    assert "roles stay, without effect: everybody owners" in said
    assert "without effect: team" in said


# --------------------------------------------------------------------------- bad days


def test_without_the_list_of_kinds_nothing_is_removed(machine: Machine) -> None:
    machine.rules["*api-resources*"] = failing()

    done = machine.run()

    assert done.returncode == 1
    assert "Nothing was removed" in done.stderr
    assert not machine.deleted()


def test_an_aggregated_api_that_is_down_is_none_of_its_business(machine: Machine) -> None:
    machine.rules["*api-resources*"] = f"{printing(chr(10).join(KINDS))}; {failing('metrics.k8s.io is down')}"

    assert machine.run().returncode == 0

    assert "mutatingadmissionpolicybinding/dra-operator-gate" in machine.deleted()


def test_a_server_without_admission_policies_is_not_asked_for_any(machine: Machine) -> None:
    machine.rules["*api-resources*"] = printing("\n".join(KINDS[:2]))

    assert machine.run().returncode == 0

    assert [call for call in machine.calls if "mutatingadmission" in call] == []
    assert "mutatingwebhookconfiguration/dra-operator-gate" in machine.deleted()


@pytest.mark.parametrize(("times", "status"), [(5, 0), (30, 1)])
def test_a_connection_that_breaks_while_the_job_runs_is_borne_for_a_while(
    machine: Machine, times: int, status: int
) -> None:
    machine.rules["*get job/*"] = counted(machine.folder, times, failing(), "printf 'Complete '")

    done = machine.run()

    assert done.returncode == status
    assert ("run this again when kubectl reaches the cluster" in done.stderr) is bool(status)
    assert ("clusterrole/dra-operator" in machine.deleted()) is not bool(status)


def test_a_job_that_fails_stops_it_with_all_else_in_place(machine: Machine) -> None:
    machine.rules["*get job/*"] = "printf 'FailureTarget Failed '"
    machine.rules["*logs *"] = printing("not done: DeviceTaintRule x")

    done = machine.run()

    assert done.returncode == 1
    assert "not done: DeviceTaintRule x" in done.stdout
    assert machine.deleted() == {
        "job/dra-operator-release",
        "mutatingadmissionpolicybinding/dra-operator-gate",
        "mutatingadmissionpolicy/dra-operator-gate",
        "mutatingwebhookconfiguration/dra-operator-gate",
    }


def test_why_the_job_waits_is_told_once(machine: Machine) -> None:
    machine.rules["*get pods*waiting.message*"] = printing("no image")
    machine.rules["*get job/*"] = counted(machine.folder, 5, ":", "printf 'Complete '")

    done = machine.run()

    assert done.stdout.count("the Job waits: no image") == 1


def test_a_job_that_takes_long_is_told_of(machine: Machine) -> None:
    """A pod whose ConfigMap is gone waits without a word."""
    machine.rules["*get job/*"] = counted(machine.folder, 30, ":", "printf 'Complete '")

    done = machine.run()

    assert done.stdout.count("the Job has not ended yet; kubectl --namespace=dra-operator describe pods") == 1


@pytest.mark.parametrize(
    "step",
    ["delete --ignore-not-found", "*scale deployment*", "apply --kustomize=*", "*create --kustomize=*"],
)
def test_a_step_that_fails_ends_it_and_says_what_to_do(installed: Machine, step: str) -> None:
    installed.rules[f"{step}*"] = failing("no such luck")

    done = installed.run()

    assert done.returncode != 0
    assert "no such luck" in done.stderr
    assert done.stderr.endswith("mend that and run this again\n")
    assert "namespace/dra-operator" not in installed.deleted()


def test_the_flags_go_to_every_kubectl_that_speaks_to_the_cluster(installed: Machine) -> None:
    assert installed.run("--context=a b").returncode == 0

    assert [call for call in installed.calls if "--context=a b" not in call and "--local" not in call] == []


# --------------------------------------------------------------------------- mode replace


FILE = "*get configmap/dra-operator*"
STOCK = {"DRA_OPERATOR_STOCK_PARTS": "on"}


@pytest.mark.parametrize(
    ("file", "more"),
    [
        ("mode: replace", {}),
        ('settleSeconds: 0\nmode: "replace"  # the stock parts are off', {}),
        ("mode: cooperate", {"args": ["run", "--mode=replace"]}),
        ("logFormat: json", {"env": [{"name": "DRA_OPERATOR_MODE", "value": "replace"}]}),
    ],
)
def test_no_gate_opens_before_somebody_else_allocates(
    machine: Machine, file: str, more: dict[str, Any]
) -> None:
    """In mode replace: the operator is stopped, so that there are never two, and the rest waits for the admin's word."""
    machine.deployment = tailored(**more)
    machine.rules[FILE] = printing(file)

    done = machine.run()

    assert done.returncode == 1
    assert "DRA_OPERATOR_STOCK_PARTS=on" in done.stderr
    assert any("scale deployment dra-operator --replicas=0" in call for call in machine.calls)
    assert not any("apply" in call for call in machine.calls)


def test_with_the_stock_parts_on_it_is_removed_like_any_other(machine: Machine) -> None:
    machine.deployment = tailored()
    machine.rules[FILE] = printing("mode: replace")

    assert machine.run(environment=STOCK).returncode == 0
    assert machine.job["metadata"]["name"] == "dra-operator-release"


@pytest.mark.parametrize(
    ("file", "more"),
    [
        ("# mode: replace", {}),
        ("mode: replace", {"args": ["run", "--mode=cooperate"]}),
        ("mode: replace", {"env": [{"name": "DRA_OPERATOR_MODE", "value": "cooperate"}]}),
    ],
)
def test_in_mode_cooperate_nobody_is_asked(machine: Machine, file: str, more: dict[str, Any]) -> None:
    machine.deployment = tailored(**more)
    machine.rules[FILE] = printing(file)

    assert machine.run().returncode == 0
