"""`dra-operator release`: what it leaves of the operator's doing, in which order it works, and that any crash can be gone on from."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.app import release
from dra_operator.app.release import give_back
from dra_operator.controllers import remover
from dra_operator.controllers.remover import PASSES
from dra_operator.kube.api import Api
from dra_operator.model import FINALIZER, SCHEDULER_NAME
from dra_operator.settings import build
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, unavailable

from . import golden
from .golden import EPOCH, MARK
from .objects import (
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
from .test_commit import touch
from .world import Interloper, World, world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy(), template(), claim("mine"))
OTHER_GATE = "example.com/quota"
GATE_BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": "dra-operator-gate"},
    "spec": {"policyName": "dra-operator-gate"},
}
GATE_WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "dra-operator-gate"},
    "webhooks": [],
}


async def removed(here: World, *, wait: float = 0.0, settle: float = 0.0, gate: float = 0.0) -> int:
    """Run the command once; its exit status."""
    api = Api.at(here.server.url)
    try:
        return await give_back(api, build(settle_seconds=settle), wait, gate)
    finally:
        await api.close()


def stored(here: World) -> list[Obj]:
    """All objects but events, which tell what was and expire."""
    kinds = [kind for kind in here.server.store.resources() if kind[1] != "events"]
    return [record.obj for kind in kinds for record in here.server.store.items(kind)]


def versions(here: World) -> dict[str, str]:
    return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in stored(here)}


def traces(here: World) -> list[str]:
    """Whatever of the operator's is on any stored object."""
    found = []
    for obj in stored(here):
        key = f"{obj['kind']} {obj['metadata']['name']}"
        for part in ("annotations", "labels", "finalizers"):
            names = obj["metadata"].get(part) or ()
            found += [f"{key} {part} {name}" for name in names if name.startswith("dra-operator.io/")]
        if obj["kind"] == "DeviceTaintRule" or (obj["kind"] == "Pod" and golden.is_gated(obj)):
            found.append(key)
    return found


def inside(objects: dict[str, Obj]) -> dict[str, tuple[object, object]]:
    """Spec and status by name."""
    return {name: (obj["spec"], obj.get("status")) for name, obj in objects.items()}


def half_done(here: World) -> list[str]:
    """Claims that are marked and not allocated, or allocated by the operator and nobody's."""
    marked = {name for name, obj in here.claims.items() if MARK in (obj["metadata"].get("annotations") or {})}
    return [name for name in marked if not here.claims[name].get("status", {}).get("reservedFor")]


def touch_metadata(here: World, name: str, metadata: Obj) -> None:
    """Another client's write to the metadata of a claim, past HTTP."""
    machinery = here.server.machinery
    kind = machinery.kinds.stored(("resource.k8s.io", "resourceclaims"))
    found = here.claims[name]
    machinery.update(kind, ("default", name), {**found, "metadata": {**found["metadata"], **metadata}})


async def left_by_0_1_0(here: World) -> None:
    """Brings the embedded server into the state in which release 0.1.0 died."""
    here.add(*golden.cluster(), golden.owned())
    await here.patch("policy", "gpus", {"status": golden.policy_status()}, "status")
    leaked, leaked_status = golden.leaked()
    here.add(golden.rule(here.policy()["metadata"]["uid"]), *golden.claims(), *golden.pods(), leaked)
    here.add(golden.generated_claim(here.pods["waits-generated"]["metadata"]["uid"]))
    await here.patch("claim", "leaked", {"status": leaked_status}, "status")
    for row in golden.CLAIMS:
        if row.device:
            uid = here.pods[row.consumer]["metadata"]["uid"]
            await here.patch("claim", row.name, {"status": golden.allocated(row, uid)}, "status")


def check_given_back(here: World, before: dict[str, tuple[object, object]]) -> None:
    """What must be so after a removal from the state that 0.1.0 left, however often it was begun."""
    after = here.claims
    assert traces(here) == []
    held = {row.name for row in golden.CLAIMS if row.device}
    assert {name: inside(after)[name] for name in held} == {name: before[name] for name in held}
    assert {name for name, found in after.items() if found["metadata"].get("finalizers")} == held
    assert sorted(here.devices()) == sorted(held)
    assert [pod["spec"].get("affinity") for pod in here.pods.values() if pod["spec"].get("affinity")] == [
        golden.PINNED
    ]


