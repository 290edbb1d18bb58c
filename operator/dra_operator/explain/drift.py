"""What has drifted from what it should be: looked for in the cluster model, object by object. Pure; `driftkinds` has the table.

The sweeper asks `look` for objects that changed, and for all of them in turn; `kubectl dra drift` asks `findings` once. An answer says
how things look now: whether they have looked so for long enough to be more than work under way is for who asks to find out. It must
not change anything, and tells of others' objects only what their owners would want to know.
"""

from __future__ import annotations

from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import Why, pool_problem
from dra_operator.cluster import used_devices
from dra_operator.model import GATE, POD_GROUP_API, PoolId
from dra_operator.model.marks import (
    GENERATED,
    MARK,
    POLICY_FINALIZER,
    POLICY_LABEL,
    has_finalizer,
    holds_our_allocation,
    is_as_wanted,
    is_marked,
    is_ours,
    rules_of,
    wanted_rules,
)
from dra_operator.words import listed

from .driftkinds import CLAIM, KINDS, NODE, POD, POLICY, POOL, RULE, SLICE, Facts, Finding, Kind, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import (
        AllocationPolicy,
        DeviceId,
        ObjectMeta,
        Pod,
        ResourceClaim,
        ResourceClaimConsumerReference,
    )

__all__ = ["KINDS", "Facts", "Finding", "Kind", "Subject", "findings", "look", "subjects"]

NAMED: Final = 3
"""Devices, consumers and claims that a text names; the others are counted."""


def findings(cluster: Cluster, facts: Facts) -> list[Finding]:
    """All there is, in the order of the table, then by object."""
    rank = {name: place for place, name in enumerate(KINDS)}
    found = chain.from_iterable(look(cluster, facts, subject) for subject in subjects(cluster, facts))
    return sorted(found, key=lambda item: (rank[item.finding], item.kind, item.key))


def subjects(cluster: Cluster, facts: Facts) -> Iterator[Subject]:
    """Everything that may be looked at."""
    for kind, keys in (
        (CLAIM, {*cluster.claims, *cluster.unreadable}),
        (POD, cluster.pods),
        (POOL, {*map(str, cluster.slices.pools()), *map(str, facts.expected)}),
        (RULE, cluster.taint_rules),
        (POLICY, cluster.policies),
    ):
        for key in sorted(keys):
            yield Subject(kind, key)


def look(cluster: Cluster, facts: Facts, subject: Subject) -> list[Finding]:
    """What is wrong with one object as the model has it; nothing if it is gone."""
    found = _LOOKS[subject.kind](cluster, facts, subject.key)
    return [item for item in found if facts.unseen.isdisjoint(KINDS[item.finding].needs)]


# --- claims


def _claim(cluster: Cluster, facts: Facts, key: str) -> Iterator[Finding]:
    unreadable = cluster.unreadable.get(key)
    if unreadable is not None:
        namespace, _, name = key.partition("/")
        yield Finding("Unreadable", CLAIM, namespace, name, unreadable.uid, unreadable.error)
        return
    claim = cluster.claims.get(key)
    if claim is None:
        return
    for finding, text, others in (
        *_use(cluster, claim),
        *_marks(cluster, claim),
        *_devices(cluster, claim),
        *_deletion(facts, claim.metadata, _holds_claim(cluster, claim)),
    ):
        yield _about(finding, CLAIM, claim.metadata, text, others)


_Told = tuple[str, str, tuple[str, ...]]
"""Name of the kind, text, others."""


def is_unused(cluster: Cluster, claim: ResourceClaim) -> bool:
    """Whether nobody uses our allocation, and nobody is about to (cp I-43, I-45)."""
    if claim.status.reserved_for or not holds_our_allocation(claim):
        return False
    return all(pod.is_done for pod in cluster.pods_of_claim(claim.key))


def has_left_mark(cluster: Cluster, claim: ResourceClaim) -> bool:
    """Whether our mark says nothing any more. Claims that we generate are born marked and stay so (architecture, section 6)."""
    is_left = is_marked(claim) and claim.metadata.annotations[MARK] != GENERATED
    return is_left and not claim.is_allocated and not cluster.is_reserved(claim.metadata.uid)


def _use(cluster: Cluster, claim: ResourceClaim) -> Iterator[_Told]:
    if is_unused(cluster, claim):
        text = f"status.allocation: {_names(used_devices(claim))}: allocated by dra-operator, and neither reserved nor named by a pod"
        yield "AllocationUnused", text, ()
    gone = [consumer for consumer in claim.status.reserved_for if _is_gone(cluster, claim, consumer)]
    if gone:
        names = listed([_consumer(consumer) for consumer in gone], NAMED)
        yield (
            "ConsumerGone",
            f"status.reservedFor: {names}: gone, done or another one of the same name by now",
            (),
        )


