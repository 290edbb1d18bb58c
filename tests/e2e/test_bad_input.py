"""What people get wrong, on a real control plane: kubectl or an event says what, where and what to do; all else goes on.

The whole table is in tests/scenarios/operator/test_bad_input.py. Here is the half that depends on what a real API server lets pass and on what
the stock controllers do beside us. All mistakes of the heap are made at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import Fleet, conditions, gates, messages
from tests.e2e.harness.kubectl import KubectlError
from tests.e2e.harness.objects import (
    claim,
    claim_template,
    device,
    device_class,
    exactly,
    pod,
    policy,
    resource_slice,
)
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

GATE = "dra-operator.io/allocate"
BROKEN = ("incomplete", "doubled", "many")


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """One node with eight devices of ours, one of them in use; drivers whose pools are wrong, ours as well."""
    made = Fleet.of(managed)
    made.plain(8)
    made.own("gpu", *BROKEN)
    managed.apply(
        claim_template("one-gpu", exactly("gpu", made.name("gpu"))),
        pod("holder", templates={"gpu": "one-gpu"}),
    )
    made.running("holder")
    return made


def cel(*expressions: str) -> list[Object]:
    return [{"cel": {"expression": text}} for text in expressions]


def wrong_pools(fleet: Fleet) -> list[Object]:
    """One that lacks slices, one with a device name twice, one with more devices than a claim can hold; and classes for them."""
    node = fleet.node()
    pool = {"name": node, "generation": 1}
    incomplete, doubled, many = (fleet.name(word) for word in BROKEN)
    second = resource_slice(doubled, node, [device("dev")], pool=pool | {"resourceSliceCount": 2})
    second["metadata"]["name"] += "-b"
    return [
        *(device_class(name, driver=name) for name in (incomplete, doubled, many)),
        resource_slice(incomplete, node, [device("dev")], pool=pool | {"resourceSliceCount": 3}),
        resource_slice(doubled, node, [device("dev")], pool=pool | {"resourceSliceCount": 2}),
        second,
        resource_slice(many, node, [device(f"dev-{number}") for number in range(33)]),
    ]


def heap(fleet: Fleet) -> list[Object]:
    """Claims that are wrong, each with its pod of the same name."""
    driver = fleet.name("gpu")
    speed = f'device.attributes["{driver}"].speed > 3'
    large = f'device.driver == "{driver}" && !device.driver.matches("{"x{1,1000}" * 20}")'
    asked: dict[str, Object] = {
        "no-class": exactly("gpu", fleet.name("later")),
        "too-many": exactly("gpu", driver, count=33),
        "all-33": exactly("gpu", fleet.name("many"), allocationMode="All"),
        "incomplete": exactly("gpu", fleet.name("incomplete")),
        "doubled": exactly("gpu", fleet.name("doubled")),
        "odd-class": exactly("gpu", fleet.name("odd")),
        "not-evaluated": exactly("gpu", driver, selectors=cel(large)),
    }
    odd = device_class(fleet.name("odd"), speed)
    pods = [pod(name, claims={"gpu": name}) for name in asked]
    return [odd, *(claim(name, request) for name, request in asked.items()), *pods]


def told(fleet: Fleet) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Pod → reason of its event, and words of it."""
    request = f"ResourceClaim {fleet.workspace.namespace}/{{}}: spec.devices.requests[0].exactly"
    return {
        "no-class": (
            "DeviceClassMissing",
            (f"{request.format('no-class')}.deviceClassName: DeviceClass {fleet.name('later')}", "create it"),
        ),
        "too-many": (
            "InvalidClaim",
            (
                f"{request.format('too-many')}.count: request gpu asks for 33 devices; a claim can hold 32",
                "cannot be edited",
            ),
        ),
        "all-33": (
            "InvalidClaim",
            (f"{request.format('all-33')}.allocationMode: request gpu for All finds 33 devices",),
        ),
        "incomplete": (
            "AllocationFailed",
            (
                f"pool {fleet.name('incomplete')}/{fleet.node()} is incomplete (1 of 3 slices are published)",
                "anew",
            ),
        ),
        "doubled": (
            "AllocationFailed",
            ("duplicate device name dev: ResourceSlice ", "-b has it in spec.devices[0]"),
        ),
        "odd-class": (
            "SelectorFailed",
            (
                f"DeviceClass {fleet.name('odd')}: spec.selectors[0].cel.expression: fails on device",
                "Correct the class",
            ),
        ),
        "not-evaluated": (
            "SelectorNotEvaluated",
            (
                f"{request.format('not-evaluated')}.selectors[0].cel.expression: so large a regular expression is not supported",
                "cannot be edited",
            ),
        ),
    }


