"""The shipped roles give the least that works: without any one of their rights, a duty that has a name fails, and the operator says so.

Each right has a row: the duty, what brings it about, and what is then told. Each row is run twice, with all the rights of the files and
without that one. What the whole end-to-end run really uses is compared with the roles by `tests.e2e.harness.rights`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.kube.kinds import KINDS, fed_by
from dra_operator.model import SCHEDULER_NAME
from dra_operator.testing.fakeapi.faults import Fault
from tests.e2e.harness.rights import BASE, GENERATE, REPLACE, Right, rights_of

from .objects import by_name, by_template, claim, device_class, node, pod, policy, requests, slice_, template
from .rights import NAMESPACE, Guarded
from .several import QUICK
from .test_groups import group
from .test_refused import owned
from .world import DRA, Interloper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .objects import Obj

    Deed = Callable[[Guarded], Awaitable[None]]

CLUSTER = (
    node("n1"),
    slice_("n1", 4),
    device_class(),
    policy(),
    template(),
    claim("mine"),
    claim("big", requests(count=9)),
)
CORE, POLICIES, GROUPS, STORAGE = "", "dra-operator.io", "scheduling.k8s.io", "storage.k8s.io"
STOCK = ("claims", "binding", "kubelet")


@dataclass(frozen=True, slots=True)
class Row:
    """What needs a right.

    Attributes:
        duty: in words; what does not happen without the right.
        told: a regular expression that is found in /readyz, an event or the log without the right.
        deed: what users, or others, do that calls for the duty; None if starting does.
        done: whether the duty is done; None where the accepted request is all that there is to see.
        files: the manifests that are in use.
        standins: of the embedded server.
        flags: settings of the operator.
        starts: whether the operator gets as far as to decide without the right.
        before: done before the operator starts.
        by: the right that the request is about, where Kubernetes asks for another one besides, or the operator asks first.
        codes: of which one answers that request without the right.
    """

    duty: str
    told: str
    deed: Deed | None = None
    done: Callable[[Guarded], Any] | None = None
    files: tuple[str, ...] = (BASE,)
    standins: tuple[str, ...] = ()
    flags: dict[str, Any] = field(default_factory=dict)
    starts: bool = True
    before: Callable[[Guarded], None] | None = None
    by: Right | None = None
    codes: frozenset[int] = frozenset({403, 422})


# --------------------------------------------------------------------------- deeds


def comes(*objects: Obj) -> Deed:
    async def deed(here: Guarded) -> None:
        here.add(*objects)

    return deed


def bound(name: str, *entries: Obj) -> Obj:
    return pod(name, *entries, gates=(), schedulerName=SCHEDULER_NAME)


def meddled(resource: str, verb: str, what: str, name: str, *objects: Obj) -> Deed:
    """Objects come; just before the operator's first write, somebody else writes the object that it is about."""

    async def deed(here: Guarded) -> None:
        def meddle() -> None:
            machinery = here.server.machinery
            plural, api_group, namespace = KEYS[what]
            stored = next(
                obj for obj in here.server.objects(plural, api_group) if obj["metadata"]["name"] == name
            )
            labels = {"metadata": {**stored["metadata"], "labels": {"seen": "yes"}}}
            machinery.update(machinery.kinds.of(stored), (namespace, name), {**stored, **labels})

        here.server.faults.add(Interloper(resource, meddle, verb))
        here.add(*objects)

    return deed


KEYS = {"pod": ("pods", CORE, "default"), "claim": ("resourceclaims", DRA, "default")}


async def spoil_the_rule(here: Guarded) -> None:
    """Somebody changes the taint rule of a policy."""
    await here.until(lambda: here.rules)
    (name,) = here.rules
    await here.patch("rule", name, {"spec": {"deviceSelector": {"driver": "other.example.com"}}})


