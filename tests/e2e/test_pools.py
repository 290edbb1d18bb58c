"""What drivers publish, beyond plain node-local pools, and what becomes of it in the claim; all of it judged by a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import Fleet, accelerators, claims_of
from tests.e2e.harness.objects import claim_template, device, device_class, exactly, node, pod, resource_slice

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes of zones a and b, nothing published yet; the driver `gpu` is ours, its class and a template for one exist."""
    made = Fleet.of(managed)
    driver = made.name("gpu")
    managed.apply(
        node(made.node(0), labels={"zone": f"a-{made.suffix}"}),
        node(made.node(1), labels={"zone": f"b-{made.suffix}"}),
        device_class(driver, driver=driver),
        claim_template("one", exactly("gpu", driver)),
    )
    managed.nodes_ready(made.node(0), made.node(1))
    made.own("gpu")
    return made


def pool(fleet: Fleet, devices: list[Object], **spec: Any) -> None:
    """A pool of the test's driver that belongs to no single node."""
    name = f"pool-{fleet.suffix}"
    made = resource_slice(fleet.name("gpu"), name, devices, **spec)
    del made["spec"]["nodeName"]
    fleet.workspace.apply(made)


def allocation(fleet: Fleet, pod_name: str) -> Object:
    (claim,) = claims_of(fleet.workspace.kubectl, pod_name)
    found: Object = claim["status"]["allocation"]
    return found