def test_a_heap_of_mistakes_is_told_one_by_one_while_a_good_pod_runs_and_those_that_are_mended_follow(
    fleet: Fleet,
) -> None:
    """Nothing that is allocated already is lost. What can be edited is mended in place; claims are written anew."""
    kubectl = fleet.workspace.kubectl
    before = fleet.devices("holder")
    fleet.workspace.apply(*wrong_pools(fleet), *heap(fleet), pod("good", templates={"gpu": "one-gpu"}))
    fleet.running("good", "holder")
    for name, (reason, words) in told(fleet).items():
        message = fleet.told(name, reason, *words)
        assert len(message.encode()) <= 1024
        assert gates(kubectl.get("pod", name)) == [GATE]
    assert fleet.devices("holder") == before
    shows(fleet, "resourceclaim", "too-many", "33 devices")
    doubled = f"pool {fleet.name('doubled')}/{fleet.node()} (duplicate device name dev"
    shows(fleet, "allocationpolicy", fleet.name("policy"), "PoolInvalid", doubled)

    mend(fleet)

    fleet.running("no-class", "odd-class", "incomplete", "doubled", "all-33", "too-many", "holder", "good")
    fleet.told("no-class", "Allocated")


def shows(fleet: Fleet, kind: str, name: str, *words: str) -> None:
    """Waits until `kubectl describe` has all these words."""
    wait_until(
        lambda: fleet.workspace.kubectl.run("describe", kind, name),
        f"{kind} {name} described with {words}",
        accept=lambda text: all(word in text for word in words),
    )


def mend(fleet: Fleet) -> None:
    """As the events say."""
    kubectl, node, driver = fleet.workspace.kubectl, fleet.node(), fleet.name("gpu")
    fleet.workspace.apply(device_class(fleet.name("later"), driver=driver))
    kubectl.patch(
        "deviceclass", fleet.name("odd"), {"spec": {"selectors": cel(f'device.driver == "{driver}"')}}
    )
    count = {"spec": {"pool": {"resourceSliceCount": 1}}}
    kubectl.patch("resourceslice", f"{node}-{fleet.name('incomplete')}", count)
    kubectl.patch(
        "resourceslice", f"{node}-{fleet.name('doubled')}-b", {"spec": {"devices": [{"name": "other"}]}}
    )
    kubectl.patch("resourceslice", f"{node}-{fleet.name('many')}", {"spec": {"devices": [{"name": "dev-0"}]}})
    kubectl.delete("pod", "too-many")
    kubectl.delete("resourceclaim", "too-many")
    fleet.workspace.apply(
        claim("too-many", exactly("gpu", driver)), pod("too-many", claims={"gpu": "too-many"})
    )


def test_a_template_that_comes_later_is_asked_for_and_then_used(fleet: Fleet) -> None:
    fleet.workspace.apply(pod("early", templates={"gpu": "later"}))
    message = fleet.told("early", "TemplateMissing")

    assert message.startswith(
        f"spec.resourceClaims[0].resourceClaimTemplateName: ResourceClaimTemplate {fleet.workspace.namespace}/later does not exist"
    )

    fleet.workspace.apply(claim_template("later", exactly("gpu", fleet.name("gpu"))))

    fleet.running("early")


