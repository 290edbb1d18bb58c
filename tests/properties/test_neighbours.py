"""Inter-pod affinity and topology spread on random clusters that change: the filters against the rules written down plainly.

The reference reads the objects as they were given, in the words of Kubernetes' documentation, counts everything anew for each node, and
knows nothing of indexes. The model under test is one and the same throughout: what it keeps between decisions must never show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.cluster import Cluster
from dra_operator.model import Namespace, Node, Pod, from_object
from dra_operator.placement.filters import first_reason, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Obj = dict[str, Any]

NODES = ("n1", "n2", "n3", "n4")
SPACES = ("ns", "ns", "other")
KEYS = ("zone", "zone", "host", "rack")

labels = st.fixed_dictionaries({"app": st.sampled_from("xxxy")}, optional={"tier": st.sampled_from("fb")})


def requirement() -> st.SearchStrategy[Obj]:
    listed = st.fixed_dictionaries(
        {
            "key": st.sampled_from(("app", "tier")),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from("xyfb"), min_size=1, max_size=2, unique=True),
        }
    )
    bare = st.fixed_dictionaries(
        {
            "key": st.sampled_from(("app", "tier")),
            "operator": st.sampled_from(("Exists", "DoesNotExist")),
        }
    )
    return st.one_of(listed, bare)


def selector() -> st.SearchStrategy[Obj | None]:
    """Absent, empty, or with something in it."""
    plain = st.sampled_from(({"matchLabels": {"app": "x"}}, {"matchLabels": {"app": "y"}}))
    full = st.fixed_dictionaries(
        {}, optional={"matchLabels": labels, "matchExpressions": st.lists(requirement(), max_size=1)}
    )
    return st.one_of(plain, plain, plain, full, st.just(None))


def term() -> st.SearchStrategy[Obj]:
    by_label: st.SearchStrategy[Obj] = st.one_of(
        st.just({}), st.just({"matchLabels": {"team": "a"}}), st.just({"matchLabels": {"team": "b"}})
    )
    return st.fixed_dictionaries(
        {"topologyKey": st.sampled_from(KEYS), "labelSelector": selector()},
        optional={
            "namespaces": st.lists(st.sampled_from(SPACES), max_size=2, unique=True),
            "namespaceSelector": by_label,
        },
    )


def spread() -> st.SearchStrategy[Obj]:
    return st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 2),
            "topologyKey": st.sampled_from(KEYS),
            "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": selector(),
        },
        optional={
            "minDomains": st.integers(1, 4),
            "nodeAffinityPolicy": st.sampled_from(("Honor", "Ignore")),
            "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
            "matchLabelKeys": st.just(["tier"]),
        },
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Obj:
    found = draw(
        st.fixed_dictionaries({}, optional={"zone": st.sampled_from("abc"), "rack": st.sampled_from("12")})
    )
    found.setdefault("zone", "a") if draw(st.booleans()) else None
    found["host"] = name
    taints = [{"key": "t", "effect": "NoSchedule"}] if draw(st.integers(0, 3)) == 0 else []
    return {"metadata": {"name": name, "uid": name, "labels": found}, "spec": {"taints": taints}}


@st.composite
def pods(draw: st.DrawFn, name: str, *, subject: bool = False) -> Obj:
    """A pod that is bound, nominated, or (the subject, and those that the test places) on no node."""
    chance = 2 if subject else 3
    affinity: Obj = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.integers(1, chance)) == 1:
            terms = draw(st.lists(term(), min_size=1, max_size=2))
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec: Obj = {"affinity": affinity, "priority": draw(st.integers(0, 1)), "containers": []}
    status: Obj = {}
    if subject:
        spec["topologySpreadConstraints"] = draw(st.lists(spread(), max_size=2))
        if draw(st.integers(0, 3)) == 0:
            spec["nodeSelector"] = {"zone": draw(st.sampled_from("ab"))}
        if draw(st.booleans()):
            spec["tolerations"] = [{"operator": "Exists"}]
    elif draw(st.integers(0, 2)):
        spec["nodeName"] = draw(st.sampled_from((*NODES, "gone")))
    elif draw(st.booleans()):
        status["nominatedNodeName"] = draw(st.sampled_from(NODES))
    meta: Obj = {
        "name": name,
        "namespace": draw(st.sampled_from(SPACES)),
        "uid": name,
        "labels": draw(labels),
    }
    if "nodeName" in spec and draw(st.integers(0, 4)) == 0:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": spec, "status": status}


# --- the reference


class There(NamedTuple):
    """A pod and the labels of its node."""

    pod: Obj
    labels: Mapping[str, str]


def chosen(wanted: Obj | None, actual: Mapping[str, str]) -> bool:
    if wanted is None:
        return False
    for key, value in wanted.get("matchLabels", {}).items():
        if actual.get(key) != value:
            return False
    for item in wanted.get("matchExpressions", []):
        value = actual.get(item["key"])
        if item["operator"] == "In" and (value is None or value not in item["values"]):
            return False
        if item["operator"] == "NotIn" and value is not None and value in item["values"]:
            return False
        if item["operator"] == "Exists" and value is None:
            return False
        if item["operator"] == "DoesNotExist" and value is not None:
            return False
    return True


def meant(owner: Obj, item: Obj, other: Obj, teams: Mapping[str, str]) -> bool:
    """Whether a term of one pod is about another one."""
    names, by_label = item.get("namespaces") or [], item.get("namespaceSelector")
    if not names and by_label is None:
        names = [owner["metadata"]["namespace"]]
    space = other["metadata"]["namespace"]
    in_space = space in names or chosen(by_label, {"team": teams[space]} if space in teams else {})
    return in_space and chosen(item["labelSelector"], other["metadata"]["labels"])


def terms_of(pod: Obj, kind: str) -> list[Obj]:
    found: list[Obj] = (
        pod["spec"]["affinity"].get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    )
    return found


def together(here: Mapping[str, str], there: Mapping[str, str], key: str) -> bool:
    return key in here and here.get(key) == there.get(key)


def affinity_holds(pod: Obj, here: Obj, others: list[There], teams: Mapping[str, str]) -> bool:
    wanted = terms_of(pod, "podAffinity")
    at = here["metadata"]["labels"]
    if any(item["topologyKey"] not in at for item in wanted):
        return False
    like = [other for other in others if all(meant(pod, item, other.pod, teams) for item in wanted)]
    if all(any(together(at, other.labels, item["topologyKey"]) for other in like) for item in wanted):
        return True
    in_a_domain = [other for other in like if any(item["topologyKey"] in other.labels for item in wanted)]
    return not in_a_domain and all(meant(pod, item, pod, teams) for item in wanted)


def anti_affinity_holds(pod: Obj, here: Obj, others: list[There], teams: Mapping[str, str]) -> bool:
    at = here["metadata"]["labels"]
    for other in others:
        for one, two in ((pod, other.pod), (other.pod, pod)):
            for item in terms_of(one, "podAntiAffinity"):
                if meant(one, item, two, teams) and together(at, other.labels, item["topologyKey"]):
                    return False
    return True


def spread_holds(pod: Obj, here: Obj, everywhere: list[Obj], others: list[There]) -> bool:
    must = [
        item
        for item in pod["spec"]["topologySpreadConstraints"]
        if item["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    return all(evenly(pod, item, here, (everywhere, must), others) for item in must)


def evenly(pod: Obj, item: Obj, here: Obj, known: tuple[list[Obj], list[Obj]], others: list[There]) -> bool:
    everywhere, must = known
    key, mine = item["topologyKey"], pod["metadata"]["labels"]
    at = here["metadata"]["labels"]
    if key not in at:
        return False
    same = {name: mine[name] for name in item.get("matchLabelKeys", []) if name in mine}

    def like(found: Mapping[str, str]) -> bool:
        return chosen(item["labelSelector"], found) and all(found.get(name) == same[name] for name in same)

    counts: dict[str, int] = {}
    for node in everywhere:
        if counts_for(pod, item, node) and all(
            one["topologyKey"] in node["metadata"]["labels"] for one in must
        ):
            counts.setdefault(node["metadata"]["labels"][key], 0)
    empty = item["labelSelector"] is not None and not (
        item["labelSelector"].get("matchLabels") or item["labelSelector"].get("matchExpressions") or same
    )
    for other in others if not empty else ():
        node = next(one for one in everywhere if one["metadata"]["labels"] is other.labels)
        counted = counts_for(pod, item, node) and all(one["topologyKey"] in other.labels for one in must)
        if counted and stays(other.pod, pod) and like(other.pod["metadata"]["labels"]):
            counts[other.labels[key]] += 1
    least = min(counts.values(), default=0) if len(counts) >= item.get("minDomains", 1) else 0
    return counts.get(at[key], 0) + like(mine) - least <= int(item["maxSkew"])


def stays(other: Obj, pod: Obj) -> bool:
    meta = other["metadata"]
    return meta["namespace"] == pod["metadata"]["namespace"] and "deletionTimestamp" not in meta


def counts_for(pod: Obj, item: Obj, node: Obj) -> bool:
    """Whether a node counts for a constraint."""
    wanted = pod["spec"].get("nodeSelector", {})
    if (
        item.get("nodeAffinityPolicy", "Honor") == "Honor"
        and not wanted.items() <= node["metadata"]["labels"].items()
    ):
        return False
    tolerated = bool(pod["spec"].get("tolerations"))
    return item.get("nodeTaintsPolicy", "Ignore") != "Honor" or tolerated or not node["spec"]["taints"]


def expected(world: World, pod: Obj, node: Obj) -> bool:
    """Whether the node will do, with the pods that are on their way and without."""
    bound, coming = world.there(pod)
    everywhere = list(world.nodes.values())
    teams = world.teams
    return (
        anti_affinity_holds(pod, node, bound + coming, teams)
        and all(affinity_holds(pod, node, others, teams) for others in (bound, bound + coming))
        and all(spread_holds(pod, node, everywhere, others) for others in (bound, bound + coming))
    )


# --- the model and the objects that it was given


class World:
    """Objects as given, and the model that was told of each."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.nodes: dict[str, Obj] = {}
        self.pods: dict[str, Obj] = {}
        self.teams: dict[str, str] = {}
        self.placed: dict[str, str] = {}
        self.gone: set[str] = set()

    def put_node(self, node: Obj) -> None:
        self.nodes[node["metadata"]["name"]] = node
        self.cluster.apply("MODIFIED", from_object(Node, node))

    def put_team(self, space: str, team: str) -> None:
        self.teams[space] = team
        raw = {"metadata": {"name": space, "uid": space, "labels": {"team": team}}}
        self.cluster.apply("MODIFIED", from_object(Namespace, raw))

    def put_pod(self, pod: Obj) -> None:
        name = pod["metadata"]["name"]
        for key, known in list(self.pods.items()):
            if known["metadata"]["name"] == name:
                del self.pods[key]
                if known["metadata"]["namespace"] != pod["metadata"]["namespace"]:
                    self.delete_pod(known)
        while pod["metadata"]["uid"] in self.gone:
            pod["metadata"]["uid"] += "'"
        uid = pod["metadata"]["uid"]
        self.pods[uid] = pod
        self.cluster.apply("MODIFIED", from_object(Pod, pod))
        if "nodeName" in pod["spec"]:
            self.placed.pop(uid, None)

    def delete_pod(self, pod: Obj) -> None:
        """Its uid never comes again; another pod of the name has its own."""
        self.gone.add(pod["metadata"]["uid"])
        self.cluster.apply("DELETED", from_object(Pod, pod))

    def place(self, uid: str, node_name: str) -> None:
        self.placed[uid] = node_name
        self.cluster.place(uid, node_name)

    def there(self, subject: Obj) -> tuple[list[There], list[There]]:
        """Pods that are bound, and pods on their way, to nodes that exist."""
        bound: list[There] = []
        coming: list[There] = []
        for uid, pod in self.pods.items():
            name = pod["spec"].get("nodeName") or self.placed.get(uid)
            side = bound if "nodeName" in pod["spec"] else coming
            if name is None and pod["spec"]["priority"] >= subject["spec"]["priority"]:
                name = pod["status"].get("nominatedNodeName")
            if name in self.nodes:
                side.append(There(pod, self.nodes[name]["metadata"]["labels"]))
        return bound, coming


