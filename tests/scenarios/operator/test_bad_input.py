"""What people get wrong: each is told with the object, the path in it and the remedy; all else goes on; mended, the pod goes on.

One table for what follows the same course: a pod holds a device, the bad input comes together with a good pod, the words are read, the
input is mended. What takes another course is below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.placement import entries

from .objects import (
    DRIVER,
    GATE,
    by_name,
    by_template,
    claim,
    device_class,
    node,
    pod,
    policy,
    requests,
    slice_,
    template,
)
from .smuggle import smuggle
from .world import World, world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .objects import Obj

    Mend = Callable[[World], Awaitable[None]]

STOCK = ("claims", "binding", "kubelet")
BAD = "bad.example.com"
CLUSTER = (
    node("n1"),
    node("n2"),
    slice_("n1", 3),
    device_class(),
    device_class("bad", BAD),
    policy("gpus", DRIVER, BAD),
    template(),
    claim("held"),
)
REWRITE = "A claim's spec cannot be edited: correct the template or manifest, then delete and create claim and pod anew"


@pytest.fixture(autouse=True)
def _short_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is told of after a moment instead of seconds."""
    monkeypatch.setattr(entries, "LAG", 0.1)


# --- writing and mending


def cel(*expressions: str) -> list[Obj]:
    return [{"cel": {"expression": text}} for text in expressions]


def spec(class_name: str = "gpu", **exactly: Any) -> Obj:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": class_name, **exactly}}]}}


def asks(wanted: Obj) -> tuple[Obj, ...]:
    """A pod that names a claim which asks for that."""
    return claim("bad", wanted), pod("bad", by_name("bad"))


def slices(count: int, expected: int, *, names: str = "s{}-dev") -> tuple[Obj, ...]:
    """Slices of one pool on n2, one device each."""
    made = [slice_("n2", 1, BAD) for _ in range(count)]
    for number, found in enumerate(made):
        found["metadata"]["name"] = f"slice-{number}"
        found["spec"]["pool"]["resourceSliceCount"] = expected
        found["spec"]["devices"][0]["name"] = names.format(number)
    return tuple(made)


def of_class(*expressions: str) -> Obj:
    found = device_class("odd")
    found["spec"]["selectors"] = cel(*expressions)
    return found


def adds(*objects: Obj) -> Mend:
    async def mend(here: World) -> None:
        here.add(*objects)

    return mend


def patches(what: str, name: str, body: Obj) -> Mend:
    async def mend(here: World) -> None:
        await here.patch(what, name, {"spec": body})

    return mend


def deletes(what: str, name: str) -> Mend:
    async def mend(here: World) -> None:
        await here.delete(what, name)

    return mend


async def writes_anew(here: World) -> None:
    """As the event says: claim and pod are deleted and created with a spec that can be had."""
    await here.delete("pod", "bad")
    await here.until(lambda: "bad" not in here.pods)
    await here.delete("claim", "bad")
    await here.until(lambda: "bad" not in here.claims)
    here.add(*asks(requests()))


# --- the table


@dataclass(frozen=True)
class Case:
    """One mistake.

    Attributes:
        name: what it is.
        objects: what is applied; `unchecked` past the rules of the API server, as servers of other versions let it pass.
        reason, words: of the event on the pod, in their order.
        mend: what the user does then.
    """

    name: str
    objects: tuple[Obj, ...]
    reason: str
    words: tuple[str, ...]
    mend: Mend
    unchecked: tuple[Obj, ...] = ()


GUARDED = f'device.driver == "{DRIVER}"'
SPEED = f'device.attributes["{DRIVER}"].speed > 3'
ONE_TOO_MANY = f'device.driver == "{DRIVER}" && (device.attributes["{DRIVER}"].numa == 0))'
TOO_LARGE = f'device.driver == "{DRIVER}" && !device.driver.matches("{"x{1,1000}" * 20}")'
REQUEST = "ResourceClaim default/bad: spec.devices.requests[0]"
SELECTOR = f"{REQUEST}.exactly.selectors[0].cel.expression: "
CLASS_SELECTOR = "DeviceClass odd: spec.selectors[0].cel.expression: "
EDIT_CLASS = "Correct the class: the pod goes on by itself"
PAIR = [{"name": name, "exactly": {"deviceClassName": "gpu"}} for name in ("a", "b")]

