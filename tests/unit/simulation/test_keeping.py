"""What a snapshot keeps of objects: what decisions hang on, and nothing that may be a secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dra_operator.errors import InvalidObject
from dra_operator.model import AllocationResult, ResourceClaim, from_object
from dra_operator.model.marks import MARK, digest, holds_our_allocation
from dra_operator.simulation.keeping import digest_of, kept
from dra_operator.testing.builders import (
    allocation,
    claim,
    device_class,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    template,
)

if TYPE_CHECKING:
    from dra_operator.testing.builders import Obj

SECRET = "hunter2"
OPAQUE = {"opaque": {"driver": "gpu.test", "parameters": {"kind": "GpuConfig", "token": SECRET}}}
NOISE = {
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"token": SECRET}),
        "team.test/token": SECRET,
        "resource.kubernetes.io/pod-claim-name": "gpu",
    },
    "managedFields": [{"manager": SECRET}],
}


def noisy(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], **NOISE}}


def full_pod() -> Obj:
    found = noisy(pod("p", pod_claim("gpu", template="t"), requests={"cpu": "1"}))
    container = found["spec"]["containers"][0]
    container.update(
        image=f"registry.test/{SECRET}:1",
        command=["run", SECRET],
        args=[SECRET],
        env=[{"name": "TOKEN", "value": SECRET}],
        livenessProbe={"exec": {"command": [SECRET]}},
    )
    found["spec"].update(
        priority=0,
        priorityClassName="low",
        schedulerName="default-scheduler",
        volumes=[
            {"name": "v", "secret": {"secretName": SECRET}},
            {"name": "c", "csi": {"volumeAttributes": {"k": SECRET}}},
        ],
        imagePullSecrets=[{"name": SECRET}],
        hostAliases=[{"ip": "10.0.0.1", "hostnames": [SECRET]}],
    )
    return found


def objects() -> list[Obj]:
    """One of each kind that may hold something that is nobody's business."""
    with_config = claim("c", request("gpu", "gpu"))
    with_config["spec"]["devices"]["config"] = [{"requests": ["gpu"], **OPAQUE}]
    held = allocation(result("gpu", "gpu.test", "n1", "gpu-0"), node="n1")
    held["devices"]["config"] = [{"source": "FromClaim", "requests": ["gpu"], **OPAQUE}]
    with_config["status"] = {
        "allocation": held,
        "devices": [
            {
                "driver": "gpu.test",
                "pool": "n1",
                "device": "gpu-0",
                "data": {"token": SECRET},
                "networkData": {"interfaceName": SECRET},
                "conditions": [],
            }
        ],
    }
    of_template = template("t", request("gpu", "gpu"))
    of_template["spec"]["spec"]["devices"]["config"] = [OPAQUE]
    of_template["spec"]["metadata"] = NOISE
    volume_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s"},
        "provisioner": "csi.test",
        "parameters": {"key": SECRET},
    }
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}}
    found = [
        with_config,
        of_template,
        device_class("gpu", driver="gpu.test", config=[OPAQUE]),
        volume_class,
        named,
    ]
    return [
        full_pod(),
        *map(noisy, found),
        noisy({**node("n1"), "status": {"images": [{"names": [SECRET]}]}}),
    ]


@pytest.mark.parametrize("obj", objects(), ids=lambda obj: str(obj["kind"]))
def test_nothing_of_a_secret_is_left_and_the_object_given_is_as_it_was(obj: Obj) -> None:
    before = json.dumps(obj)
    assert SECRET in before

    found = kept(obj)

    assert SECRET not in json.dumps(found)
    assert json.dumps(obj) == before
    assert (found["kind"], found["metadata"]["name"]) == (obj["kind"], obj["metadata"]["name"])
    assert found["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}


def test_equal_parameters_have_equal_digests_in_whatever_order_and_others_have_others() -> None:
    one, same, other = {"a": 1, "b": [None]}, {"b": [None], "a": 1}, {"a": 1, "b": []}

    assert digest_of(one) == digest_of(same) != digest_of(other)
    assert digest_of(one)["redacted"].startswith("sha256:")


def test_an_attribute_of_that_name_is_no_parameter_of_a_driver() -> None:
    attributes = {"parameters": {"string": "a"}, "opaque": {"string": "b"}, "data": {"int": 1}}
    found = resource_slice("s", "gpu.test", [{"name": "gpu-0", "attributes": attributes}], node="n1")

    assert kept(found) == found


def test_what_fields_of_a_pod_a_simulation_fills_in_or_reads_is_kept() -> None:
    """A priority of 0 that is not there would be that of the cluster's default class."""
    spec = kept(full_pod())["spec"]

    assert (spec["priority"], spec["priorityClassName"]) == (0, "low")
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_a_field_that_is_new_to_kubernetes_is_kept_of_dra_and_not_of_pods() -> None:
    new_claim = claim("c", request("gpu", "gpu", later="x"))
    new_pod = pod("p")
    new_pod["spec"]["later"] = "x"

    assert "later" in json.dumps(kept(new_claim))
    assert "later" not in json.dumps(kept(new_pod))


def test_the_mark_of_our_allocation_fits_it_afterwards_and_a_strange_one_does_not() -> None:
    raw = objects()[1]
    theirs = from_object(AllocationResult, raw["status"]["allocation"])
    ours = {**raw, "metadata": {**raw["metadata"], "annotations": {MARK: digest(theirs)}}}
    strange = {**raw, "metadata": {**raw["metadata"], "annotations": {MARK: "0123"}}}

    assert holds_our_allocation(from_object(ResourceClaim, kept(ours)))
    assert kept(ours)["metadata"]["annotations"][MARK] != digest(theirs)
    assert not holds_our_allocation(from_object(ResourceClaim, kept(strange)))


def test_an_object_that_cannot_be_decoded_is_kept_if_it_is_of_dra_only() -> None:
    broken = claim("c", request("gpu", "gpu", count=1))
    broken["spec"]["devices"]["requests"][0]["exactly"]["count"] = "many"
    odd = full_pod()
    odd["spec"]["nodeSelector"] = {"zone": 1}

    assert kept(broken)["spec"] == broken["spec"]
    with pytest.raises(InvalidObject, match=r"Pod default/p: spec\.nodeSelector"):
        kept(odd)
