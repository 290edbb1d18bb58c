"""The cluster model under any order of events: late, repeated, lost and made up for by a list, overtaken by answers to writes.

A small API server keeps the truth and a log. The machine moves the truth and delivers the log in every way that feeds can. After
each step the incremental state must equal one that is made anew from the same objects, and a plain recount; when all has been
delivered, the model must hold the truth, and repeating everything must change nothing.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dra_operator.cluster import Cluster, claim_keys, pinned_node, pod_requests
from dra_operator.model import GATE, AllocationResult, DeviceId, PoolId, metadata_of
from tests.unit.cluster.build import DRIVER, claim, owner, pod, policy, result, slice_, taint_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.model import DeviceTaintRule, Pod, ResourceClaim, ResourceSlice, Value

NODES = ("n0", "n1")
POOLS = ("n0", "n1", "fabric")
DEVICES = ("a", "b")
NAMES = ("x0", "x1", "x2")

FIRST_PODS = ("uid-Pod-7", "uid-Pod-8", "uid-Pod-9")
"""Uids of the pods of `a_cluster_that_is_running`, whose objects are written in the order of their kinds."""

numbers = st.integers(min_value=0, max_value=10**6)


def pick(seed: int, *choices: Any) -> Any:
    """One of the choices, by a number."""
    return choices[seed % len(choices)]


# --- objects of each kind, out of a name, a version, a uid and a number


def make_claim(name: str, version: int, uid: str, seed: int) -> ResourceClaim:
    devices = [
        result(f"{pick(seed, *POOLS)}/{pick(seed // 3, *DEVICES)}"),
        result(f"{pick(seed // 7, *POOLS)}/a", adminAccess=True),
        result("fabric/b", shareID=f"s{seed % 2}", consumedCapacity={"memory": f"{seed % 3}Gi"}),
        result(f"{pick(seed // 11, *POOLS)}/b"),
    ]
    chosen = [device for bit, device in enumerate(devices) if seed >> bit & 1]
    more: dict[str, Any] = {"ownerReferences": [owner(f"uid-pod-{seed % 2}")]} if seed % 5 else {}
    pods = [found for bit, found in enumerate(FIRST_PODS) if seed // 13 >> bit & 1]
    return claim(name, version, uid=uid, devices=None if seed % 4 == 0 else chosen, pods=pods, **more)


def make_pod(name: str, version: int, uid: str, seed: int) -> Pod:
    node = pick(seed, *NODES)
    pin = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pin}}
    }
    spec: dict[str, Any] = {
        "containers": [
            {"resources": {"requests": {"cpu": str(seed % 4)}}, "ports": [{"hostPort": seed % 3}]}
        ],
        "resourceClaims": [
            {"name": "direct", "resourceClaimName": pick(seed, *NAMES)},
            {"name": "made", "resourceClaimTemplateName": pick(seed // 3, *NAMES)},
        ],
    }
    state = pick(seed // 2, "gated", "pinned", "bound", "free")
    spec |= {"schedulingGates": [{"name": GATE}]} if state == "gated" else {}
    spec |= {"affinity": affinity} if state == "pinned" else {}
    spec |= {"nodeName": node} if state == "bound" else {}
    recorded = [{"name": "made", "resourceClaimName": pick(seed // 5, *NAMES)}] if seed % 2 else []
    status = {"phase": pick(seed // 13, "Pending", "Running", "Failed"), "resourceClaimStatuses": recorded}
    more = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if seed % 11 == 0 else {}
    return pod(name, version, spec, status, uid=uid, **more)


def make_slice(name: str, version: int, uid: str, seed: int) -> ResourceSlice:
    taken = pick(
        seed // 17,
        {},
        {"cpu": {"mapping": {"deviceMultiplier": "5"}}},
        {"cpu": {"mapping": {"capacityKey": "memory", "capacityMultiplier": "7n"}}},
        {"cpu": {"overhead": {"perPod": "11"}}},
    )
    found = slice_(
        name,
        [{"name": item, "nodeAllocatableResources": taken} for item in DEVICES[: seed % 3]],
        version=version,
        pool=pick(seed, *POOLS),
        node=pick(seed // 3, *NODES, None),
        generation=seed % 2,
    )
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=uid))


def make_rule(name: str, version: int, uid: str, seed: int) -> DeviceTaintRule:
    selector = {"driver": DRIVER, "pool": pick(seed, *POOLS), "device": pick(seed // 3, *DEVICES)}
    chosen = {key: value for bit, (key, value) in enumerate(selector.items()) if seed >> bit & 1}
    found = taint_rule(name, None if seed % 7 == 0 else chosen, version, str(seed % 2))
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=uid))


def make_policy(name: str, version: int, uid: str, seed: int) -> Value:
    pools = [{"driver": DRIVER, "pool": pick(seed, *POOLS)}] if seed % 3 else [{"driver": DRIVER}]
    return policy(name, pools, version, uid=uid, creationTimestamp=f"2026-01-0{1 + seed % 3}T00:00:00Z")


MAKERS: dict[str, Callable[[str, int, str, int], Any]] = {
    "ResourceClaim": make_claim,
    "Pod": make_pod,
    "ResourceSlice": make_slice,
    "DeviceTaintRule": make_rule,
    "AllocationPolicy": make_policy,
}

kinds = st.sampled_from(sorted(MAKERS))
names = st.sampled_from(NAMES)


# --- everything that the model answers, in a form that compares


def answers(cluster: Cluster) -> dict[str, Any]:
    state = cluster.allocated_state()
    pools = [PoolId(DRIVER, name) for name in POOLS]
    ids = [DeviceId(DRIVER, name, device) for name in POOLS for device in DEVICES]
    uids = sorted(found.uid for found in cluster.pods.values())
    return {
        "devices": sorted(state.devices),
        "shared": sorted(state.shared),
        "capacity": {key: dict(value) for key, value in state.capacity.items()},
        "holders": [cluster.holders(device_id) for device_id in ids],
        "doubles": cluster.doubles(),
        "owned by": [cluster.claims_owned_by(found) for found in cluster.pods.values()],
        "of claim": [cluster.pods_of_claim(f"ns/{name}") for name in NAMES],
        "of template": [cluster.pods_of_template(f"ns/{name}") for name in NAMES],
        "by uid": [cluster.pod(uid) for uid in uids],
        "usage": [cluster.node_usage(name) for name in NODES],
        "resolved": [cluster.claims_of_pod(cluster.pods[key]) for key in sorted(cluster.pods)],
        "slices": [
            cluster.slices.all(),
            cluster.slices.shared(),
            cluster.slices.pools(),
            cluster.slices.node_names(),
        ],
        "slices on": [cluster.slices.on_node(name) for name in NODES],
        "slices of": [cluster.slices.of_pool(pool_id) for pool_id in pools],
        "policies": [cluster.policies_matching(pool_id) for pool_id in pools],
        "pools of": [cluster.pools_of_policy(name) for name in NAMES],
    }


def objects_of(cluster: Cluster) -> list[Value]:
    views = (cluster.claims, cluster.pods, cluster.published, cluster.taint_rules, cluster.policies)
    return list(chain.from_iterable(view.values() for view in views))


def sent_to(cluster: Cluster, known: Pod) -> str:
    """The node to which a pod is pinned, if a claim of it is allocated and names it."""
    keys = [key for key in claim_keys(known) if key in cluster.claims]
    claims = [cluster.claims[key] for key in keys]
    is_sent = any(found.is_allocated and found.is_reserved_for(known.uid) for found in claims)
    return pinned_node(known) if is_sent else ""


def tainted(published: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> list[Counter[str]]:
    """Taints by device as alloc U-2 and U-4 say them, order aside."""
    found = []
    for device in published.spec.devices:
        fields = {"driver": DRIVER, "pool": published.spec.pool.name, "device": device.name}
        selectors = [(rule.spec.taint.key, rule.spec.device_selector) for rule in rules]
        wanted = (
            key
            for key, selector in selectors
            if selector and all(getattr(selector, field) in {None, value} for field, value in fields.items())
        )
        found.append(Counter(wanted))
    return found


class Feeds(RuleBasedStateMachine):
    """A server's truth, its log, and a model that hears of it one way or another."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.version = 0
        self.truth: dict[str, dict[str, Value]] = {kind: {} for kind in MAKERS}
        self.log: list[tuple[str, Value]] = []
        self.delivered = 0
        self.lists: list[tuple[str, list[Value], str]] = []
        self.answers: list[Value] = []
        self.lost: set[str] = set()
        self.decisions: dict[str, AllocationResult] = {}
        self.placements: dict[str, str] = {}

    @initialize(seed=numbers)
    def a_cluster_that_is_running(self, seed: int) -> None:
        for number, (kind, name) in enumerate(product(sorted(MAKERS), NAMES)):
            self._write(kind, name, seed >> number)
        self.the_watch_delivers(len(self.log))
        assert {metadata_of(found).uid for found in self.truth["Pod"].values()} == set(FIRST_PODS)

    # --- the truth moves

    def _write(self, kind: str, name: str, seed: int) -> Value:
        self.version += 1
        known: Any = self.truth[kind].get(name)
        uid = known.metadata.uid if known else f"uid-{kind}-{self.version}"
        obj: Value = MAKERS[kind](name, self.version, uid, seed)
        self.truth[kind][name] = obj
        self.log.append(("MODIFIED" if known else "ADDED", obj))
        return obj

    @rule(kind=kinds, name=names, seed=numbers)
    def somebody_writes(self, kind: str, name: str, seed: int) -> None:
        self._write(kind, name, seed)

    @rule(kind=kinds, name=names, seed=numbers)
    def we_write_and_get_the_answer_at_once(self, kind: str, name: str, seed: int) -> None:
        self.cluster.assume(self._write(kind, name, seed))

    @rule(kind=kinds, name=names, seed=numbers)
    def we_write_and_the_answer_is_slow(self, kind: str, name: str, seed: int) -> None:
        self.answers.append(self._write(kind, name, seed))

    @rule(kind=kinds, name=names)
    def somebody_deletes(self, kind: str, name: str) -> None:
        known: Any = self.truth[kind].pop(name, None)
        if known is not None:
            self.version += 1
            metadata = msgspec.structs.replace(known.metadata, resource_version=str(self.version))
            self.log.append(("DELETED", msgspec.structs.replace(known, metadata=metadata)))

    # --- the model hears of it

    @precondition(lambda self: self.delivered < len(self.log))
    @rule(count=st.integers(min_value=1, max_value=5))
    def the_watch_delivers(self, count: int) -> None:
        for event, obj in self.log[self.delivered : self.delivered + count]:
            self.cluster.apply(event, obj)
        self.delivered = min(len(self.log), self.delivered + count)

    @precondition(lambda self: self.delivered < len(self.log))
    @rule()
    def the_watch_loses_one(self) -> None:
        self.lost.add(type(self.log[self.delivered][1]).__name__)
        self.delivered += 1

    @precondition(lambda self: self.delivered)
    @rule(seed=numbers)
    def the_watch_repeats_itself(self, seed: int) -> None:
        self.cluster.apply(*self.log[seed % self.delivered])

    @precondition(lambda self: self.answers)
    @rule(seed=numbers)
    def an_answer_comes_late(self, seed: int) -> None:
        self.cluster.assume(self.answers[seed % len(self.answers)])

    @rule(kind=kinds)
    def a_list_is_made(self, kind: str) -> None:
        self.lists.append((kind, list(self.truth[kind].values()), str(self.version)))

    @precondition(lambda self: self.lists)
    @rule(seed=numbers)
    def a_list_arrives(self, seed: int) -> None:
        self.cluster.replace(*self.lists[seed % len(self.lists)])

    # --- we decide

    @rule(name=names, seed=numbers)
    def we_decide_on_devices(self, name: str, seed: int) -> None:
        known = self.cluster.claims.get(f"ns/{name}")
        allocation = make_claim(name, 1, "any", seed).status.allocation
        if known is not None and allocation is not None:
            self.cluster.reserve(known.metadata.uid, allocation)
            self.decisions[known.metadata.uid] = allocation

    @precondition(lambda self: self.decisions)
    @rule(seed=numbers)
    def we_drop_a_decision(self, seed: int) -> None:
        self.cluster.unreserve(pick(seed, *self.decisions))

    @rule(name=names, node=st.sampled_from(NODES))
    def we_place_a_pod(self, name: str, node: str) -> None:
        known = self.cluster.pods.get(f"ns/{name}")
        if known is not None:
            self.cluster.place(known.uid, node)

    @rule(name=names)
    def we_take_a_placement_back(self, name: str) -> None:
        known = self.cluster.pods.get(f"ns/{name}")
        if known is not None:
            self.cluster.unplace(known.uid)

    # --- what must hold

    @invariant()
    def incremental_equals_rebuilt(self) -> None:
        rebuilt = Cluster()
        for obj in reversed(objects_of(self.cluster)):
            rebuilt.apply("ADDED", obj)
        for uid, allocation in self.decisions.items():
            if self.cluster.is_reserved(uid):
                rebuilt.reserve(uid, allocation)
        for uid, node in self.cluster._usage._placed.items():
            rebuilt.place(uid, node)
        assert answers(self.cluster) == answers(rebuilt)

    @invariant()
    def taken_devices_are_those_of_all_allocations(self) -> None:
        """By alloc A-2, A-3, A-4."""
        written = [known.status.allocation for known in self.cluster.claims.values()]
        flying = [found for uid, found in self.decisions.items() if self.cluster.is_reserved(uid)]
        results = chain.from_iterable(found.devices.results for found in [*written, *flying] if found)
        expected = {found.device_id for found in results if not found.admin_access and found.share_id is None}
        assert self.cluster.allocated_state().devices == expected

    @invariant()
    def usage_is_the_sum_over_pods(self) -> None:
        placed = self.cluster._usage._placed
        nodes: dict[str, list[Pod]] = {name: [] for name in NODES}
        for known in self.cluster.pods.values():
            node = known.spec.node_name or placed.get(known.uid) or sent_to(self.cluster, known)
            if node and not known.is_done:
                nodes[node].append(known)
        for name, pods in nodes.items():
            usage = self.cluster.node_usage(name)
            cpu = sum(pod_requests(self.cluster._as_counted(known))["cpu"].nano for known in pods)
            assert usage.pods == len(pods)
            assert sum(amount.nano for amount in usage.requested.values()) == cpu

    @invariant()
    def slices_have_the_taints_of_the_rules(self) -> None:
        for name, published in self.cluster.published.items():
            (found,) = (item for item in self.cluster.slices.all() if item.metadata.name == name)
            keys = [Counter(taint.key for taint in device.taints) for device in found.spec.devices]
            assert keys == tainted(published, self.cluster.taint_rules.values())

    def teardown(self) -> None:
        """When all has been delivered, the model holds the truth; hearing everything again changes nothing."""
        for event, obj in self.log[self.delivered :]:
            self.cluster.apply(event, obj)
        for kind in sorted(self.lost):
            self.cluster.replace(kind, self.truth[kind].values(), str(self.version))
        expected = [obj for known in self.truth.values() for obj in known.values()]
        assert sorted(map(repr, objects_of(self.cluster))) == sorted(map(repr, expected))
        self._repeat_everything()

    def _repeat_everything(self) -> None:
        before, heard = answers(self.cluster), Counter[str]()
        self.cluster.on_change(lambda change: heard.update([change.kind]))
        deleted = [(event, obj) for event, obj in self.log if event == "DELETED"]
        for event, obj in [*deleted, *reversed(self.log)]:
            self.cluster.apply(event, obj)
        for obj in self.answers:
            self.cluster.assume(obj)
        for kind, objects, version in self.lists:
            self.cluster.replace(kind, objects, version)
        assert (heard, answers(self.cluster)) == (Counter(), before)


TestFeeds = Feeds.TestCase
TestFeeds.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