CASES = (
    Case(
        "unknown class",
        asks(requests(class_name="later")),
        "DeviceClassMissing",
        (
            f"{REQUEST}.exactly.deviceClassName: DeviceClass later",
            "does not exist: create it, and the pod goes on by itself",
        ),
        adds(device_class("later")),
    ),
    Case(
        "unknown class of an alternative",
        asks(
            {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "firstAvailable": [
                                {"name": "many", "deviceClassName": "gpu", "count": 9},
                                {"name": "one", "deviceClassName": "later"},
                            ],
                        }
                    ]
                }
            }
        ),
        "DeviceClassMissing",
        (f"{REQUEST}.firstAvailable[1].deviceClassName: DeviceClass later, which request gpu/one asks for",),
        adds(device_class("later")),
    ),
    Case(
        "missing template",
        (pod("bad", by_template("later")),),
        "TemplateMissing",
        (
            "spec.resourceClaims[0].resourceClaimTemplateName: ResourceClaimTemplate default/later does not exist",
            "create it in the pod's own namespace, and the pod goes on by itself",
        ),
        adds(template("later")),
    ),
    Case(
        "template of another namespace",
        (
            {**template("later"), "metadata": {"name": "later", "namespace": "kube-public"}},
            pod("bad", by_template("later")),
        ),
        "TemplateMissing",
        ("ResourceClaimTemplate default/later does not exist: create it in the pod's own namespace",),
        adds(template("later")),
    ),
    Case(
        "missing claim",
        (pod("bad", by_name("later")),),
        "ClaimNotReady",
        (
            'spec.resourceClaims[0].resourceClaimName: resourceclaim.resource.k8s.io "later" not found: create ResourceClaim ',
            "default/later, and the pod goes on by itself",
        ),
        adds(claim("later")),
    ),
    Case(
        "incomplete pool",
        (*slices(1, 3), *asks(requests(class_name="bad"))),
        "AllocationFailed",
        (
            f"0/2 nodes can serve this pod: 1 node(s) have no device for request gpu, 1 node(s) whose pool {BAD}/n2 is incomplete (1 of 3",
            "the driver of the pool that the message names has to publish its ResourceSlices anew",
        ),
        patches("slice", "slice-0", {"pool": {"resourceSliceCount": 1}}),
    ),
    Case(
        "too many slices in a pool",
        (*slices(2, 1), *asks(requests(class_name="bad"))),
        "AllocationFailed",
        (
            f"pool {BAD}/n2 is incomplete (2 slices are published, but their spec.pool.resourceSliceCount is 1)",
        ),
        deletes("slice", "slice-1"),
    ),
    Case(
        "duplicate device names",
        (*slices(2, 2, names="dev"), *asks(requests(class_name="bad"))),
        "AllocationFailed",
        (
            f"pool {BAD}/n2: duplicate device name dev: ResourceSlice slice-1 has it in spec.devices[0], ResourceSlice slice-0 as well",
            "has to publish its ResourceSlices anew",
        ),
        patches("slice", "slice-1", {"devices": [{"name": "other"}]}),
    ),
    Case(
        "33 devices",
        asks(requests(count=33)),
        "InvalidClaim",
        (
            f"{REQUEST}.exactly.count: request gpu asks for 33 devices; a claim can hold 32: ask for the others in a second",
            REWRITE,
        ),
        writes_anew,
    ),
    Case(
        "33 devices in two requests",
        asks(requests("a", "b", count=17)),
        "InvalidClaim",
        (
            "spec.devices.requests[1].exactly.count: request b asks for 17 devices, with 17 asked for by the requests before it; a claim",
        ),
        writes_anew,
    ),
    Case(
        "a huge count",
        asks(requests(count=2**40)),
        "InvalidClaim",
        ("requests[0].exactly.count: request gpu asks for 1099511627776 devices; a claim can hold 32",),
        writes_anew,
    ),
    Case(
        "All finds 33",
        (slice_("n2", 33, BAD), *asks(spec("bad", allocationMode="All"))),
        "InvalidClaim",
        (f"{REQUEST}.exactly.allocationMode: request gpu for All finds 33 devices; a claim can hold 32",),
        patches("slice", f"n2-{BAD}", {"devices": [{"name": "dev-0"}]}),
    ),
    Case(
        "a class whose selector fails at run time",
        (of_class(SPEED), *asks(requests(class_name="odd"))),
        "SelectorFailed",
        (f"{CLASS_SELECTOR}fails on device {DRIVER}/n1/", "no such key: speed", "has()", EDIT_CLASS),
        patches("class", "odd", {"selectors": cel(GUARDED)}),
    ),
    Case(
        "a request whose selector fails at run time",
        asks(spec(selectors=cel(SPEED))),
        "SelectorFailed",
        (f"{SELECTOR}fails on device {DRIVER}/n1/", "no such key: speed", REWRITE),
        writes_anew,
    ),
    Case(
        "a request with a misspelt attribute",
        asks(spec(selectors=cel(f'device.attributes["{DRIVER}"].modle == "a100"'))),
        "SelectorFailed",
        (
            f"{SELECTOR}fails on device {DRIVER}/n1/",
            "no such key: modle",
            ". Did you mean model? With .? or has(), a wrong name just never matches.",
            REWRITE,
        ),
        writes_anew,
    ),
    Case(
        "a request with a misspelt domain",
        asks(spec(selectors=cel('device.attributes["gpu.exmaple.com"].model == "a100"'))),
        "SelectorFailed",
        (
            f"{SELECTOR}fails on device {DRIVER}/n1/",
            "no such key: model",
            f". The device publishes {DRIVER}/model: look at the domain",
            REWRITE,
        ),
        writes_anew,
    ),
    Case(
        "a class with a syntax error (FR-111)",
        (of_class(ONE_TOO_MANY), *asks(requests(class_name="odd"))),
        "SelectorFailed",
        (
            f"{CLASS_SELECTOR}does not compile at line 1, column 87 (near `",
            "numa == 0))`): Syntax error",
            EDIT_CLASS,
        ),
        patches("class", "odd", {"selectors": cel(GUARDED)}),
    ),
    Case(
        "a request with a type error",
        asks(spec(selectors=cel("device.driver == 3"))),
        "SelectorFailed",
        (
            f"{SELECTOR}does not compile at line 1, column 15 (near `device.driver == 3`): found no matching overload",
            REWRITE,
        ),
        writes_anew,
    ),
    Case(
        "a class that the engine does not evaluate",
        (of_class(TOO_LARGE), *asks(requests(class_name="odd"))),
        "SelectorNotEvaluated",
        (
            f"{CLASS_SELECTOR}so large a regular expression is not supported, so that nobody can tell",
            f". Write the selector without it. {EDIT_CLASS}",
        ),
        patches("class", "odd", {"selectors": cel(GUARDED)}),
    ),
    Case(
        "a request that the engine does not evaluate",
        asks(spec(selectors=cel(TOO_LARGE))),
        "SelectorNotEvaluated",
        (
            f"{SELECTOR}so large a regular expression is not supported, so that nobody can tell",
            f". Write the selector without it. {REWRITE}",
        ),
        writes_anew,
    ),
    Case(
        "an attribute that the devices do not have",
        asks({"devices": {"requests": PAIR, "constraints": [{"matchAttribute": f"{DRIVER}/pcieRoot"}]}}),
        "AllocationFailed",
        (
            f"not meeting spec.devices.constraints[0].matchAttribute {DRIVER}/pcieRoot: the device does not have it",
            "Waiting will not help",
        ),
        writes_anew,
    ),
    Case(
        "more cpu than any node has",
        (claim("bad"), pod("bad", by_name("bad"), cpu="9999999999999")),
        "AllocationFailed",
        (
            "0/2 nodes can serve this pod: ",
            "1 Insufficient cpu",
            "Waiting will not help; lower the pod's resource requests",
        ),
        writes_anew,
    ),
    Case(
        "requests of both sides",
        (
            slice_("n1", 1, "nic.example.com"),
            device_class("nic", "nic.example.com"),
            *asks({"devices": {"requests": [PAIR[0], {"name": "b", "exactly": {"deviceClassName": "nic"}}]}}),
        ),
        "MixedClaim",
        (
            f"ResourceClaim default/bad: spec.devices.requests[0] (a) is matched by pool {DRIVER}/n1",
            "spec.devices.requests[1] (b) is matched only by pools that kube-scheduler allocates, such as nic.example.com/n1",
            "split it into two claims, or ask an admin to add the other pool to an AllocationPolicy",
        ),
        writes_anew,
    ),
    Case(
        "a capacity that no device has",
        (claim("bad", spec(capacity={"requests": {"memory": "1Gi"}})), pod("bad", by_name("bad"))),
        "AllocationFailed",
        ("with too little capacity (memory: the device has no such capacity)",),
        writes_anew,
    ),
    Case(
        "a request that asks for nothing",
        (pod("bad", by_name("bad")),),
        "InvalidClaim",
        (f"{REQUEST}: needs either exactly or firstAvailable", REWRITE),
        writes_anew,
        unchecked=(claim("bad", {"devices": {"requests": [{"name": "gpu"}]}}),),
    ),
    Case(
        "an unknown allocation mode",
        (pod("bad", by_name("bad")),),
        "InvalidClaim",
        (f"{REQUEST}.exactly.allocationMode: unsupported count mode Some", REWRITE),
        writes_anew,
        unchecked=(claim("bad", spec(allocationMode="Some")),),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_mistake_is_told_with_its_remedy_while_all_else_goes_on_and_once_mended_the_pod_does(
    case: Case,
) -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER, pod("holder", by_name("held")))
        await here.start()
        await here.until(lambda: here.node_of("holder"))
        for obj in case.unchecked:
            smuggle(here, obj)
        here.add(*case.objects, pod("good", by_template("gpu")))
        await here.until(lambda: here.messages(case.reason, "bad"), case.reason)
        await here.until(lambda: here.node_of("good"))
        (text, *_) = here.messages(case.reason, "bad")
        assert_in_order(text, case.words)
        assert len(text.encode()) <= 1024
        assert here.is_gated("bad")
        assert here.devices()["held"] == [f"{DRIVER}/n1/dev-0"]
        await case.mend(here)
        await here.until(lambda: here.node_of("bad"), "served once mended")
        assert here.held_twice() == []


