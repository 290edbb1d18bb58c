"""The largest, oddest and costliest objects that the real API server stores, of one tenant; another tenant's pods get their devices meanwhile.

What the server refuses (expressions whose estimate is too high, objects beyond etcd's limit) never reaches the operator, so what is tried here
is what it lets pass. The longest that the operator's event loop was away is compared with what the Lease allows: the histogram has it.
The embedded server, which estimates no costs, has the harder ones (`tests/scenarios/operator/test_hostile.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, accelerators, gates
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, device, exactly, node, pod, resource_slice
from tests.e2e.harness.plugin import ENABLED, open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.fleet import Object
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(300)
LOG_MAY_HOLD = ("does the API server hang?",)
"""It takes its time to patch a pod with thousands of entries; others are served meanwhile, which is what is asked here."""

RENEW_SECONDS = 10.0
"""Within which a leader has to renew its Lease (`--renew-seconds`), also on a machine that others use."""

DEVICES = 128
"""Of a slice, the most that the server stores."""

LOOPS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
LONG = 8_500
"""Characters of a selector, of which the largest claim has 128: more than a megabyte, of the one and a half that etcd takes.

32 for each request, as many as are allowed, the API server does not get through in the half minute that it gives itself.
"""


@pytest.fixture
def mallory(
    control_plane: ControlPlane, module_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """The other tenant."""
    yield from open_workspace(control_plane, request, labels=ENABLED)


@pytest.fixture
def fleet(managed: Workspace) -> Iterator[Fleet]:
    """Four plain devices, a slice of 128 devices with 32 attributes each, and one of 64 devices with four taints each that have long keys."""
    made = Fleet.of(managed)
    made.plain(4)
    large, tainted = made.node(1), made.node(2)
    driver = made.name("gpu")
    attributes = {f"a{number}": f"{'v' * 60}{number}" for number in range(31)} | {"model": "big"}
    key = f"{'.'.join(['t' * 60] * 3)}.example.com/{'k' * 60}"
    taints = [{"key": f"{key}{number}", "effect": "NoSchedule"} for number in range(4)]
    slices = [
        resource_slice(
            driver, large, [device(f"d{'x' * 50}-{number}", attributes) for number in range(DEVICES)]
        ),
        resource_slice(driver, tainted, [{**found, "taints": taints} for found in accelerators(64)]),
    ]
    managed.apply(node(large), node(tainted))
    managed.nodes_ready(large, tainted)
    managed.kubectl.create(slices)  # `apply` would store each twice, which is too large
    made.own("gpu")
    yield made
    managed.kubectl.delete("resourceslice", *(found["metadata"]["name"] for found in slices))


def costly(driver: str, number: int) -> Object:
    """A selector with loops in loops and a long text; each number makes one of its own."""
    body = f'device.driver == "{driver}" && {number} >= 0'
    for variable in "abc":
        body = f"{LOOPS}.all({variable}, {body})"
    return {"cel": {"expression": f'{body} && "{"x" * (LONG - len(body))}".size() > 0'}}


def deepest(driver: str, depth: int = 20) -> Object:
    return {"cel": {"expression": "(" * depth + f'device.driver == "{driver}"' + ")" * depth}}


def largest(name: str, driver: str) -> Object:
    """32 requests with four selectors each, more than a megabyte of them; and 200 KB of annotations."""
    requests = [
        exactly(
            f"r{request}", driver, selectors=[costly(driver, 4 * request + number) for number in range(4)]
        )
        for request in range(32)
    ]
    found = claim(name, *requests)
    found["metadata"]["annotations"] = {"example.com/blob": "ü" * 100_000}
    return found


def hostile(driver: str) -> list[Object]:
    odd = "l" * 200 + ".0-0." + "d" * 48
    tolerations = [
        {"key": f"example.com/{number}", "operator": "Exists", "effect": "NoSchedule"}
        for number in range(1000)
    ]
    variables = [{"name": f"V{number}", "value": "x" * 50} for number in range(2000)]
    crowded = pod("crowded", claims={"gpu": "deep"}, tolerations=tolerations)
    crowded["spec"]["containers"][0]["env"] = variables
    crowded["metadata"]["labels"] = {f"example.com/l{number}": "v" * 63 for number in range(2000)}
    return [
        largest("largest", driver),
        pod("largest", claims={"gpu": "largest"}),
        claim("deep", exactly("gpu", driver, selectors=[deepest(driver)] * 32, count=32)),
        crowded,
        claim(odd, exactly("gpu", driver, count=2)),
        pod("p" * 60, claims={"gpu": odd}),
        claim(
            "apart",
            exactly("gpu", driver, count=2),
            constraints=[{"matchAttribute": f"{driver}/nobody_has_it"}],
        ),
        pod("apart", claims={"gpu": "apart"}),
    ]


def longest_away(operator: OperatorProcess) -> float:
    """Seconds: the upper end of the last bucket in which the event loop was late; infinity beyond the last one."""
    counts = {
        float(bound): float(count)
        for bound, count in re.findall(
            r'event_loop_delay_seconds_bucket{le="([^"]+)"} (\S+)', operator.metrics()
        )
    }
    total = max(counts.values())
    return min(bound for bound, count in counts.items() if count == total)


def test_others_are_served_while_one_tenant_stores_the_largest_that_there_is(
    fleet: Fleet, mallory: Workspace, module_operator: OperatorProcess
) -> None:
    driver = fleet.name("gpu")
    for found in hostile(driver):
        mallory.kubectl.create(found)  # `apply` would store each twice

    fleet.workspace.apply(
        claim("mine", exactly("gpu", driver)),
        *(pod(f"p{number}", claims={"gpu": "mine"}) for number in range(3)),
    )

    fleet.running("p0", "p1", "p2", timeout=60)
    theirs = Fleet(mallory, fleet.suffix)
    told = theirs.told("largest", "SelectorsCostly")
    assert told.startswith(f"ResourceClaim {mallory.namespace}/largest: spec.devices.requests[")
    theirs.told("apart", "AllocationFailed")
    assert gates(mallory.kubectl.get("pod", "largest"))
    assert longest_away(module_operator) <= RENEW_SECONDS
    assert problems(fleet.workspace.kubectl, fleet.workspace.namespace) == []
    assert problems(mallory.kubectl, mallory.namespace) == []
