"""What holds of every simulation: no rule is broken, nothing given is changed, and what came out is a beginning from which nothing else comes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from dra_operator.simulation import written
from dra_operator.simulation.keeping import kept
from dra_operator.testing.builders import (
    alternative,
    claim,
    device,
    device_class,
    first_available,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    template,
)
from tests.unit.simulation.test_simulate import Run

if TYPE_CHECKING:
    from dra_operator.testing.builders import Obj

DRIVER = "gpu.test"
SIZE = f'device.attributes["{DRIVER}"].size == '


@st.composite
def devices(draw: st.DrawFn) -> list[Obj]:
    """Up to four, dedicated ones and ones that are shared, of two sizes."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        more: dict[str, Any] = (
            {"capacity": {"memory": "4"}, "allowMultipleAllocations": True} if draw(st.booleans()) else {}
        )
        found.append(device(f"d{number}", attributes={"size": draw(st.integers(1, 2))}, **more))
    return found


@st.composite
def requests(draw: st.DrawFn) -> Obj:
    """One device or two, all of a size, a part of one, a look, or the first alternative."""
    size = f"{SIZE}{draw(st.integers(1, 2))}"
    forms = (
        request("r", "gpu", count=draw(st.integers(1, 2))),
        request("r", "gpu", size, allocationMode="All"),
        request("r", "gpu", capacity={"requests": {"memory": "2"}}),
        request("r", "gpu", size, adminAccess=True),
        first_available("r", alternative("a", "gpu", size, count=2), alternative("b", "gpu")),
    )
    return draw(st.sampled_from(forms))


@st.composite
def worlds(draw: st.DrawFn) -> list[Obj]:
    """Up to three nodes, claims of their own and from templates, pods with one or two of them."""
    found = [device_class("gpu", driver=DRIVER)]
    for number in range(draw(st.integers(1, 3))):
        found += [
            node(f"n{number}"),
            resource_slice(f"s{number}", DRIVER, draw(devices()), node=f"n{number}"),
        ]
    found += [claim(f"c{number}", draw(requests())) for number in range(3)]
    found += [template(f"t{number}", draw(requests())) for number in range(2)]
    entries = [pod_claim(name, claim=name) for name in ("c0", "c1")]
    entries += [pod_claim(name, template=name) for name in ("t0", "t1")]
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(
            st.lists(st.sampled_from(entries), min_size=1, max_size=2, unique_by=lambda one: one["name"])
        )
        found.append(pod(f"p{number}", *chosen, priority=draw(st.integers(0, 2))))
    return found


@settings(deadline=None, max_examples=100)
@examples(worlds())
def test_no_simulation_breaks_a_rule_or_changes_what_it_is_given(objects: list[Obj]) -> None:
    before = copy.deepcopy(objects)

    run = Run(*objects)

    assert objects == before
    assert run.broken == []


@settings(deadline=None, max_examples=50)
@examples(worlds())
def test_what_came_out_is_a_beginning_from_which_nothing_else_comes(objects: list[Obj]) -> None:
    first = Run(*objects)

    again = Run(*objects, *written(first.report, first.given)["items"])

    assert dict.fromkeys(first.reasons, "") == again.nodes


@settings(deadline=None, max_examples=50)
@examples(worlds())
def test_what_a_snapshot_keeps_is_all_that_is_needed(objects: list[Obj]) -> None:
    first = Run(*objects)
    then = [*objects, *written(first.report, first.given)["items"]]

    for before in (objects, then):
        whole, stored = Run(*before), Run(*map(kept, before))

        assert (stored.nodes, stored.devices, stored.reasons) == (whole.nodes, whole.devices, whole.reasons)
        assert list(map(kept, map(kept, before))) == list(map(kept, before))


@settings(deadline=None, max_examples=50)
@examples(worlds())
def test_who_comes_last_changes_nothing_for_those_before(objects: list[Obj]) -> None:
    late = pod("late", pod_claim("t0", template="t0"), priority=-1)

    alone, beside = Run(*objects), Run(*objects, late)

    earlier = {one.name for one in alone.report.outcomes if one.kind == "Pod"}
    assert {name: beside.devices.get(name) for name in earlier} == {
        name: alone.devices.get(name) for name in earlier
    }