def assert_in_order(text: str, words: tuple[str, ...]) -> None:
    """The text begins with the point, and has all the words one after the other."""
    at = 0
    for part in words:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} is not in {text[at:]!r}"
        at = found + len(part)


async def test_a_claim_that_somebody_wrote_is_told_too_and_a_generated_one_is_not() -> None:
    """`kubectl describe resourceclaim` would be silent; of a generated claim, people look at pod and template."""
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(
            *asks(requests(count=33)), template("many", requests(count=33)), pod("web", by_template("many"))
        )
        await here.until(
            lambda: here.messages("InvalidClaim", "web") and here.messages("InvalidClaim", "bad")
        )
        await here.settle()
        told = [event["involvedObject"] for event in here.events if event["reason"] == "InvalidClaim"]

    assert sorted((about["kind"], about["name"]) for about in told) == [
        ("Pod", "bad"),
        ("Pod", "web"),
        ("ResourceClaim", "bad"),
    ]


# --- other courses


async def test_a_claim_with_nothing_to_request_does_not_hold_its_pod() -> None:
    """In mode cooperate kube-scheduler allocates it, with no devices; beside a claim of ours it does not disturb."""
    async with world("claims", objects=(*CLUSTER, claim("none", {"devices": {}}), claim("mine"))) as here:
        here.add(pod("idle", by_name("none")), pod("both", by_name("none"), by_name("mine", "gpu2")))
        await here.until(lambda: not here.is_gated("idle") and not here.is_gated("both"))
        assert here.devices_of("both") == [f"{DRIVER}/n1/dev-0"]
        assert here.messages("AllocationFailed", "both") == []


