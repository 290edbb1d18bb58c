"""What is served is found out at start, and what is missing is said with its remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_operator.errors import ApiNotServed
from dra_operator.kube import KINDS, Api, discover
from dra_operator.kube.reader import Reader
from dra_operator.kube.writer import Writer
from dra_operator.model import metadata_of

from .scripted import Reply, Scripted

CORE = ["pods", "pods/status", "nodes", "namespaces", "events", "persistentvolumeclaims", "persistentvolumes"]
STORAGE = ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"]
DRA = ["resourceslices", "resourceclaims", "resourceclaims/status", "resourceclaimtemplates", "deviceclasses"]


def resources(*names: str) -> Reply:
    return Reply({"kind": "APIResourceList", "resources": [{"name": name, "kind": "x"} for name in names]})


def serve(
    server: Scripted, dra: list[str] | None, ours: list[str] | None, told: dict[str, str] | None = None
) -> None:
    server.on("GET", "/version", Reply({"gitVersion": "v1.37.2"} if told is None else told))
    server.on("GET", "/api/v1", resources(*CORE))
    server.on("GET", "/apis/coordination.k8s.io/v1", resources("leases"))
    server.on("GET", "/apis/storage.k8s.io/v1", resources(*STORAGE))
    if dra is not None:
        server.on("GET", "/apis/resource.k8s.io/v1", resources(*dra))
    if ours is not None:
        server.on("GET", "/apis/dra-operator.io/v1alpha1", resources(*ours))


async def test_all_served(server: Scripted, api: Api) -> None:
    serve(server, [*DRA, "devicetaintrules"], ["allocationpolicies"])
    server.on("GET", "/apis/scheduling.k8s.io/v1", resources("priorityclasses", "podgroups"))
    served = await discover(api)

    assert (served.server_version, served.missing) == ("v1.37.2", ())
    assert served.kinds == KINDS


async def test_optional_kind_may_be_missing(server: Scripted, api: Api) -> None:
    """Before 1.37 DeviceTaintRule is off by default: ownership is then not enforced (architecture, section 2)."""
    serve(server, DRA, ["allocationpolicies"])
    served = await discover(api)

    assert [kind.name for kind in served.missing] == ["DeviceTaintRule", "PodGroup"]
    assert "DeviceTaintRule" not in served.kinds


async def test_a_kind_is_spoken_in_the_best_version_that_is_served(server: Scripted, api: Api) -> None:
    """PodGroups have another version in each release (cp G-3); reads, writes and events use the one that was found."""
    serve(server, DRA, ["allocationpolicies"])
    server.on("GET", "/apis/scheduling.k8s.io/v1", resources("priorityclasses"))
    for version in ("v1alpha3", "v1alpha2"):
        server.on("GET", f"/apis/scheduling.k8s.io/{version}", resources("podgroups"))
    path = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/podgroups/train"
    server.on("GET", path, Reply({"metadata": {"name": "train"}}))
    served = await discover(api)

    assert served.kinds["PodGroup"].api_version == "scheduling.k8s.io/v1alpha3"
    assert metadata_of(await Reader(api).get("PodGroup", "default", "train")).name == "train"
    assert Writer(api).api_version("PodGroup") == "scheduling.k8s.io/v1alpha3"


async def test_taint_rules_are_spoken_in_the_version_that_an_older_server_was_told_to_serve(
    server: Scripted, api: Api
) -> None:
    """Cp G-3: v1beta2 in 1.36, v1alpha3 before; with v1 they would be said not to be served."""
    serve(server, DRA, ["allocationpolicies"])
    server.on("GET", "/apis/resource.k8s.io/v1beta2", resources("devicetaintrules"))
    served = await discover(api)

    assert served.kinds["DeviceTaintRule"].api_version == "resource.k8s.io/v1beta2"
    assert Writer(api).api_version("DeviceTaintRule") == "resource.k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("told", "version", "minor"),
    [
        ({"gitVersion": "v1.37.2", "minor": "37"}, "v1.37.2", 37),
        ({"gitVersion": "v1.34.1-gke.5", "minor": "34+"}, "v1.34.1-gke.5", 34),
        ({"gitVersion": "v1.37.2", "minor": "37", "emulationMinor": "37"}, "v1.37.2", 37),
        ({"gitVersion": "v1.37.2", "minor": "37", "emulationMinor": "35"}, "v1.37.2 as 1.35", 35),
        ({}, "unknown", None),
        ({"gitVersion": "v1.37.2", "minor": "x"}, "v1.37.2", None),
    ],
)
async def test_a_server_behaves_as_the_version_that_it_emulates(
    server: Scripted, api: Api, told: dict[str, str], version: str, minor: int | None
) -> None:
    """Gates and APIs follow the emulated version (real-control-plane, section 9)."""
    serve(server, DRA, ["allocationpolicies"], told)
    served = await discover(api)

    assert (served.server_version, served.minor) == (version, minor)


async def test_missing_kinds_are_named_with_the_remedy(server: Scripted, api: Api) -> None:
    serve(server, None, None)
    with pytest.raises(ApiNotServed) as caught:
        await discover(api)

    text = str(caught.value)
    assert "(v1.37.2) does not serve" in text
    assert (
        "resource.k8s.io/v1 ResourceSlice, resource.k8s.io/v1 ResourceClaim, resource.k8s.io/v1 ResourceClaimTemplate, "
        "resource.k8s.io/v1 DeviceClass: Kubernetes 1.34 and later serve it by default"
    ) in text
    assert "dra-operator.io/v1alpha1 AllocationPolicy: install the custom resource definition first" in text
    assert "DeviceTaintRule" not in text


async def test_only_what_is_wanted_is_asked_for(server: Scripted, api: Api) -> None:
    serve(server, None, None)
    served = await discover(api, [replace(KINDS["Pod"]), KINDS["Node"]])

    assert sorted(served.kinds) == ["Node", "Pod"]
    assert [seen.path for seen in server.seen] == ["/api/v1", "/version"]