# --------------------------------------------------------------------------- what is left


async def test_everything_is_given_back_and_claims_in_use_stay_as_they_are() -> None:
    many = template("many", requests(count=9))
    async with world("claims", "binding", "kubelet", objects=(*CLUSTER, many)) as here:
        here.add(pod("web", by_template("gpu")), pod("other", by_name("mine")))
        await here.until(lambda: here.node_of("web") and here.node_of("other"))
        here.add(pod("big", by_template("many")), pod("held", by_template("gpu"), gates=(OTHER_GATE, GATE)))
        await here.until(lambda: here.messages("AllocationFailed", "big") and len(here.claims) == 4)
        await here.settle_but_timers()
        assert await here.stop() == 0
        before = inside(here.claims)

        status = await removed(here)

        assert status == 0
        assert traces(here) == []
        assert inside(here.claims) == before
        assert here.pods["held"]["spec"]["schedulingGates"] == [{"name": OTHER_GATE}]
        assert not here.is_gated("big")


async def test_a_second_run_finds_nothing_and_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with world("claims", "binding", "kubelet", objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.stop()
        assert await removed(here) == 0
        before = versions(here)
        caplog.set_level(logging.INFO, logger="dra_operator")

        assert await removed(here) == 0

        assert versions(here) == before
        assert "there was nothing of the operator's left" in caplog.text


async def test_pods_that_name_us_as_their_scheduler_are_told_as_nobody_binds_them_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their spec.schedulerName cannot be changed; those that are bound are as good as any."""
    async with World("claims", "binding", "kubelet", settle_seconds=0.0) as here:
        mine: dict[str, Any] = {"gates": (), "schedulerName": SCHEDULER_NAME}
        here.add(*CLUSTER, pod("there", by_name("mine"), **mine))
        await here.start()
        await here.until(lambda: here.node_of("there"))
        here.add(pod("late", by_name("none"), **mine))
        await here.settle_but_timers()
        await here.stop()

        assert await removed(here) == 0
        (told,) = [line for line in caplog.messages if "spec.schedulerName" in line]
        assert told.endswith("recreate them without that name: default/late")
        assert here.devices_of("there")


async def test_half_done_states_end_so_that_kube_scheduler_can_go_on() -> None:
    """Allocations with a consumer stay, with Kubernetes' finalizer; marks without allocation, and unused allocations, go."""
    async with World() as here:
        await left_by_0_1_0(here)
        before = inside(here.claims)

        assert await removed(here) == 0

        check_given_back(here, before)


async def test_an_allocation_that_lands_meanwhile_is_seen_by_kube_scheduler_before_the_taints_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dead operator's write comes just before the one that would have made it fail."""
    (row,) = (row for row in golden.CLAIMS if row.name == "half-b")
    caplog.set_level(logging.INFO, logger="dra_operator")
    async with World() as here:
        late = claim(row.name)
        late["metadata"] |= {"finalizers": [FINALIZER], "annotations": {MARK: row.mark}}
        here.add(*golden.cluster(), golden.owned(), late, pod("web", by_name(row.name)))
        here.add(golden.rule(here.policy()["metadata"]["uid"]))

        def land() -> None:
            consumers = [{"resource": "pods", "name": "web", "uid": here.pods["web"]["metadata"]["uid"]}]
            status = {"allocation": golden.allocation("dev-4"), "reservedFor": consumers}
            here.server.store.put(
                ("resource.k8s.io", "resourceclaims"), {**here.claims[row.name], "status": status}
            )

        here.server.faults.add(Interloper("resourceclaims", land))

        assert await removed(here, settle=0.01) == 0

        assert list(here.devices()) == [row.name]
        assert here.rules == {}
    assert "kube-scheduler has to see all allocations" in caplog.text


async def test_an_installation_without_our_kind_and_without_taint_rules_is_removed_too() -> None:
    """The custom resource definition may be gone already; before Kubernetes 1.37 there are no taint rules."""
    async with World() as here:
        here.add(*golden.cluster(), pod("web", by_template("gpu")))
        await here.user.request(
            "DELETE",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/allocationpolicies.dra-operator.io",
        )
        not_found = StatusError(404, "NotFound", "the server could not find the requested resource")
        here.server.faults.add(Fault(error=not_found, resource="devicetaintrules", times=9))

        assert await removed(here) == 0

        assert not here.is_gated("web")


async def test_rules_of_others_stay() -> None:
    async with World() as here:
        foreign = golden.rule("none")
        foreign["metadata"] = {"name": "maintenance"}
        foreign["spec"]["taint"]["key"] = "example.com/maintenance"
        stripped = golden.rule("none")
        stripped["metadata"] = {"name": golden.RULE}  # ours, though somebody took its label off
        here.add(foreign, stripped)

        assert await removed(here) == 0

        assert list(here.rules) == ["maintenance"]


async def test_reinstalled_it_counts_what_is_allocated_and_accuses_nobody() -> None:
    cluster = (node("n1"), slice_("n1", 2), device_class(), policy(), template())
    async with world("claims", "binding", "kubelet", objects=cluster) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        (held,) = here.devices_of("web")
        await here.stop()
        assert await removed(here) == 0

        await here.start()
        here.add(pod("next", by_template("gpu")), pod("last", by_template("gpu")))
        await here.until(lambda: here.node_of("next") or here.node_of("last"))
        await here.until(lambda: here.policy()["status"].get("allocatedDevices") == 2)
        await here.settle_but_timers()

        assert here.held_twice() == []
        assert held not in here.devices_of("next") + here.devices_of("last")
        accused = {"AllocatedPastPolicy", "DeviceHeldTwice"}
        assert [event for event in here.events if event["reason"] in accused] == []


async def test_pods_are_read_in_pages_and_only_those_with_a_gate_are_written() -> None:
    async with World() as here:
        here.add(*(pod(f"plain-{number}", gates=()) for number in range(600)), pod("web", by_template("gpu")))
        calls = len(here.server.calls)

        assert await removed(here) == 0

        made = [call for call, _ in here.server.calls[calls:]]
        assert [call.name for call in made if call.verb == "patch"] == ["web"]
        lists = [call for call in made if (call.verb, call.plural) == ("list", "pods")]
        assert len(lists) > len(
            [call for call in made if (call.verb, call.plural) == ("list", "resourceclaims")]
        )


async def test_no_claim_is_written_once_a_gate_is_open() -> None:
    """kube-scheduler writes claims from then on, and gives a pod up for minutes when its write conflicts with one of ours."""
    async with World() as here:
        await left_by_0_1_0(here)
        calls = len(here.server.calls)

        assert await removed(here) == 0

        written = [call.plural for call, _ in here.server.calls[calls:] if call.verb == "patch"]
        assert "resourceclaims" in written
        assert "resourceclaims" not in written[written.index("pods") :]


# --------------------------------------------------------------------------- when it may not begin


async def test_nothing_is_touched_while_a_pod_of_the_operator_runs(caplog: pytest.LogCaptureFixture) -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        running = pod("dra-operator-5b8f9", gates=(), nodeName="n1")
        running["metadata"]["labels"] = {"app.kubernetes.io/name": "dra-operator"}
        here.add(running)
        before = versions(here)

        assert await removed(here) == 1

        assert versions(here) == before
        assert "the operator still runs: pod default/dra-operator-5b8f9" in caplog.text


async def test_it_waits_for_the_operators_pod_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "LOOK_SECONDS", 0.01)
    async with World() as here:
        look = here.trap("pods", "list")
        ending = pod("dra-operator-5b8f9", gates=())
        ending["metadata"]["labels"] = {"app.kubernetes.io/name": "dra-operator"}
        here.add(ending, *golden.cluster(), pod("web", by_template("gpu")))
        removal = asyncio.create_task(removed(here, wait=60.0))
        await here.trapped(look)
        assert here.is_gated("web")

        await here.delete("pod", "dra-operator-5b8f9")

        assert await removal == 0
        assert not here.is_gated("web")