async def test_in_mode_replace_a_claim_with_nothing_to_request_is_allocated_with_nothing() -> None:
    async with world(
        "binding", "kubelet", objects=(*CLUSTER, claim("none", {"devices": {}})), mode="replace"
    ) as here:
        here.add(pod("idle", by_name("none")))
        await here.until(lambda: here.node_of("idle"))
        allocation = here.claims["none"]["status"]["allocation"]
        assert allocation.get("devices", {}).get("results", []) == []


async def test_a_pod_that_names_a_claim_twice_is_served_once() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"))) as here:
        here.add(pod("web", by_name("mine"), by_name("mine", "again")))
        await here.until(lambda: here.node_of("web"))
        assert here.devices_of("web") == [f"{DRIVER}/n1/dev-0"]


async def test_a_claim_in_deletion_holds_the_pod_until_there_is_another() -> None:
    kept = claim("mine")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    async with world(*STOCK, objects=(*CLUSTER, kept)) as here:
        await here.delete("claim", "mine")
        here.add(pod("web", by_name("mine")), pod("good", by_template("gpu")))
        await here.until(lambda: here.messages("ClaimNotReady", "web"))
        await here.until(lambda: here.node_of("good"))
        (text,) = here.messages("ClaimNotReady", "web")
        assert text.startswith(
            'spec.resourceClaims[0].resourceClaimName: resourceclaim "mine" is being deleted: no pod can'
        )
        assert "see its metadata.finalizers" in text
        await here.patch("claim", "mine", {"metadata": {"finalizers": None}})
        await here.until(lambda: "mine" not in here.claims)
        here.add(claim("mine"))
        await here.until(lambda: here.node_of("web"))


def warnings(here: World, name: str) -> list[str]:
    """What has been said of the claims of a pod."""
    return [*here.messages("ClaimNotReady", name), *here.messages("ClaimMissing", name)]


@pytest.mark.parametrize("how", ["deleted", "gone"])
async def test_pods_on_their_node_do_not_wait_for_a_claim_that_somebody_deletes(how: str) -> None:
    """They keep the device; a pod at the gate that shares the claim does wait."""
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"))) as here:
        here.add(pod("one", by_name("mine")), pod("two", by_name("mine")), pod("own", by_template("gpu")))
        names = ("one", "two", "own")
        await here.until(
            lambda: all(here.pods[name].get("status", {}).get("phase") == "Running" for name in names)
        )
        held = {name: here.devices_of(name) for name in names}
        told = {name: warnings(here, name) for name in names}
        for name in sorted(set(here.claims) - {"held"}):
            await here.delete("claim", name)
            if how == "gone":
                await here.patch("claim", name, {"metadata": {"finalizers": None}})
        here.add(pod("late", by_name("mine")))
        await here.until(lambda: here.operator and "default/late" in here.operator.brain.allocation.waiting)
        await here.settle()
        assert here.operator is not None
        assert list(here.operator.brain.allocation.waiting) == ["default/late"]
        for name in names:
            assert warnings(here, name) == told[name]
            assert how == "gone" or here.devices_of(name) == held[name]


async def test_a_pod_whose_own_claim_is_being_deleted_is_not_told_to_make_another_by_hand() -> None:
    """Nobody can make it by hand: it needs the pod as its owner."""
    async with world("claims", objects=(*CLUSTER, claim("first"))) as here:
        here.add(pod("web", by_template("gpu"), gates=(GATE, "foo.io/wait")))
        await here.until(lambda: any(name.startswith("web-") for name in here.claims))
        name = next(name for name in here.claims if name.startswith("web-"))
        await here.patch("claim", name, {"metadata": {"finalizers": ["example.com/keep"]}})
        await here.delete("claim", name)
        await here.patch("pod", "web", {"spec": {"schedulingGates": [{"name": GATE}]}})
        await here.until(lambda: here.messages("ClaimNotReady", "web"))
        (text,) = here.messages("ClaimNotReady", "web")
        assert text.startswith(
            f'status.resourceClaimStatuses[0].resourceClaimName: resourceclaim "{name}" is being deleted'
        )
        assert "recreate the pod" in text
        assert "create it anew" not in text


async def test_a_container_that_asks_for_a_request_which_its_claim_does_not_have_is_told() -> None:
    """The pod is placed, as kube-scheduler does; it is the kubelet that does not start the container."""
    wrong = pod("web", by_name("mine"))
    wrong["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu", "request": "nope"}]
    right = pod("good", by_template("gpu"))
    right["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu", "request": "gpu"}]
    async with world(*STOCK[:2], objects=(*CLUSTER, claim("mine", requests("a", "b")))) as here:
        here.add(wrong, right)
        await here.until(lambda: here.messages("RequestUnknown", "web"))
        (text,) = here.messages("RequestUnknown", "web")
        assert text == (
            "spec.containers[0].resources.claims[0].request: nope is no request of the pod's claim gpu, which has a, b: the kubelet "
            "cannot start such a container. Correct the name and recreate the pod"
        )
        await here.until(lambda: here.node_of("web") and here.node_of("good"))
        await here.settle()
        assert here.messages("RequestUnknown", "good") == []