def zone(fleet: Fleet, letter: str) -> Object:
    expression = {"key": "zone", "operator": "In", "values": [f"{letter}-{fleet.suffix}"]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def test_device_for_all_nodes_binds_to_none(fleet: Fleet) -> None:
    """The allocation has no node selector (alloc P-3): a second pod elsewhere could share the claim."""
    pool(fleet, [device("net-0")], allNodes=True)
    fleet.workspace.apply(
        pod("train", templates={"gpu": "one"}, nodeSelector={"kubernetes.io/hostname": fleet.node(1)})
    )
    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == fleet.node(1)
    assert "nodeSelector" not in allocation(fleet, "train")


def test_device_for_some_nodes_binds_to_those(fleet: Fleet) -> None:
    """The slice's node selector ends in the allocation as it is; the pod goes to the second node."""
    pool(fleet, [device("net-0")], nodeSelector=zone(fleet, "b"))
    fleet.workspace.apply(pod("train", templates={"gpu": "one"}))
    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == fleet.node(1)
    assert allocation(fleet, "train")["nodeSelector"] == zone(fleet, "b")


def test_config_of_class_and_claim_ends_in_the_allocation(fleet: Fleet) -> None:
    """Class first, then claim, each with its source; config for other requests is left out (alloc A)."""
    driver = fleet.name("gpu")

    def config(text: str) -> Object:
        return {"opaque": {"driver": driver, "parameters": {"sharing": text}}}

    fancy = device_class(f"fancy-{driver}", driver=driver)
    fancy["spec"]["config"] = [config("class")]
    fleet.workspace.apply(
        resource_slice(driver, fleet.node(), accelerators(2)),
        fancy,
        claim_template(
            "configured",
            exactly("a", f"fancy-{driver}"),
            exactly("b", driver),
            config=[config("claim") | {"requests": ["b"]}],
        ),
        pod("train", templates={"gpu": "configured"}),
    )
    fleet.running("train")

    assert allocation(fleet, "train")["devices"]["config"] == [
        {"source": "FromClass", "requests": ["a"]} | config("class"),
        {"source": "FromClaim", "requests": ["b"]} | config("claim"),
    ]


def test_tainted_device_is_for_those_who_tolerate_it(fleet: Fleet) -> None:
    """The first device is tainted: the plain pod gets the second; the tolerating one the first, with its toleration on record."""
    taint = {"key": "example.com/degraded", "value": "ecc", "effect": "NoSchedule"}
    toleration = {"key": "example.com/degraded", "operator": "Exists", "effect": "NoSchedule"}
    first, second = accelerators(2)
    fleet.workspace.apply(
        resource_slice(fleet.name("gpu"), fleet.node(), [first | {"taints": [taint]}, second]),
        claim_template("tolerant", exactly("gpu", fleet.name("gpu"), tolerations=[toleration])),
        pod("plain", templates={"gpu": "one"}),
    )
    fleet.running("plain")
    fleet.workspace.apply(pod("tolerant", templates={"gpu": "tolerant"}))
    fleet.running("tolerant")
    (result,) = allocation(fleet, "tolerant")["devices"]["results"]

    assert fleet.devices("plain") == {"gpu": ["gpu-1"]}
    assert (result["device"], result["tolerations"]) == ("gpu-0", [toleration])


def test_only_the_newest_generation_of_a_pool_counts(fleet: Fleet) -> None:
    """A driver renumbers its devices: the old slice is outdated as soon as one of the new generation is there (alloc P)."""
    driver, name = fleet.name("gpu"), fleet.node()
    old = resource_slice(driver, name, [device("old-0")])
    new = resource_slice(driver, name, [device("new-0")])
    new["metadata"]["name"] += "-new"
    new["spec"]["pool"]["generation"] = 2
    fleet.workspace.apply(old, new, pod("train", templates={"gpu": "one"}))
    fleet.running("train")

    assert fleet.devices("train") == {"gpu": ["new-0"]}


def test_all_waits_for_the_whole_pool(fleet: Fleet) -> None:
    """Half of a pool of two slices is published: `All` cannot be said yet; with the other half it is all four."""
    driver, name = fleet.name("gpu"), fleet.node()
    halves = [
        resource_slice(driver, name, [device(f"gpu-{half}-{number}") for number in (0, 1)]) for half in "ab"
    ]
    for half, letter in zip(halves, "ab", strict=True):
        half["metadata"]["name"] += f"-{letter}"
        half["spec"]["pool"]["resourceSliceCount"] = 2
    fleet.workspace.apply(
        halves[0],
        claim_template("every", exactly("gpu", driver, allocationMode="All")),
        pod("whole", templates={"gpu": "every"}),
    )
    fleet.told("whole", "AllocationFailed")
    fleet.workspace.apply(halves[1])
    fleet.running("whole")

    assert fleet.devices("whole") == {"gpu": ["gpu-a-0", "gpu-a-1", "gpu-b-0", "gpu-b-1"]}


def test_parts_of_a_device_are_given_out_as_long_as_its_counters_last(fleet: Fleet) -> None:
    """Two of three parts fit on the device; the third pod goes on when one of them ends (alloc section 7)."""
    driver, name = fleet.name("gpu"), fleet.node()
    counters = resource_slice(
        driver, name, [], sharedCounters=[{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
    )
    counters["metadata"]["name"] += "-counters"
    del counters["spec"]["devices"]
    parts = [
        device(f"part-{number}")
        | {"consumesCounters": [{"counterSet": "gpu-0", "counters": {"slices": {"value": "3"}}}]}
        for number in range(3)
    ]
    slices = [counters, resource_slice(driver, name, parts)]
    for made in slices:
        made["spec"]["pool"]["resourceSliceCount"] = 2
    fleet.workspace.apply(
        *slices, pod("first", templates={"gpu": "one"}), pod("second", templates={"gpu": "one"})
    )
    fleet.running("first", "second")
    fleet.workspace.apply(pod("third", templates={"gpu": "one"}))
    fleet.told("third", "AllocationFailed", "shared counters do not suffice (gpu-0/slices: 3 needed, 1 left)")
    fleet.workspace.kubectl.delete("pod", "first")
    fleet.running("third")

    assert fleet.devices("second") | {"third": fleet.devices("third")["gpu"]} == {
        "gpu": ["part-1"],
        "third": ["part-0"],
    }


def test_shares_of_a_device_are_given_out_as_long_as_its_capacity_lasts(fleet: Fleet) -> None:
    """The real API server takes the shares, and kube-scheduler the pods (alloc section 8)."""
    driver, name = fleet.name("gpu"), fleet.node()
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi", "max": "40Gi"}}
    shared = device("gpu-0") | {
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
    }
    fleet.workspace.apply(
        resource_slice(driver, name, [shared]),
        claim_template("much", exactly("gpu", driver, capacity={"requests": {"memory": "15Gi"}})),
        pod("first", templates={"gpu": "much"}),
    )
    fleet.running("first")
    fleet.workspace.apply(pod("second", templates={"gpu": "one"}))
    fleet.running("second")
    fleet.workspace.apply(pod("third", templates={"gpu": "much"}))
    fleet.told("third", "AllocationFailed", "too little capacity (memory: 20Gi asked for, 10Gi of 40Gi left)")
    (much,), (little,) = (allocation(fleet, name)["devices"]["results"] for name in ("first", "second"))
    fleet.workspace.kubectl.delete("pod", "first")
    fleet.running("third")

    assert (much["device"], much["consumedCapacity"]) == ("gpu-0", {"memory": "20Gi"})
    assert (little["device"], little["consumedCapacity"]) == ("gpu-0", {"memory": "10Gi"})
    assert much["shareID"] != little["shareID"]


def test_slices_that_go_take_nothing_from_pods_that_run(fleet: Fleet) -> None:
    """A driver restarts: its slices vanish and come back. The running pod keeps its device, the next one gets the other."""
    driver, kubectl = fleet.name("gpu"), fleet.workspace.kubectl
    published = resource_slice(driver, fleet.node(), accelerators(2))
    fleet.workspace.apply(published, pod("first", templates={"gpu": "one"}))
    fleet.running("first")
    kubectl.delete("resourceslice", published["metadata"]["name"])
    fleet.workspace.apply(pod("second", templates={"gpu": "one"}))
    fleet.told("second", "AllocationFailed")
    fleet.workspace.apply(published)
    fleet.running("first", "second")

    assert [fleet.devices(name) for name in ("first", "second")] == [{"gpu": ["gpu-0"]}, {"gpu": ["gpu-1"]}]


def test_existing_node_affinity_is_tightened_and_kept(fleet: Fleet) -> None:
    """Two alternatives, only the second fits: both get the node, none is dropped (cp I-24)."""
    fleet.workspace.apply(resource_slice(fleet.name("gpu"), fleet.node(1), accelerators(1)))
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["elsewhere"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"b-{fleet.suffix}"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": terms[0]}]}
    fleet.workspace.apply(
        pod("train", templates={"gpu": "one"}, affinity={"nodeAffinity": required | preferred})
    )
    (served,) = fleet.running("train")
    here = [{"key": "metadata.name", "operator": "In", "values": [fleet.node(1)]}]

    assert served["spec"]["affinity"] == {
        "nodeAffinity": preferred
        | {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [term | {"matchFields": here} for term in terms]
            }
        }
    }