@pytest.mark.parametrize(
    ("gate", "plural"),
    [
        (GATE_BINDING, "mutatingadmissionpolicybindings"),
        (GATE_WEBHOOK, "mutatingwebhookconfigurations"),
    ],
    ids=["policy", "webhook"],
)
async def test_a_gate_that_is_still_put_on_goes_first(gate: Obj, plural: str) -> None:
    async with World() as here:
        here.add(gate, *golden.cluster(), pod("web", by_template("gpu")))
        calls = len(here.server.calls)

        assert await removed(here) == 0

        assert here.server.objects(plural, "admissionregistration.k8s.io") == []
        writes = [
            (call.verb, call.plural)
            for call, _ in here.server.calls[calls:]
            if call.verb in {"delete", "patch"}
        ]
        assert ("delete", plural) in writes[:2]
        assert writes[2] == ("patch", "pods")


class OnWords(logging.Handler):
    """Does something once, at the moment at which the remover says some words."""

    def __init__(self, words: str, action: Callable[[], object]) -> None:
        super().__init__()
        self._words, self._action, self.said = words, action, ""

    def emit(self, record: logging.LogRecord) -> None:
        if not self.said and self._words in record.getMessage():
            self.said = record.getMessage()
            self._action()


@contextmanager
def at_the_words(words: str, action: Callable[[], object]) -> Iterator[OnWords]:
    logger = logging.getLogger(remover.__name__)
    handler, level = OnWords(words, action), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