async def test_a_pod_that_is_created_for_a_node_that_does_not_exist_is_told_and_goes_on_with_it() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"), slice_("n9", 1))) as here:
        here.add(pod("web", by_name("mine"), gates=(), nodeName="n9"))
        await here.until(lambda: here.messages("NodeUnknown", "web"))
        (text,) = here.messages("NodeUnknown", "web")
        assert text.startswith("spec.nodeName: Node n9, to which this pod is bound, does not exist")
        assert "create the node, and the pod goes on by itself, or recreate the pod" in text
        here.add(node("n9"))
        await here.until(lambda: here.devices_of("web") == [f"{DRIVER}/n9/dev-0"])


async def test_a_status_entry_that_names_the_claim_of_another_pod_gives_the_pod_nothing_of_it() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="never") as here:
        here.add(pod("owner", by_template("gpu")), pod("thief", by_template("gpu")))
        theirs = owned_by(here, "owner")
        here.add(theirs)
        statuses = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "of-owner"}]}}
        for name in ("owner", "thief"):
            await here.patch("pod", name, statuses, "status")
        await here.until(lambda: here.messages("ClaimNotReady", "thief"))
        await here.until(lambda: here.node_of("owner"))
        (text,) = here.messages("ClaimNotReady", "thief")
        assert text.startswith(
            "status.resourceClaimStatuses[0].resourceClaimName: ResourceClaim default/of-owner was not created for Pod default/thief "
            "(Pod is not owner): recreate the pod"
        )
        assert here.is_gated("thief")
        assert len(here.claims["of-owner"]["status"]["reservedFor"]) == 1


def owned_by(here: World, name: str) -> Obj:
    """A claim as kube-controller-manager generates it."""
    made = claim(f"of-{name}")
    uid = here.pods[name]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    made["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    return made


async def test_a_claim_that_others_allocated_with_devices_that_nobody_publishes_does_not_hold_its_pod() -> (
    None
):
    ghost = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "ghost"}
    async with world(*STOCK, objects=(*CLUSTER, claim("alien"))) as here:
        await here.patch(
            "claim", "alien", {"status": {"allocation": {"devices": {"results": [ghost]}}}}, "status"
        )
        here.add(pod("web", by_name("alien")), pod("good", by_template("gpu")))
        await here.until(lambda: here.node_of("web") and here.node_of("good"))
        assert here.devices_of("good") == [f"{DRIVER}/n1/dev-0"]


async def test_a_class_that_is_deleted_while_a_pod_waits_is_told_and_takes_effect_again_when_it_is_back() -> (
    None
):
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(*asks(requests(class_name="bad")))
        await here.until(lambda: here.messages("AllocationFailed", "bad"))
        await here.delete("class", "bad")
        await here.until(lambda: here.messages("DeviceClassMissing", "bad"))
        here.add(device_class("bad", BAD), slice_("n2", 1, BAD))
        await here.until(lambda: here.node_of("bad") == "n2")


async def test_a_template_that_is_replaced_counts_for_new_claims_only() -> None:
    async with world(*STOCK, objects=(*CLUSTER, template("change", requests(count=3)))) as here:
        here.add(pod("first", by_template("change")))
        await here.until(lambda: here.node_of("first"))
        await here.delete("template", "change")
        here.add(template("change", requests(count=4)), pod("second", by_template("change")))
        await here.until(lambda: here.messages("AllocationFailed", "second"))
        assert len(here.devices_of("first")) == 3
        assert "4 wanted, 3 devices seen: 3 in use" in here.messages("AllocationFailed", "second")[0]