async def end_the_policy(here: Guarded) -> None:
    await here.until(lambda: here.rules and here.condition("Enforced")[0] == "True")
    await here.delete("policy", "gpus")


async def lose_an_answer(here: Guarded) -> None:
    """A pod waits; the answer to the event about it gets lost."""
    here.server.faults.add(Fault(verbs=frozenset({"create"}), resource="events", lose_answer=True))
    here.add(pod("web", by_name("big")))
    await here.until(lambda: here.events)


async def run_and_end(here: Guarded) -> None:
    """A pod with a generated claim runs, and ends."""
    here.add(pod("web", by_template("gpu")))
    await here.until(lambda: here.node_of("web"))
    await here.finish("web")


async def lose_a_group(here: Guarded) -> None:
    """A group goes while no operator runs: the next one never saw it."""
    here.add(group(by_name("mine")), pod("web", by_name("mine"), schedulingGroup={"podGroupName": "train"}))
    await here.until(lambda: here.node_of("web"))
    await here.settle()
    await here.kill()
    await here.delete("pod", "web")
    await here.delete("group", "train")
    await here.start()


async def refuse_for_ever(here: Guarded) -> None:
    """kube-scheduler never binds a pod of a controller."""
    here.add(owned(here, "web", by_template("gpu")))
    await here.until(lambda: here.messages("PodRefused", "web") or "web" not in here.pods)


def stray_rule(here: Guarded) -> None:
    spec = {
        "deviceSelector": {"driver": "nic.example.com"},
        "taint": {"key": "dra-operator.io/owned", "effect": "NoSchedule"},
    }
    metadata = {"name": "dra-operator-former-0", "labels": {"dra-operator.io/policy": "former"}}
    here.add(
        {
            "apiVersion": f"{DRA}/v1",
            "kind": "DeviceTaintRule",
            "metadata": metadata,
            "spec": spec,
        }
    )


def lease(here: Guarded) -> None:
    """One that somebody has held, and given back."""
    here.add(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "dra-operator-leader", "namespace": NAMESPACE},
            "spec": {"leaseDurationSeconds": 1, "holderIdentity": ""},
        }
    )


# --------------------------------------------------------------------------- the table

DECIDES_BY = {
    (DRA, "resourceclaimtemplates"): "what a pod's claims ask for, before they are made",
    (DRA, "resourceslices"): "which devices there are",
    (DRA, "deviceclasses"): "what a class asks for",
    (DRA, "resourceclaims"): "which devices are taken",
    (DRA, "devicetaintrules"): "whether a pool is kept from others",
    (CORE, "nodes"): "labels, taints and room of nodes",
    (CORE, "namespaces"): "which namespaces an affinity means",
    (CORE, "pods"): "who waits",
    (CORE, "persistentvolumeclaims"): "which volumes a pod has",
    (CORE, "persistentvolumes"): "where the volumes of pods are",
    (STORAGE, "storageclasses"): "where volumes can be had",
    (STORAGE, "csinodes"): "how many volumes a node can have",
    (STORAGE, "csidrivers"): "which volumes are limited",
    (STORAGE, "csistoragecapacities"): "where there is room for a volume",
    (STORAGE, "volumeattachments"): "which volumes are attached",
    (GROUPS, "podgroups"): "which claims the pods of a group share",
    (POLICIES, "allocationpolicies"): "which pools are ours",
}
BY_KOPF = {kind.plural for kind in fed_by("kopf")}
REVIEW = Right("authorization.k8s.io", "selfsubjectaccessreviews", "create")
READS: dict[Right, Row] = {
    Right(group, resource, "list"): Row(
        f"know {why}, before the first decision",
        f"rights are missing: cannot list {resource} .*bind its ClusterRole",
        starts=False,
    )
    for (group, resource), why in DECIDES_BY.items()
} | {
    Right(group, resource, "watch"): (
        Row(
            f"hear of changes: {why}",
            f"rights are missing: cannot watch {resource} ",
            starts=False,
            by=REVIEW,
            codes=frozenset({201}),
        )
        if resource in BY_KOPF
        else Row(f"hear of changes: {why}", f'cannot watch resource "{resource}"')
    )
    for (group, resource), why in DECIDES_BY.items()
}
FORBIDDEN = r"forbidden \(403\) for \d+ s: grant it in a ClusterRole"
REFUSED = r'"{} {}": "' + FORBIDDEN


