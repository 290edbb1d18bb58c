"""/metrics and the dashboard as an installation sees them: scraped by Prometheus from the operator at work on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.alertrules import PATH as RULES
from tests.alertrules import alerts, records
from tests.dashboards.shipped import NAMES, queries, variables
from tests.e2e.fleet import Fleet
from tests.e2e.harness.build import ensure_prometheus
from tests.e2e.harness.objects import claim_template, device, exactly, pod, resource_slice
from tests.e2e.harness.prometheus import Prometheus, lint
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.build import PrometheusBinaries
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.prometheus import Series
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(900)  # the first build of Prometheus takes minutes

Numbers = dict[tuple[str, ...], float]

ALL = {"namespace": ".*", "job": ".*", "driver": ".*"}
"""What Grafana puts in for `All`."""


@pytest.fixture(scope="module")
def binaries() -> PrometheusBinaries:
    return ensure_prometheus()


@pytest.fixture(scope="module")
def prometheus(
    control_plane: ControlPlane, module_operator: OperatorProcess, binaries: PrometheusBinaries
) -> Iterator[Prometheus]:
    """It scrapes the operator with the labels that a PodMonitor gives."""
    address = module_operator.url.removeprefix("http://")
    with Prometheus.start(control_plane, binaries, {address: {"namespace": "dra-operator"}}, RULES) as server:
        yield server


@pytest.fixture
def busy(managed: Workspace) -> Fleet:
    """Two of three devices are allocated, one driver is nobody's, one has a device to share and one of parts, one pod asks for more than there is."""
    fleet = Fleet.of(managed)
    fleet.plain(3)
    fleet.own("gpu")
    fleet.plain_node(1, 2, "theirs")
    managed.apply(*shared_and_in_parts(fleet))
    managed.apply(
        claim_template("one", exactly("gpu", fleet.name("gpu"))),
        claim_template("many", exactly("gpu", fleet.name("gpu"), count=9)),
        pod("first", templates={"gpu": "one"}),
        pod("second", templates={"gpu": "one"}),
        pod("greedy", templates={"gpu": "many"}),
    )
    fleet.running("first", "second")
    fleet.told("greedy", "AllocationFailed")
    return fleet


def shared_and_in_parts(fleet: Fleet) -> list[dict[str, Any]]:
    """Slices of two drivers: a device whose capacity can be shared, and one that draws on a counter."""
    parts, node = fleet.name("parts"), fleet.node()
    shared = device("gpu-0") | {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    part = device("part-0") | {
        "consumesCounters": [{"counterSet": "gpu-0", "counters": {"slices": {"value": "3"}}}]
    }
    counters = resource_slice(
        parts, node, [], sharedCounters=[{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
    )
    counters["metadata"]["name"] += "-counters"
    del counters["spec"]["devices"]
    drawing = resource_slice(parts, node, [part])
    for made in (counters, drawing):
        made["spec"]["pool"]["resourceSliceCount"] = 2
    return [resource_slice(fleet.name("shared"), node, [shared]), counters, drawing]


def numbers(found: list[Series], *labels: str) -> Numbers:
    """Values by those labels, zeros left out."""
    return {tuple(metric[label] for label in labels): value for metric, value in found if value}


def until_told(prometheus: Prometheus, expression: str, labels: tuple[str, ...], told: Numbers) -> None:
    """Waits until the numbers of a query are these."""
    wait_until(
        lambda: numbers(prometheus.query(expression), *labels), expression, accept=lambda found: found == told
    )


def test_promtool_has_nothing_to_say(
    busy: Fleet, module_operator: OperatorProcess, binaries: PrometheusBinaries
) -> None:
    assert lint(binaries, module_operator.metrics()) == []


def test_promtool_would_say_something(binaries: PrometheusBinaries) -> None:
    assert lint(binaries, "# TYPE sins counter\nsins 1\n") != []


def test_devices_pools_claims_and_pods_are_counted_as_they_are(busy: Fleet, prometheus: Prometheus) -> None:
    gpu, theirs = busy.name("gpu"), busy.name("theirs")
    until_told(
        prometheus,
        f'dra_operator_devices{{driver=~"{gpu}|{theirs}"}}',
        ("driver", "owned", "state"),
        {(gpu, "true", "allocated"): 2, (gpu, "true", "free"): 1, (theirs, "false", "free"): 2},
    )
    pools = f'dra_operator_pools{{driver="{gpu}"}}'
    until_told(prometheus, pools, ("owned", "condition"), {("true", "complete"): 1})
    until_told(prometheus, "dra_operator_waiting_claims", ("reason",), {("AllocationFailed",): 1})
    until_told(prometheus, "dra_operator_waiting_pods", ("reason",), {("AllocationFailed",): 1})


def test_every_query_of_every_panel_has_data(busy: Fleet, prometheus: Prometheus) -> None:
    """Counters have moved within the minute: `busy` has just made the operator work."""
    missing = {
        (query.board, query.panel, query.ref): query.expression
        for query in queries()
        if not wait_until(
            lambda query=query: prometheus.query(query.filled(ALL)),  # type: ignore[misc]
            f"{query.panel} {query.ref}: {query.filled(ALL)}",
        )
    }
    assert {query.board for query in queries()} == set(NAMES)
    assert missing == {}


def test_every_rule_is_evaluated_and_every_record_has_data(busy: Fleet, prometheus: Prometheus) -> None:
    found = wait_until(
        prometheus.rules,
        "every rule evaluated",
        accept=lambda rules: {rule["health"] for rule in rules} == {"ok"},
    )
    assert {rule["name"] for rule in found} == {*alerts(), *records()}
    assert {rule["name"]: rule["lastError"] for rule in found if rule.get("lastError")} == {}
    for name in records():
        wait_until(lambda name=name: prometheus.query(name), name)  # type: ignore[misc]


def test_no_alert_fires_on_a_good_day(busy: Fleet, prometheus: Prometheus) -> None:
    assert [rule["name"] for rule in prometheus.rules() if rule.get("state") == "firing"] == []


@pytest.mark.parametrize("board", NAMES)
def test_the_variables_find_the_operator_and_its_drivers(
    busy: Fleet, prometheus: Prometheus, board: str
) -> None:
    def values(name: str) -> set[str]:
        inner = (
            variables(board)[name]["query"]["query"].removeprefix("label_values(").removesuffix(f", {name})")
        )
        filled = inner.replace("$namespace", ".*").replace("$job", ".*")
        return {metric[name] for metric, _ in prometheus.query(filled)}

    drivers = {busy.name("gpu"), busy.name("theirs")}
    wait_until(lambda: values("driver"), f"{drivers} scraped", accept=drivers.issubset)
    assert (values("namespace"), values("job")) == ({"dra-operator"}, {"job-0"})