async def test_a_node_that_vanishes_while_it_is_chosen_is_left_for_another() -> None:
    """Nothing of the attempt stays: the claim is chosen for anew."""
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"))) as here:
        fault = here.trap("resourceclaims/status", delay=0.3)
        here.add(pod("web", by_name("mine")))
        await here.trapped(fault)
        await here.delete("node", "n1")
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        assert here.is_gated("web")
        here.add(slice_("n2", 1))
        await here.until(lambda: here.node_of("web") == "n2")
        assert here.devices_of("web") == [f"{DRIVER}/n2/dev-0"]


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({}, id="none-of-its-own"),
        pytest.param(
            {"nodeSelectorTerms": [{}, {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}]},
            id="with-a-term-that-matches-nothing",
        ),
    ],
)
async def test_a_node_that_vanishes_before_its_pod_is_bound_is_told(affinity: Obj) -> None:
    """The pin cannot be taken back; with the node back, kube-scheduler binds the pod."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": affinity} if affinity else {}
    async with world("claims", objects=(*CLUSTER, claim("mine"))) as here:
        here.add(
            pod("web", by_name("mine"), affinity={"nodeAffinity": required}), pod("good", by_template("gpu"))
        )
        await here.until(lambda: not here.is_gated("web") and not here.is_gated("good"))
        await here.delete("node", "n1")
        await here.until(lambda: here.messages("NodeGone", "web"))
        (text,) = here.messages("NodeGone", "web")
        assert text.startswith(
            "Node n1, to which the pod was sent with its devices, was deleted before kube-scheduler bound the pod"
        )
        assert "Recreate the pod" in text


async def test_what_fits_nowhere_is_kube_schedulers_once_no_policy_owns_the_pool_gate_or_not() -> None:
    """Nobody has to recreate the pod without the gate, and where a policy gates pods nobody could."""
    made = slice_("n1", 1)
    made["spec"]["devices"][0]["nodeAllocatableResources"] = {"cpu": {"mapping": {"deviceMultiplier": "99"}}}
    cluster = (node("n1"), made, device_class(), policy(), claim("mine"))
    async with world("claims", objects=cluster) as here:
        here.add(pod("boss", by_name("mine")))
        await here.until(lambda: here.messages("AllocationFailed", "boss"))
        (told,) = here.messages("AllocationFailed", "boss")
        assert "Insufficient cpu for the pod and what its devices take" in told
        await here.delete("policy", "gpus")
        await here.until(lambda: not here.is_gated("boss"))
        assert (here.node_of("boss"), here.devices()) == ("", {})


async def test_a_pod_that_others_pin_to_a_node_not_heard_of_yet_is_told_nothing_of_nodes_that_went() -> None:
    """As DaemonSets pin theirs; the feeds of pods and nodes overtake each other."""
    here_only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["new"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here_only]}}
    async with world("claims", objects=(*CLUSTER, claim("mine"))) as here:
        here.add(pod("agent", by_name("mine"), gates=(), affinity={"nodeAffinity": required}))
        await here.until(lambda: here.messages("NotGated", "agent"))
        here.add(node("new"))
        await here.settle_but_timers()
        assert here.messages("NodeGone", "agent") == []


async def test_a_policy_that_owns_every_driver_leaves_nothing_to_kube_scheduler_and_serves_all() -> None:
    async with world(*STOCK, objects=(*CLUSTER, slice_("n2", 1, BAD))) as here:
        here.add(pod("a", by_template("gpu")), *asks(requests(class_name="bad")), pod("plain"))
        await here.until(lambda: here.node_of("a") and here.node_of("bad") and here.node_of("plain"))


# --- what cannot be read


UNREADABLE = {
    "ResourceClaim": (
        claim("odd", {"devices": {"requests": "many"}}),
        "spec.devices.requests: Expected `array`",
    ),
    "DeviceClass": (
        {**device_class("odd"), "spec": {"selectors": {"cel": "x"}}},
        "spec.selectors: Expected `array`",
    ),
    "ResourceSlice": (
        {
            **slice_("n2", 1, BAD),
            "metadata": {"name": "odd"},
            "spec": {"driver": BAD, "pool": {"generation": "x"}},
        },
        "spec.pool",
    ),
    "AllocationPolicy": ({**policy("odd"), "spec": {"pools": "all"}}, "spec.pools: Expected `array`"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_an_object_that_cannot_be_read_is_told_of_and_left_out(kind: str) -> None:
    obj, words = UNREADABLE[kind]
    async with world(*STOCK, objects=CLUSTER) as here:
        smuggle(here, obj)
        here.add(pod("good", by_template("gpu")))
        await here.until(lambda: here.messages("Unreadable", "odd"))
        await here.until(lambda: here.node_of("good"))
        (text,) = here.messages("Unreadable", "odd")
        assert text.startswith(words)
        assert f"correct that, or delete and create the {kind} anew" in text


async def test_a_claim_that_can_be_read_no_more_holds_its_device_until_it_is_deleted_and_no_longer() -> None:
    async with world("binding", objects=(node("n1"), slice_("n1", 1), device_class(), policy())) as here:
        here.add(claim("held"), pod("holder", by_name("held")))
        await here.until(lambda: here.node_of("holder"))
        odd = here.claims["held"]
        odd = {
            **odd,
            "metadata": {**odd["metadata"], "finalizers": []},
            "spec": {"devices": {"requests": "x"}},
        }
        smuggle(here, odd)
        await here.until(lambda: here.messages("Unreadable", "held"))
        here.add(claim("mine"), pod("next", by_name("mine")))
        await here.until(lambda: here.messages("AllocationFailed", "next"))

        await here.delete("claim", "held")

        await here.until(lambda: here.node_of("next"))
        assert len(here.messages("Unreadable", "held")) == 1


@pytest.mark.parametrize("meanwhile", ["running", "restarted"])
async def test_a_claim_that_never_could_be_read_holds_its_device_until_it_is_deleted(meanwhile: str) -> None:
    """Kopf brings it, or the first list of a new operator has it."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "dev-0"}]
    odd = {**claim("odd", {"devices": {"requests": "x"}})}
    odd["status"] = {"allocation": {"devices": {"results": results}}}
    async with World("binding") as here:
        here.add(node("n1"), slice_("n1", 1), device_class(), policy(), claim("mine"))
        if meanwhile == "restarted":
            smuggle(here, odd)
            await here.start()
        else:
            await here.start()
            smuggle(here, odd)
        await here.until(lambda: here.messages("Unreadable", "odd"))

        here.add(pod("next", by_name("mine")))
        await here.until(lambda: here.messages("AllocationFailed", "next"))
        await here.delete("claim", "odd")
        await here.until(lambda: here.node_of("next"))


async def test_null_lists_are_no_lists() -> None:
    async with world("claims", objects=CLUSTER) as here:
        smuggle(here, claim("odd", {"devices": {"requests": None, "constraints": None}}))
        here.add(pod("web", by_name("odd")))
        await here.until(lambda: not here.is_gated("web"))


# --- policies


async def test_a_driver_that_nobody_publishes_is_told_with_the_name_that_was_meant_and_then_that_it_is_mended() -> (
    None
):
    async with world(*STOCK, objects=(*CLUSTER, slice_("n2", 1, "nic.example.com"))) as here:
        here.add(policy("typo", "nic.exmple.com"))
        await here.until(lambda: here.messages("NoPools", "typo"))
        (text,) = here.messages("NoPools", "typo")
        assert text.startswith(
            "spec.pools[0].driver: no ResourceSlice of driver nic.exmple.com is published (did you mean nic.example.com?)"
        )
        assert here.condition("PoolsFound", "typo") == ("False", "NoPools")
        await here.patch("policy", "typo", {"spec": {"pools": [{"driver": "nic.example.com"}]}})
        await here.until(lambda: here.condition("Ready", "typo") == ("True", "Allocating"))
        assert here.condition("PoolsFound", "typo") == ("True", "AllFound")
        await here.until(lambda: here.messages("Mended", "typo"))