def refused(verb: str, resource: str) -> str:
    return REFUSED.format(verb, resource)


GENERATES: dict[str, Any] = {"files": (BASE, GENERATE), "flags": {"generate_claims": "always"}}
ELECTS: dict[str, Any] = {
    "flags": {"leader_elect": True, **QUICK},
    "starts": False,
    "done": lambda here: here.operator.ready.is_set(),
}
CANNOT = r'the Lease cannot be had: .*cannot {} resource \\"leases\\".*: apply the Role of manifests/base/rbac.yaml'

WRITES = {
    Right(DRA, "resourceclaims", "get"): Row(
        "go on at once after a refused write of a claim: it is read again",
        'cannot get resource "resourceclaims"',
        meddled("resourceclaims", "patch", "claim", "mine", pod("web", by_name("mine"))),
        lambda here: not here.is_gated("web"),
    ),
    Right(CORE, "pods", "get"): Row(
        "go on at once after a refused write of a pod: it is read again",
        'cannot get resource "pods"',
        meddled("pods", "patch", "pod", "web", pod("web", by_name("mine"))),
        lambda here: not here.is_gated("web"),
    ),
    Right(DRA, "resourceclaims", "patch"): Row(
        "mark a claim before it is allocated",
        refused("patch", "resourceclaims"),
        comes(pod("web", by_name("mine"))),
        lambda here: here.claims["mine"]["metadata"].get("finalizers"),
    ),
    Right(DRA, "resourceclaims/status", "patch"): Row(
        "allocate and reserve",
        refused("patch", "resourceclaims/status"),
        comes(pod("web", by_name("mine"))),
        lambda here: here.devices(),
    ),
    Right(DRA, "resourceclaims/binding", "patch"): Row(
        "allocate and reserve, from Kubernetes 1.36 on",
        'cannot patch resource "resourceclaims/binding".*grant it to the operator in a ClusterRole',
        comes(pod("web", by_name("mine"))),
        lambda here: here.devices(),
        by=Right(DRA, "resourceclaims/status", "patch"),
    ),
    Right(CORE, "pods", "patch"): Row(
        "pin a pod and take its gate off",
        refused("patch", "pods"),
        comes(pod("web", by_name("mine"))),
        lambda here: not here.is_gated("web"),
    ),
    Right(CORE, "pods/binding", "create"): Row(
        "bind a pod that names us as its scheduler",
        refused("create", "pods/binding"),
        comes(bound("web", by_name("mine"))),
        lambda here: here.node_of("web"),
    ),
    Right(CORE, "pods/status", "patch"): Row(
        "say in PodScheduled why such a pod waits",
        refused("patch", "pods/status"),
        comes(bound("web", by_name("big"))),
        lambda here: here.pods["web"].get("status", {}).get("conditions"),
    ),
    Right(DRA, "devicetaintrules", "create"): Row(
        "keep kube-scheduler off a pool of ours",
        refused("create", "devicetaintrules"),
        done=lambda here: here.rules,
    ),
    Right(DRA, "devicetaintrules", "patch"): Row(
        "mend a rule that somebody changed",
        refused("patch", "devicetaintrules"),
        spoil_the_rule,
        lambda here: all(
            rule["spec"]["deviceSelector"]["driver"] == "gpu.example.com" for rule in here.rules.values()
        ),
    ),
    Right(DRA, "devicetaintrules", "delete"): Row(
        "open the pools of a policy that goes",
        refused("delete", "devicetaintrules"),
        end_the_policy,
        lambda here: not here.rules,
    ),
    # Without it the policy goes all the same where the feed tells of the deletion, as it mostly does: at the next try, which comes soon.
    Right(DRA, "devicetaintrules", "get"): Row(
        "be sure that a rule has gone, also where the feed says nothing",
        'cannot get resource "devicetaintrules"',
        end_the_policy,
    ),
    Right(POLICIES, "allocationpolicies", "get"): Row(
        "be sure that a rule has no policy before it is deleted",
        'cannot get resource "allocationpolicies"',
        done=lambda here: "dra-operator-former-0" not in here.rules,
        before=stray_rule,
        flags={"sweep_seconds": 1, "report_seconds": 1},
    ),
    Right(POLICIES, "allocationpolicies", "patch"): Row(
        "hold a policy until its rules are gone",
        refused("patch", "allocationpolicies"),
        done=lambda here: here.policy()["metadata"].get("finalizers"),
    ),
    Right(POLICIES, "allocationpolicies/status", "patch"): Row(
        "say what became of a policy",
        refused("patch", "allocationpolicies/status"),
        done=lambda here: here.condition("Ready")[0],
    ),
    Right(CORE, "events", "create"): Row(
        "tell a user why a pod waits",
        refused("create", "events"),
        comes(pod("web", by_name("big"))),
        lambda here: here.events,
    ),
    Right(CORE, "events", "patch"): Row(
        "bring an event up to date, or find it made already", refused("patch", "events"), lose_an_answer, None
    ),
    Right("coordination.k8s.io", "leases", "get"): Row(
        "see who leads", CANNOT.format("get"), **ELECTS, before=lease
    ),
    Right("coordination.k8s.io", "leases", "patch"): Row(
        "take and renew the Lease", CANNOT.format("patch"), **ELECTS, before=lease
    ),
    Right("coordination.k8s.io", "leases", "create"): Row(
        "lead where nobody ever did", CANNOT.format("create"), **ELECTS
    ),
}
PATIENCE = 30.0
ALWAYS = {**READS, **WRITES}
GENERATING = {
    Right(DRA, "resourceclaimtemplates", "get"): Row(
        "make a claim as its template is now",
        'cannot get resource "resourceclaimtemplates"',
        comes(pod("web", by_template("gpu"))),
        lambda here: not here.is_gated("web"),
        **GENERATES,
    ),
    Right(DRA, "resourceclaims", "create"): Row(
        "make the claims of a pod",
        refused("create", "resourceclaims"),
        comes(pod("web", by_template("gpu"))),
        lambda here: len(here.claims) > 2,
        **GENERATES,
    ),
    Right(DRA, "resourceclaims", "delete"): Row(
        "delete the claims of a pod that is done",
        refused("delete", "resourceclaims"),
        run_and_end,
        lambda here: len(here.claims) == 2,
        standins=("binding", "kubelet"),
        **GENERATES,
    ),
    Right(GROUPS, "podgroups", "get"): Row(
        "be sure that a group is gone before its claim is freed",
        'cannot get resource "podgroups"',
        lose_a_group,
        lambda here: not here.devices(),
        standins=("binding", "kubelet"),
        **GENERATES,
    ),
    Right(GROUPS, "podgroups/status", "patch"): Row(
        "tell a group the name of its claim",
        refused("patch", "podgroups/status"),
        comes(group(by_template("gpu"))),
        lambda here: (
            here.server.objects("podgroups", GROUPS)[0].get("status", {}).get("resourceClaimStatuses")
        ),
        **GENERATES,
    ),
}
REPLACING = {
    Right(CORE, "pods", "delete"): Row(
        "have a pod replaced that kube-scheduler does not bind",
        refused("delete", "pods"),
        refuse_for_ever,
        lambda here: "web" not in here.pods,
        files=(BASE, REPLACE),
        standins=("claims",),
        flags={"refused_seconds": 1, "replace_refused": "owned"},
    )
}
TABLE = {**ALWAYS, **GENERATING, **REPLACING}

