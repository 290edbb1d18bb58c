"""Defaults that the operator reads as if users had written them: claims (cp 5.2), pods, classes, templates, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import CLAIM, CONFIG, DRA, POD
from tests.contract.objects import allocation, claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj


def _request(**exactly: Any) -> Obj:
    body = claim()
    body["spec"]["devices"]["requests"][0]["exactly"].update(exactly)
    return body


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 3}, {"allocationMode": "ExactCount", "count": 3}),
        ({"count": 0}, {"allocationMode": "ExactCount", "count": 1}),
        ({"allocationMode": ""}, {"allocationMode": "ExactCount", "count": 1}),
        ({"allocationMode": "All"}, {"allocationMode": "All"}),
        ({"allocationMode": "ExactCount"}, {"allocationMode": "ExactCount", "count": 1}),
        ({"adminAccess": False}, {"allocationMode": "ExactCount", "count": 1, "adminAccess": False}),
    ],
)
async def test_mode_and_count(api: Client, given: Obj, expected: Obj) -> None:
    """Cp V-11, V-12."""
    made = (await api.create(CLAIM, _request(**given))).ok()
    found = made.body["spec"]["devices"]["requests"][0]["exactly"]
    assert found == {"deviceClassName": "gpu.example.com", **expected}


@pytest.mark.parametrize(
    ("given", "operator"),
    [({"value": "v"}, "Equal"), ({"operator": "Exists"}, "Exists"), ({"operator": ""}, "Equal")],
)
async def test_operator_of_a_toleration(api: Client, given: Obj, operator: str) -> None:
    """Cp V-13."""
    made = (await api.create(CLAIM, _request(tolerations=[{"key": "example.com/t", **given}]))).ok()
    (found,) = made.body["spec"]["devices"]["requests"][0]["exactly"]["tolerations"]
    assert found["operator"] == operator


async def test_operator_of_a_toleration_in_a_result(api: Client) -> None:
    """Cp V-13: copied tolerations get theirs, too."""
    (await api.create(CLAIM, claim())).ok()
    result = allocation()
    result["devices"]["results"][0]["tolerations"] = [{"key": "example.com/t"}]
    written = (await api.merge(f"{CLAIM}/claim/status", {"status": {"allocation": result}})).ok()
    (found,) = written.body["status"]["allocation"]["devices"]["results"][0]["tolerations"]
    assert found == {"key": "example.com/t", "operator": "Equal"}


async def test_template_gets_the_defaults_of_its_claim(api: Client) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": claim()["spec"]},
    }
    made = (await api.create(f"{DRA}/namespaces/{{ns}}/resourceclaimtemplates", body)).ok()
    assert made.body["spec"]["metadata"] == {}
    assert made.body["spec"]["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] == "ExactCount"


async def test_time_of_a_taint_is_kept_when_it_is_given(api: Client, unique: str) -> None:
    """Cp V-14."""
    taint = {"key": "example.com/t", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": unique},
        "spec": {"deviceSelector": {"driver": f"{unique}.example.com"}, "taint": taint},
    }
    made = (await api.create(f"{DRA}/devicetaintrules", body)).ok()
    assert made.body["spec"]["taint"] == taint
    await api.delete(f"{DRA}/devicetaintrules/{unique}")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restartPolicy", "Always"),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("serviceAccountName", "default"),
        ("terminationGracePeriodSeconds", 30),
        ("enableServiceLinks", True),
        ("preemptionPolicy", "PreemptLowerPriority"),
        ("priority", 0),
        ("securityContext", {}),
    ],
)
async def test_field_of_a_pod(api: Client, field: str, value: object) -> None:
    made = (await api.create(POD, pod())).ok()
    assert made.body["spec"][field] == value


async def test_tolerations_that_every_pod_gets(api: Client) -> None:
    made = (await api.create(POD, pod())).ok()
    assert made.body["spec"]["tolerations"] == [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]


async def test_status_of_a_new_pod(api: Client) -> None:
    made = (await api.create(POD, pod())).ok()
    assert made.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_status_of_a_new_gated_pod(api: Client) -> None:
    made = (await api.create(POD, pod(gates=("example.com/g",)))).ok()
    (condition,) = made.body["status"]["conditions"]
    assert {key: condition[key] for key in ("type", "status", "reason", "message")} == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
async def test_quality_of_service_of_a_pod(api: Client, resources: Obj, expected: str) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = resources
    assert (await api.create(POD, body)).ok().body["status"]["qosClass"] == expected


async def test_generated_names_do_not_collide(api: Client) -> None:
    """The server tries other suffixes before it gives up; each name is one of its own."""
    body = config()
    body["metadata"] = {"generateName": "many-"}
    names = {(await api.create(CONFIG, body)).ok().meta["name"] for _ in range(30)}
    assert len(names) == 30
    assert all(name.removeprefix("many-").isalnum() for name in names)


async def test_name_wins_over_generate_name(api: Client) -> None:
    made = (await api.create(CONFIG, config("mine", generateName="other-"))).ok()
    assert (made.meta["name"], made.meta["generateName"]) == ("mine", "other-")


async def test_generate_name_that_is_no_prefix_of_a_name_is_invalid(api: Client) -> None:
    body = config()
    body["metadata"] = {"generateName": "Not_A_Prefix"}
    refused = await api.create(CONFIG, body)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert {cause["field"] for cause in refused.causes} >= {"metadata.generateName"}