async def test_one_selector_that_hits_nothing_is_told_while_the_others_are_allocated_from() -> None:
    both = policy("both")
    both["spec"]["pools"] = [{"driver": "nic.example.com"}, {"driver": "nic.example.com", "pool": "n9"}]
    async with world(*STOCK, objects=(*CLUSTER, slice_("n2", 1, "nic.example.com"), both)) as here:
        await here.until(lambda: here.messages("PoolsUnknown", "both"))
        (text,) = here.messages("PoolsUnknown", "both")
        assert text.startswith("spec.pools[1].pool: driver nic.example.com publishes no pool n9")
        await here.until(lambda: here.condition("Ready", "both") == ("True", "Allocating"))


async def test_policies_that_select_the_same_are_both_told_which_of_them_rules() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        here.add(policy("zealous"))  # of the same second at worst: then the name decides
        await here.until(
            lambda: here.messages("PoolsShared", "gpus") and here.messages("PoolsShared", "zealous")
        )
        assert here.messages("PoolsShared", "gpus")[0].startswith(
            "spec.pools[0]: AllocationPolicy zealous selects the same, 1 published pool, and this policy rules them"
        )
        assert here.messages("PoolsShared", "zealous")[0].startswith(
            "spec.pools[0]: AllocationPolicy gpus selects the same, 1 published pool, and that one rules them"
        )
        await here.delete("policy", "zealous")
        await here.until(lambda: here.condition("Overlapping") == ("False", "NoneShared"))


@pytest.mark.parametrize(
    ("published", "reason"),
    [(slices(1, 2), "PoolIncomplete"), (slices(2, 2, names="dev"), "PoolInvalid")],
    ids=["incomplete", "invalid"],
)
async def test_a_policy_of_broken_pools_only_is_not_ready(published: tuple[Obj, ...], reason: str) -> None:
    async with world(*STOCK, objects=(*CLUSTER[:5], policy("broken", BAD), *published)) as here:
        await here.until(lambda: here.condition("Ready", "broken") == ("False", reason))
        await here.until(lambda: here.messages(reason, "broken"))
        assert here.messages(reason, "broken")[0].startswith(f"nothing is allocated from pool {BAD}/n2 (")


async def test_a_slice_without_nodes_is_named_by_its_policy() -> None:
    """API servers refuse it today; devices of it can be used nowhere."""
    stray = slice_("n2", 1, BAD)
    del stray["spec"]["nodeName"]
    async with world(*STOCK, objects=CLUSTER) as here:
        smuggle(here, stray)
        here.add(pod("good", by_template("gpu")))
        await here.until(lambda: here.messages("PoolInvalid", "gpus"))
        assert (
            f"(ResourceSlice n2-{BAD}: spec has none of nodeName," in here.messages("PoolInvalid", "gpus")[0]
        )
        await here.until(lambda: here.node_of("good"))


async def test_the_status_lists_what_is_owned_and_how_much_of_it_is_in_use() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.policy().get("status", {}).get("allocatedDevices") == 1)
        status = here.policy()["status"]

    pool = {"driver": DRIVER, "name": "n1", "nodes": 1, "slices": 1, "devices": 3, "allocatedDevices": 1}
    assert status["ownedPools"] == [pool]
    assert status.get("unlistedPools", 0) == 0


async def test_a_long_list_of_pools_is_cut_and_counted() -> None:
    many = [slice_(f"n{number}", 1) for number in range(40)]
    async with world(*STOCK, objects=(*many, policy())) as here:
        await here.until(lambda: here.policy().get("status", {}).get("pools") == 40)
        status = here.policy()["status"]

    assert (len(status["ownedPools"]), status["unlistedPools"]) == (32, 8)


# --- the same news


async def test_a_restart_goes_on_with_the_event_that_is_there() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER, *asks(requests(count=33)))
        for _ in range(2):
            await here.start()
            await here.until(lambda: here.messages("InvalidClaim", "bad"))
            await here.settle()
            await here.stop()
        found = [event for event in here.events if event["reason"] == "InvalidClaim"]

    assert sorted((event["involvedObject"]["kind"], event["count"]) for event in found) == [
        ("Pod", 2),
        ("ResourceClaim", 2),
    ]


async def test_many_pods_with_one_cause_get_one_event_each_however_often_they_are_looked_at() -> None:
    waiting = [pod(f"p{number}", by_template("many")) for number in range(10)]
    async with world(
        *STOCK, objects=(*CLUSTER, template("many", requests(count=3)), pod("holder", by_name("held")))
    ) as here:
        await here.until(lambda: here.node_of("holder"))
        here.add(*waiting)
        await here.until(lambda: all(here.messages("AllocationFailed", f"p{number}") for number in range(10)))
        for number in range(5):
            here.add(slice_(f"other-{number}", 1, "nic.example.com"))
            await here.settle()
        assert len([event for event in here.events if event["reason"] == "AllocationFailed"]) == 10
        writes = [
            call
            for call, _ in here.server.calls
            if call.resource == "events" and call.verb in {"create", "patch"}
        ]
        assert len(writes) <= 10 + 4  # two policies' words at most beside them