async def test_a_pod_that_an_api_server_gates_late_is_released_whoever_deleted_the_gate_policy() -> None:
    """The script deletes it before it starts the command; an API server may hear of that after all pods were looked at."""
    async with World() as here:
        here.add(*golden.cluster(), pod("web", by_template("gpu")))
        late = pod("late", by_template("gpu"))
        with at_the_words("API servers may put the gate", partial(here.add, late)) as waited:
            assert await removed(here, gate=0.01) == 0

        assert waited.said
        assert not here.is_gated("web")
        assert not here.is_gated("late")


async def test_the_time_for_late_gates_is_bounded() -> None:
    """A long settle time is for kube-scheduler, which has nothing to see here."""
    async with World() as here, Api.at(here.server.url) as api:
        removal = asyncio.create_task(give_back(api, build(settle_seconds=3600.0), 0.0))
        with at_the_words("API servers may put the gate", removal.cancel) as waited:
            await asyncio.wait([removal])
    assert waited.said.startswith(f"waiting {release.GATE_SECONDS:.0f} seconds")


@pytest.mark.parametrize("plural", ["mutatingadmissionpolicybindings", "mutatingwebhookconfigurations"])
async def test_without_the_right_to_delete_the_gate_nothing_is_touched(
    caplog: pytest.LogCaptureFixture, plural: str
) -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        here.add(GATE_BINDING if "policy" in plural else GATE_WEBHOOK)
        before = versions(here)
        forbidden = StatusError(403, "Forbidden", "User cannot delete resource")
        here.server.faults.add(Fault(error=forbidden, resource=plural))

        assert await removed(here) == 1

        assert versions(here) == before
        assert "kubectl delete --ignore-not-found" in caplog.text
        assert f"{plural.removesuffix('s')}/dra-operator-gate" in caplog.text


# --------------------------------------------------------------------------- what goes wrong on the way