def test_a_claim_with_nothing_to_request_and_one_named_twice_do_not_hold_their_pods(fleet: Fleet) -> None:
    """kube-scheduler allocates the empty one."""
    twice = pod("twice", claims={"one": "mine", "again": "mine"})
    fleet.workspace.apply(
        claim("none"),
        claim("mine", exactly("gpu", fleet.name("gpu"))),
        pod("idle", claims={"none": "none"}),
        twice,
    )

    fleet.running("idle", "twice")


def test_a_claim_in_deletion_holds_the_pod_until_there_is_another(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    leaving = claim("mine", exactly("gpu", fleet.name("gpu")))
    leaving["metadata"]["finalizers"] = ["example.com/keep"]
    fleet.workspace.apply(leaving)
    kubectl.delete("resourceclaim", "mine", wait=False)
    fleet.workspace.apply(pod("web", claims={"gpu": "mine"}))

    assert fleet.told("web", "ClaimNotReady").startswith(
        'spec.resourceClaims[0].resourceClaimName: resourceclaim "mine" is being deleted'
    )

    kubectl.patch("resourceclaim", "mine", {"metadata": {"finalizers": None}})
    kubectl.until_gone("resourceclaim", "mine")
    fleet.workspace.apply(claim("mine", exactly("gpu", fleet.name("gpu"))))

    fleet.running("web")


def test_policies_with_a_typo_or_with_pools_of_another_are_told(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    typo, second = fleet.name("typo"), fleet.name("second")
    nearly = fleet.name("gpu").replace("example", "exmple")
    fleet.workspace.apply(policy(typo, {"driver": nearly}), policy(second, {"driver": fleet.name("gpu")}))

    assert f"no ResourceSlice of driver {nearly} is published (did you mean {fleet.name('gpu')}?)" in said(
        fleet, typo, "NoPools"
    )
    assert (
        f"AllocationPolicy {fleet.name('policy')} selects the same, 1 published pool, and that one rules them"
        in said(fleet, second, "PoolsShared")
    )
    assert (
        f"AllocationPolicy {second} selects the same, 1 published pool, and this policy rules them"
        in said(fleet, fleet.name("policy"), "PoolsShared")
    )
    kubectl.until(
        "allocationpolicy",
        second,
        lambda found: conditions(found).get("Ready") == ("False", "OwnedByOtherPolicy"),
        "not Ready",
    )


def said(fleet: Fleet, name: str, reason: str) -> str:
    """The event on a policy; events of cluster-scoped objects are in the namespace `default`."""
    kubectl = fleet.workspace.kubectl.in_namespace("default")
    return wait_until(lambda: messages(kubectl, name, reason), f"event {reason} on policy {name}")[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pools": [{"driver": "*"}]}, "spec.pools[0].driver"),
        ({"pools": [{"driver": ""}]}, "spec.pools[0].driver"),
        ({"pools": []}, "spec.pools"),
        ({"pools": "all"}, "spec.pools"),
    ],
    ids=["star", "empty", "none", "text"],
)
def test_a_policy_that_would_own_everything_by_a_pattern_is_refused_with_the_path(
    fleet: Fleet, change: dict[str, Any], words: str
) -> None:
    manifest = policy(fleet.name("greedy")) | {"spec": change}

    with pytest.raises(KubectlError) as caught:
        fleet.workspace.kubectl.create(manifest)

    assert words in caught.value.stderr


def test_what_the_api_server_refuses_by_itself_never_comes_to_us(fleet: Fleet) -> None:
    """A syntax error (FR-111) and admin access without the namespace's label: kubectl tells."""
    kubectl, driver = fleet.workspace.kubectl, fleet.name("gpu")
    one_too_many = f'device.driver == "{driver}" && (device.attributes["{driver}"].index == 0))'

    with pytest.raises(KubectlError, match=r"spec\.selectors\[0\]\.cel\.expression"):
        kubectl.create(device_class(fleet.name("broken"), one_too_many))
    with pytest.raises(KubectlError, match="admin access"):
        kubectl.create(claim("eye", exactly("gpu", driver, adminAccess=True)))