def assert_as_expected(world: World, subject: Obj) -> None:
    pod = from_object(Pod, subject)
    filters = prepare(pod, world.cluster)
    for name, node in world.nodes.items():
        found = first_reason(filters, world.cluster.nodes[name])
        assert (found is None) is expected(world, subject, node), (name, found)


def names(prefix: str, numbers: Iterable[int]) -> list[str]:
    return [f"{prefix}{number}" for number in numbers]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_nodes_that_pass_are_those_that_the_rules_allow_however_the_cluster_came_to_be(
    data: st.DataObject,
) -> None:
    draw = data.draw
    world = World()
    for name in NODES[: draw(st.integers(1, 4))]:
        world.put_node(draw(nodes(name)))
    for space in SPACES:
        if draw(st.booleans()):
            world.put_team(space, draw(st.sampled_from("ab")))
    for name in names("p", range(draw(st.integers(0, 5)))):
        world.put_pod(draw(pods(name)))
    subject = draw(pods("subject", subject=True))
    assert_as_expected(world, subject)
    for _ in range(draw(st.integers(0, 4))):
        change(draw, world)
        assert_as_expected(world, subject)


def change(draw: Any, world: World) -> None:
    """Something happens to a pod, a node or a namespace."""
    step = draw(st.sampled_from(("pod", "pod", "delete", "place", "node", "team")))
    if step == "pod":
        world.put_pod(draw(pods(draw(st.sampled_from(names("p", range(6)))))))
    elif step == "node":
        world.put_node(draw(nodes(draw(st.sampled_from(NODES)))))
    elif step == "team":
        world.put_team(draw(st.sampled_from(SPACES)), draw(st.sampled_from("ab")))
    elif step == "delete" and world.pods:
        uid = draw(st.sampled_from(sorted(world.pods)))
        world.placed.pop(uid, None)
        world.delete_pod(world.pods.pop(uid))
    elif step == "place":
        uids = sorted(uid for uid, pod in world.pods.items() if "nodeName" not in pod["spec"])
        if uids:
            world.place(draw(st.sampled_from(uids)), draw(st.sampled_from(NODES)))