@pytest.mark.parametrize("survived", range(1, 16))
async def test_a_crash_after_any_write_is_gone_on_from(survived: int) -> None:
    """The server stops answering after so many writes of the first run; the second run ends the work.

    At no moment are the taints gone while an attempt is half done.
    """
    async with World() as here:
        await left_by_0_1_0(here)
        before = inside(here.claims)
        crash = asyncio.Event()
        loose_without_rules: list[str] = []
        writes = 0

        def count(*_: object) -> None:
            nonlocal writes
            writes += 1
            if writes == survived:
                crash.set()
            if not here.rules:
                loose_without_rules.extend(half_done(here))

        here.server.store.listen_all(count)
        first = asyncio.create_task(removed(here))
        await asyncio.wait([first, asyncio.create_task(crash.wait())], return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        await asyncio.wait([first])

        assert await removed(here) == 0

        check_given_back(here, before)
        assert loose_without_rules == []


async def test_a_late_allocation_of_the_dead_operator_fails_or_is_kept() -> None:
    """It was sent before the operator died, and served in the midst of the removal: then it stands, and is nobody else's."""
    async with World() as here:
        await left_by_0_1_0(here)
        uid = here.pods["waits-marked"]["metadata"]["uid"]
        late = golden.Claim("only-marked", golden.DIGESTS["dev-3"], "dev-3", "waits-marked")

        def land() -> None:
            touch(here, "resourceclaims", "only-marked", **golden.allocated(late, uid))

        here.server.faults.add(
            Interloper("resourceclaims", land)
        )  # just before the first patch of a claim is served

        assert await removed(here) == 0

        assert here.devices()["only-marked"] == ["gpu.example.com/n1/dev-3"]
        assert FINALIZER in here.claims["only-marked"]["metadata"]["finalizers"]
        assert traces(here) == []


async def test_a_late_mark_of_the_dead_operator_goes_with_its_finalizer() -> None:
    async with World() as here:
        here.add(*golden.cluster(), claim("unmarked"), pod("web", by_name("unmarked")))
        late = {"finalizers": [FINALIZER], "annotations": {MARK: golden.DIGESTS["dev-3"]}}
        landed = Interloper(
            "pods", lambda: touch_metadata(here, "unmarked", late)
        )  # the claims have been looked at by then
        here.server.faults.add(landed)

        assert await removed(here) == 0

        assert landed.hits
        assert traces(here) == []
        assert not here.claims["unmarked"]["metadata"].get("finalizers")


async def test_pods_and_claims_that_change_meanwhile_are_read_again() -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        conflict = StatusError(409, "Conflict", "the object has been modified")
        here.server.faults.add(Fault(error=conflict, verbs=frozenset({"patch"}), resource="pods", times=3))
        here.server.faults.add(
            Fault(error=unavailable(), verbs=frozenset({"patch"}), resource="resourceclaims", times=3)
        )
        here.server.faults.add(
            Fault(lose_answer=True, verbs=frozenset({"delete"}), resource="devicetaintrules")
        )

        assert await removed(here) == 0

        assert traces(here) == []


async def test_a_conflict_about_a_rule_that_has_not_changed_leaves_no_rule_behind() -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        conflict = StatusError(409, "Conflict", "not now")
        here.server.faults.add(
            Fault(error=conflict, verbs=frozenset({"delete"}), resource="devicetaintrules", times=3)
        )

        assert await removed(here) == 0

        assert traces(here) == []


async def test_a_pod_that_is_gated_in_the_midst_of_it_is_released_too() -> None:
    """An API server learns late that the gate policy is gone: one more pass finds the pod."""
    async with World() as here:
        await left_by_0_1_0(here)
        late = pod("late", by_template("gpu"))
        here.server.faults.add(
            Interloper("pods", lambda: here.add(late))
        )  # the pods have been listed by then

        assert await removed(here) == 0

        assert not here.is_gated("late")


async def test_somebody_who_puts_gates_on_without_end_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async with World() as here:
        here.add(*golden.cluster(), pod("web", by_template("gpu")))
        for number in range(PASSES):
            one = pod(f"again-{number}", by_template("gpu"))
            here.server.faults.add(Interloper("pods", partial(here.add, one)))

        assert await removed(here) == 1

        assert "something puts gates, marks or rules back" in caplog.text


async def test_what_cannot_be_done_is_named_and_the_rest_is_done(caplog: pytest.LogCaptureFixture) -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        forbidden = StatusError(403, "Forbidden", 'admission webhook "frozen.example.com" denied the request')
        here.server.faults.add(
            Fault(error=forbidden, verbs=frozenset({"patch"}), resource="pods", name="waits-pinned", times=99)
        )

        assert await removed(here) == 1

        assert [name for name in here.pods if here.is_gated(name)] == ["waits-pinned"]
        assert here.rules == {}
        assert "Pod default/waits-pinned" in caplog.text
        assert "frozen.example.com" in caplog.text


async def test_an_object_of_others_that_cannot_be_read_is_told_of_and_holds_nothing_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One user's pod must not keep all pods at the gate."""
    async with World() as here:
        await left_by_0_1_0(here)
        odd = pod("odd", gates=())
        smuggle(here, {**odd, "spec": {**odd["spec"], "priority": "high"}})
        smuggle(here, claim("odd", {"devices": {"requests": "many"}}))

        assert await removed(here) == 0

        assert traces(here) == []
    assert caplog.text.count("bears nothing of the operator's: Pod default/odd") == 1
    assert "bears nothing of the operator's: ResourceClaim default/odd" in caplog.text


@pytest.mark.parametrize("part", ["gate", "claim", "mark"])
async def test_an_object_that_cannot_be_read_and_may_be_ours_stops_it_before_the_taints_go(
    part: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        odd = pod("odd", *([by_template("gpu")] if part == "claim" else []), gates=())
        odd["spec"]["priority"] = "high"
        if part == "gate":
            odd["spec"]["schedulingGates"] = [{"name": GATE}]
        if part == "mark":
            odd = claim("odd", {"devices": {"requests": "many"}})
            odd["metadata"]["annotations"] = {MARK: "0123456789abcdef"}
        smuggle(here, odd)

        assert await removed(here) == 1

        assert list(here.rules) == [golden.RULE]
    assert f"{odd['kind']} default/odd" in caplog.text
    assert "cannot be read, look for yourself" in caplog.text


async def test_the_taints_stay_while_an_attempt_cannot_be_ended(caplog: pytest.LogCaptureFixture) -> None:
    """Its device may be held by a write that nobody has seen yet."""
    async with World() as here:
        await left_by_0_1_0(here)
        forbidden = StatusError(403, "Forbidden", "no")
        here.server.faults.add(
            Fault(
                error=forbidden,
                verbs=frozenset({"patch"}),
                resource="resourceclaims",
                name="half-b",
                times=99,
            )
        )

        assert await removed(here) == 1

        assert list(here.rules) == [golden.RULE]
        assert here.policy()["metadata"]["finalizers"] == ["dra-operator.io/policy"]
        assert "ResourceClaim default/half-b" in caplog.text


async def test_a_rule_that_a_finalizer_keeps_is_told_from_one_that_an_operator_made_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with World() as here:
        here.add(*golden.cluster(), golden.owned(), pod("web", by_template("gpu")))
        rule = golden.rule(here.policy()["metadata"]["uid"])
        rule["metadata"]["finalizers"] = ["example.com/keep"]
        here.add(rule)

        assert await removed(here) == 1

        assert not here.is_gated("web")
    assert "kept by the finalizers example.com/keep: take them off" in caplog.text
    assert "is there again" not in caplog.text


async def test_a_policy_whose_rule_cannot_be_deleted_keeps_its_finalizer() -> None:
    async with World() as here:
        await left_by_0_1_0(here)
        forbidden = StatusError(403, "Forbidden", "no")
        here.server.faults.add(
            Fault(error=forbidden, verbs=frozenset({"delete"}), resource="devicetaintrules", times=9)
        )

        assert await removed(here) == 1

        assert here.policy()["metadata"]["finalizers"] == ["dra-operator.io/policy"]
        assert not here.is_gated("waits-marked")


async def test_kube_scheduler_gets_time_to_see_what_was_allocated_last() -> None:
    """The rules go only after the settle time; without rules, or without allocations, nobody waits."""
    async with World() as here:
        await left_by_0_1_0(here)
        begin = asyncio.get_running_loop().time()
        assert await removed(here, settle=0.3) == 0
        assert asyncio.get_running_loop().time() - begin >= 0.3

        assert EPOCH not in str(stored(here))
        async with asyncio.timeout(30):
            assert await removed(here, settle=3600.0) == 0


async def test_an_operator_that_nobody_sees_is_found_out_before_a_gate_is_opened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It runs outside of the cluster, so that it has no pod; its taint rules come back."""
    caplog.set_level(logging.INFO)
    async with world("claims", "binding", "kubelet", objects=CLUSTER) as here:
        waiting = [f"p{number}" for number in range(5)]
        here.add(*(pod(name, by_template("gpu")) for name in waiting))
        await here.until(lambda: sum(not here.is_gated(name) for name in waiting) == 4)

        assert await removed(here, settle=2.0) == 1

        assert "is there again, so an operator still runs, perhaps in a terminal: stop it" in caplog.text
        assert "pods released" not in caplog.text
        assert sum(here.is_gated(name) for name in waiting) == 1