def _is_gone(cluster: Cluster, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a consumer counts no more (cp C-61). Of kinds that nobody here knows, that cannot be told (cp C-87)."""
    key = f"{claim.metadata.namespace}/{consumer.name}"
    match consumer.api_group, consumer.resource:
        case "", "pods":
            pod = cluster.pods.get(key)
            return pod is None or pod.uid != consumer.uid or pod.is_done
        case api_group, "podgroups" if api_group == POD_GROUP_API and cluster.has_pod_groups:
            group = cluster.pod_groups.get(key)
            return group is None or group.uid != consumer.uid
    return False


def _marks(cluster: Cluster, claim: ResourceClaim) -> Iterator[_Told]:
    if has_left_mark(cluster, claim):
        more = " and metadata.finalizers" if has_finalizer(claim) else ""
        yield "MarkLeft", f"metadata.annotations ({MARK}){more}: left, and the claim is not allocated", ()


def unpublished(cluster: Cluster, claim: ResourceClaim) -> list[DeviceId]:
    """Devices that the claim holds, and that nobody publishes.

    In a pool that is complete the newest generation says it; in one whose driver is publishing just now, nothing does.
    """
    allocation = claim.status.allocation
    held = {result.device_id for result in allocation.devices.results} if allocation else set()
    known = {pool_id: _published(cluster, pool_id) for pool_id in {device.pool_id for device in held}}
    return sorted(device for device in held if _is_unpublished(device, known[device.pool_id]))


def _is_unpublished(device: DeviceId, published: frozenset[str] | None) -> bool:
    return published is not None and device.device not in published


def _published(cluster: Cluster, pool_id: PoolId) -> frozenset[str] | None:
    """Names of the devices of a pool; None while that cannot be told."""
    slices = cluster.slices.of_pool(pool_id)
    newest = max((slice_.spec.pool.generation for slice_ in slices), default=0)
    current = [slice_ for slice_ in slices if slice_.spec.pool.generation == newest]
    if current and len(current) != current[0].spec.pool.resource_slice_count:
        return None
    return frozenset(device.name for slice_ in current for device in slice_.spec.devices)


def _devices(cluster: Cluster, claim: ResourceClaim) -> Iterator[_Told]:
    missing = unpublished(cluster, claim)
    if missing:
        yield (
            "DevicesUnpublished",
            f"status.allocation.devices.results: no ResourceSlice has {_names(missing)}",
            (),
        )
    twice = {device: holders for device, holders in cluster.doubles().items() if claim.key in holders}
    if twice:
        others = dict.fromkeys(key for holders in twice.values() for key in holders if key != claim.key)
        text = (
            f"status.allocation.devices.results: {_names(twice)}: allocated to {_claims(others)}, too, which the API server accepts "
            "and drivers do not"
        )
        yield "DeviceHeldTwice", text, tuple(f"{CLAIM} {key}" for key in others)


def _claims(keys: Iterable[str]) -> str:
    return listed([f"{CLAIM} {key}" for key in keys], NAMED)


def _holds_claim(cluster: Cluster, claim: ResourceClaim) -> list[str]:
    """What keeps a claim from going."""
    living = [
        f"{_consumer(consumer)}{_phase(cluster, claim, consumer)}" for consumer in claim.status.reserved_for
    ]
    consumers = [f"status.reservedFor has {listed(living, NAMED)}"] if living else []
    return [*consumers, f"metadata.finalizers has {', '.join(claim.metadata.finalizers) or 'nothing'}"]


def _phase(cluster: Cluster, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> str:
    pod = cluster.pods.get(f"{claim.metadata.namespace}/{consumer.name}") if not consumer.api_group else None
    if pod is None or pod.uid != consumer.uid:
        return ""
    return f" ({pod.status.phase}{', in deletion' if pod.metadata.deletion_timestamp else ''})"


# --- pods


def waits(pod: Pod) -> bool:
    """Whether nobody can have bound the pod: a gate holds it, or it is ours to bind."""
    return pod.is_held and not pod.is_done


def _pod(cluster: Cluster, facts: Facts, key: str) -> Iterator[Finding]:
    pod = cluster.pods.get(key)
    if pod is None or not waits(pod) or facts.works_on(key):
        return
    held = [claim.key for claim in attempted(cluster, pod)]
    if held:
        gates = listed(pod.gate_names, NAMED)
        where = f"spec.schedulingGates: {gates}" if gates else "spec.nodeName: none"
        text = f"{where}, although {_claims(held)} of the pod are allocated and reserved for it"
        yield _about(
            "AttemptLeft", POD, pod.metadata, text, tuple(f"{CLAIM} {claim_key}" for claim_key in held)
        )
    if GATE in pod.gate_names and facts.is_idle(pod):
        text = f"spec.schedulingGates: {GATE}: no claim of the pod asks for devices of a pool that an {POLICY} owns"
        yield _about("GateUseless", POD, pod.metadata, text)


def attempted(cluster: Cluster, pod: Pod) -> list[ResourceClaim]:
    """Claims that we have allocated and reserved for a pod that waits. Devices with binding conditions take their time (cp S-60)."""
    found = [entry.claim for entry in cluster.claims_of_pod(pod) if entry.claim is not None]
    ours = [claim for claim in found if holds_our_allocation(claim) and claim.is_reserved_for(pod.uid)]
    return [] if any(map(_has_conditions, found)) else list({claim.key: claim for claim in ours}.values())


def _has_conditions(claim: ResourceClaim) -> bool:
    results = claim.status.allocation.devices.results if claim.status.allocation else ()
    return any(result.binding_conditions for result in results)


# --- pools


def _pool(cluster: Cluster, facts: Facts, key: str) -> Iterator[Finding]:
    pool_id = PoolId(*key.split("/", 1))
    slices = cluster.slices.of_pool(pool_id)
    if not slices:
        yield from _missing(cluster, facts, pool_id)
        return
    problem = pool_problem(cluster.slices, pool_id, facts.features)
    if problem is None:
        return
    newest = max(slices, key=lambda slice_: slice_.spec.pool.generation)
    what = "incomplete" if problem.why is Why.POOL_INCOMPLETE else "invalid"
    text = f"spec.pool ({pool_id}): {what}: {problem.detail}"
    yield _about("PoolStuck", SLICE, newest.metadata, text)


def _missing(cluster: Cluster, facts: Facts, pool_id: PoolId) -> Iterator[Finding]:
    """A pool that was published for a node that is still there, by a driver that is at work elsewhere and nowhere on that node."""
    node = cluster.nodes.get(facts.expected.get(pool_id, ""))
    if node is None or not cluster.slices.pools_of_driver(pool_id.driver):
        return
    if any(slice_.spec.driver == pool_id.driver for slice_ in cluster.slices.on_node(node.name)):
        return
    text = f"ResourceSlices of driver {pool_id.driver} are missing: there were some for the node, in pool {pool_id.pool}"
    yield _about("SlicesMissing", NODE, node.metadata, text)


# --- rules and policies


def _rule(cluster: Cluster, _facts: Facts, key: str) -> Iterator[Finding]:
    rule = cluster.taint_rules.get(key)
    if rule is None or not is_ours(rule) or rule.metadata.deletion_timestamp is not None:
        return
    policies = cluster.policies.values()
    if any(key in wanted_rules(policy) or key in rules_of({key: rule}, policy) for policy in policies):
        return  # its policy's controller keeps it, mends it or drops it
    name = rule.metadata.labels.get(POLICY_LABEL, "")
    belongs = f"metadata.labels ({POLICY_LABEL}): there is no {POLICY} {name}" if name else "of no policy"
    yield _about("RuleStray", RULE, rule.metadata, f"{belongs}, and kube-scheduler is kept off these pools")


def _policy(cluster: Cluster, facts: Facts, key: str) -> Iterator[Finding]:
    policy = cluster.policies.get(key)
    if policy is None:
        return
    meta = policy.metadata
    for finding, text, others in _deletion(
        facts, meta, [f"metadata.finalizers has {', '.join(meta.finalizers)}"]
    ):
        yield _about(finding, POLICY, meta, text, others)
    if meta.deletion_timestamp is not None:
        return
    if POLICY_FINALIZER not in meta.finalizers:
        yield _about("PolicyUnguarded", POLICY, meta, f"metadata.finalizers lack {POLICY_FINALIZER}")
    wrong = _wrong_rules(cluster, policy) if facts.rules_served else []
    if wrong:
        text = f"spec.pools: {RULE} {listed(wrong, NAMED)}: missing, or not as this policy wants it"
        yield _about("RulesWrong", POLICY, meta, text, tuple(f"{RULE} {name}" for name in wrong))


def _wrong_rules(cluster: Cluster, policy: AllocationPolicy) -> list[str]:
    rules = cluster.taint_rules
    return [
        name
        for name, selector in wanted_rules(policy).items()
        if name not in rules or not is_as_wanted(rules[name], policy, selector)
    ]


# --- words


def _deletion(facts: Facts, meta: ObjectMeta, holds: Iterable[str]) -> Iterator[_Told]:
    """An object that is to go and does not (FR-45)."""
    if meta.deletion_timestamp is None:
        return
    since = datetime.fromisoformat(meta.deletion_timestamp)
    if (facts.now - since).total_seconds() >= facts.deletion_seconds:
        text = f"metadata.deletionTimestamp: in deletion since {meta.deletion_timestamp}; {'; '.join(holds)}"
        yield "DeletionStuck", text, ()


def _about(finding: str, kind: str, meta: ObjectMeta, text: str, others: tuple[str, ...] = ()) -> Finding:
    return Finding(finding, kind, meta.namespace, meta.name, meta.uid, text, others)


def _names(devices: Iterable[DeviceId]) -> str:
    return "device " + listed([str(device) for device in sorted(devices)], NAMED)


def _consumer(consumer: ResourceClaimConsumerReference) -> str:
    return f"Pod {consumer.name}" if consumer.resource == "pods" else f"{consumer.resource}/{consumer.name}"


_LOOKS: Final[dict[str, Callable[[Cluster, Facts, str], Iterator[Finding]]]] = {
    CLAIM: _claim,
    POD: _pod,
    POOL: _pool,
    RULE: _rule,
    POLICY: _policy,
}