# --------------------------------------------------------------------------- the tests


@pytest.mark.parametrize(
    ("file", "table"),
    [(BASE, ALWAYS), (GENERATE, GENERATING), (REPLACE, REPLACING)],
    ids=[BASE, GENERATE, REPLACE],
)
def test_each_right_of_the_manifests_has_a_row_and_is_given_once(file: str, table: dict[Right, Row]) -> None:
    assert sorted(rights_of(file)) == sorted(table)


async def _happens(condition: Callable[[], Any], what: str) -> None:
    """Wait for what no stored object tells."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - the log and /readyz tell nobody of their changes
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never happened: {what}") from None


async def _begin(here: Guarded, row: Row, *, starts: bool) -> None:
    here.add(*CLUSTER)
    if row.before is not None:
        row.before(here)
    if starts:
        await here.start()
    else:
        await here.begin()
    if row.deed is not None:
        await row.deed(here)


@pytest.mark.parametrize("right", TABLE, ids=str)
async def test_without_the_right_the_duty_fails_and_the_operator_says_so(
    right: Right, caplog: pytest.LogCaptureFixture
) -> None:
    row = TABLE[right]
    async with Guarded(*row.standins, files=row.files, lacks=right, **row.flags) as here:
        await _begin(here, row, starts=row.starts)
        await _happens(lambda: re.search(row.told, f"{here.says()}\n{caplog.text}"), f"told: {row.told}")

        assert row.codes & set(here.asked(row.by or right))
        assert row.done is None or not row.done(here)


@pytest.mark.parametrize("right", [*WRITES, *GENERATING, *REPLACING], ids=str)
async def test_with_all_the_rights_it_is_done(right: Right, caplog: pytest.LogCaptureFixture) -> None:
    """Else the test above would see nothing but its own mistakes."""
    row = TABLE[right]
    async with Guarded(*row.standins, files=row.files, **row.flags) as here:
        await _begin(here, row, starts=True)
        await _happens(lambda: here.asked(row.by or right), f"{right} is used")
        await _happens(lambda: row.done is None or row.done(here), row.duty)

        assert 403 not in [code for _, code in here.server.calls]
        assert not re.search(row.told, f"{here.says()}\n{caplog.text}")


async def test_with_all_the_rights_everything_is_read() -> None:
    async with Guarded() as here:
        await here.start()
        await here.settle()
        here.server.end_watches()  # a request counts once it is answered in full
        for right in READS:
            await _happens(lambda right=right: set(here.asked(right)) == {200}, f"{right} is used")  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(kind.name for kind in fed_by("kopf")))
async def test_a_right_to_watch_that_is_taken_away_later_is_named_until_it_is_back(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kopf would try for ever without a word; what our own feeds are refused is theirs to tell."""
    caplog.set_level(logging.INFO, "dra_operator")
    kind = KINDS[name]
    right = Right(kind.group, kind.plural, "watch")
    async with Guarded() as here:
        operator = await here.start()

        def trouble() -> str:
            return str(operator.vitals.readiness()["kinds"][name].get("trouble", ""))

        await here.grant(lacks=right)
        assert trouble() == ""
        here.server.end_watches()
        await _happens(trouble, "named")

        assert trouble().startswith(f"rights are missing: cannot watch {kind.plural} ")
        assert "apply manifests/base/rbac.yaml" in trouble()
        others = {
            other: found for other, found in operator.vitals.readiness()["kinds"].items() if other != name
        }
        assert [other for other, found in others.items() if "trouble" in found] == []
        assert caplog.text.count(f"cannot watch {kind.plural}") == 1

        await here.grant()
        await _happens(lambda: trouble() == "", "no longer named")
        assert f"{kind.plural} can be watched again" in caplog.text