async def test_a_pod_that_was_warned_is_told_that_all_is_well_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "LAG", 60.0)
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(*asks(requests(class_name="later")), pod("good", by_template("gpu")))
        await here.until(lambda: here.messages("DeviceClassMissing", "bad") and here.node_of("good"))
        here.add(device_class("later"))
        await here.until(lambda: here.messages("Allocated", "bad"))
        assert here.messages("Allocated", "bad") == [f"the pod goes to node n1 with {DRIVER}/n1/dev-1"]
        assert here.messages("Allocated", "good") == []


async def test_a_pod_that_was_warned_and_is_left_to_kube_scheduler_is_told_so() -> None:
    async with world("claims", objects=(*CLUSTER, slice_("n2", 1, "nic.example.com"))) as here:
        here.add(*asks(requests(class_name="nic")))
        await here.until(lambda: here.messages("DeviceClassMissing", "bad"))
        here.add(device_class("nic", "nic.example.com"))
        await here.until(lambda: here.messages("Released", "bad"))


# --- what passes


async def test_a_claim_that_nobody_makes_from_its_template_is_told_of_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "SLOW", 0.2)
    async with world("binding", "kubelet", objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.messages("ClaimNotCreated", "web"))
        (text,) = here.messages("ClaimNotCreated", "web")
        assert text.startswith(
            "spec.resourceClaims[0].resourceClaimTemplateName: the claim from ResourceClaimTemplate default/gpu has not been created"
        )


async def test_a_claim_that_is_full_lets_the_next_pod_in_when_a_consumer_ends() -> None:
    crowd = [{"resource": "pods", "name": f"p{number}", "uid": f"u{number}"} for number in range(256)]
    device = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "dev-0"}
    full = {"status": {"allocation": {"devices": {"results": [device]}}, "reservedFor": crowd}}
    async with world("binding", "kubelet", objects=(*CLUSTER, claim("shared"))) as here:
        await here.patch("claim", "shared", full, "status")
        here.add(pod("web", by_name("shared")))
        await here.until(lambda: here.messages("TooManyConsumers", "web"))
        assert here.messages("TooManyConsumers", "web")[0].startswith(
            "ResourceClaim default/shared: status.reservedFor: 256 pods use the claim already"
        )
        await here.patch("claim", "shared", {"status": {"reservedFor": crowd[1:]}}, "status")
        await here.until(lambda: here.node_of("web"))


async def test_a_pod_whose_claim_is_shared_with_one_at_another_gate_waits_for_that_gate() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("shared"))) as here:
        here.add(
            pod("other", by_name("shared"), gates=("dra-operator.io/allocate", "example.com/wait")),
            pod("web", by_name("shared")),
        )
        await here.until(lambda: here.messages("GatedConsumer", "web"))
        assert here.messages("GatedConsumer", "web")[0].startswith(
            "ResourceClaim default/shared is shared with Pod default/other, which other scheduling gates hold: example.com/wait"
        )
        gates = {"spec": {"schedulingGates": [{"name": "dra-operator.io/allocate"}]}}
        await here.patch("pod", "other", gates)
        await here.until(lambda: here.node_of("web") and here.node_of("other"))


async def test_a_rule_that_somebody_keeps_from_going_is_missed_until_it_can_be_made_anew() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        await here.until(lambda: here.condition("Enforced") == ("True", "RulesInPlace"))
        name = next(
            name for name, rule in here.rules.items() if rule["spec"]["deviceSelector"]["driver"] == DRIVER
        )
        await here.patch("rule", name, {"metadata": {"finalizers": ["example.com/keep"]}})
        await here.delete("rule", name)
        await here.until(lambda: here.condition("Enforced") == ("False", "RulesMissing"))
        await here.patch("rule", name, {"metadata": {"finalizers": None}})
        await here.until(lambda: here.condition("Enforced") == ("True", "RulesInPlace"))


def numbered(value: str) -> Obj:
    return {"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": [value]}]}


@pytest.mark.parametrize("value", ["many", "9" * 5000, str(2**63)], ids=["text", "digits", "beyond 64 bits"])
async def test_a_pod_that_prefers_what_cannot_be_read_is_told_and_another_goes_on(value: str) -> None:
    """The API server looks into such values only where they are required; kube-scheduler does not place such a pod at all."""
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": numbered(value)}]
    }
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("bad", by_template("gpu"), affinity={"nodeAffinity": preferred}))
        await here.until(lambda: here.messages("InvalidPod", "bad"))
        (text,) = here.messages("InvalidPod", "bad")
        path = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]"
        assert_in_order(text, (path, "operator Gt does not take the values", "recreate the pod"))
        assert len(text.encode()) <= 1024
        here.add(pod("good", by_template("gpu")))
        await here.until(lambda: here.node_of("good"))
        assert here.is_gated("bad")


async def test_of_required_terms_one_that_cannot_be_read_matches_nothing_and_another_may() -> None:
    terms = [
        numbered("many"),
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    only = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms[:1]}}
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("either", by_template("gpu"), affinity={"nodeAffinity": required}))
        here.add(pod("none", by_template("gpu"), affinity={"nodeAffinity": only}))
        await here.until(lambda: here.node_of("either"))
        await here.until(lambda: here.messages("AllocationFailed", "none"))
        assert "didn't match Pod's node affinity/selector" in here.messages("AllocationFailed", "none")[0]
