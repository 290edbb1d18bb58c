"""A pod whose devices have too little capacity is told what it could have for less: it gets just that when it asks for it, and no more is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.quantity import Quantity
from dra_operator.simulation import Given, Report, simulate
from dra_operator.testing.builders import (
    Obj,
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
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DRIVER = "gpu.test"
OFFER = re.compile(
    r"ask for less: (?:alternative (\S+) of )?request (\S+) could have up to (.+?)(?: now)?, with device (\S+) on node (\w+)(?:,|;)"
)
AMOUNT = re.compile(r"(\S+) of (\S+)")


def gpu(name: str, value: str = "40Gi", policy: Obj | None = None, **more: str) -> Obj:
    """A device of which several may have shares; `more` are further capacities."""
    memory: Obj = {"value": value, **({"requestPolicy": policy} if policy else {})}
    others = {name: {"value": amount} for name, amount in more.items()}
    return device(name, allowMultipleAllocations=True) | {"capacity": {"memory": memory, **others}}


def on(name: str, *gpus: Obj) -> tuple[Obj, Obj]:
    return node(name), resource_slice(f"{name}-gpus", DRIVER, gpus, node=name)


def asking(count: int | None = None, /, **amounts: str) -> Obj:
    return request("gpu", "gpu", count=count, capacity={"requests": amounts})


def decide(world: Sequence[Obj], *wanted: Obj, held: Sequence[Obj] = ()) -> Report:
    """The last pod wants all requests in one claim; pods before it hold one each."""
    given = Given()
    for obj in (device_class("gpu", driver=DRIVER), *world):
        given.take(obj)
    for number, one in enumerate((*held, list(wanted))):
        name = f"p{number}"
        given.take(claim(name, *([one] if isinstance(one, dict) else one)))
        given.take(pod(name, pod_claim("c", claim=name)))
    return simulate(given)


def offered(report: Report) -> tuple[str, dict[str, str], str, str]:
    """Request (`request/alternative`), amounts, device, node."""
    found = OFFER.search(report.outcomes[-1].message)
    assert found is not None, report.outcomes[-1].message
    form, name, offer, where, home = found.groups()
    amounts = {capacity: amount for amount, capacity in AMOUNT.findall(offer)}
    return "/".join(filter(None, (name, form))), amounts, where, home


STEPS = {"default": "5Gi", "validRange": {"min": "5Gi", "step": "10Gi", "max": "35Gi"}}
VALUES = {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]}


@pytest.mark.parametrize(
    ("world", "held", "wanted", "amount", "device_id"),
    [
        (on("n1", gpu("a")), [], "80Gi", "40Gi", "gpu.test/n1/a"),
        (on("n1", gpu("a")), ["30Gi"], "20Gi", "10Gi", "gpu.test/n1/a"),
        ((*on("n1", gpu("a")), *on("n2", gpu("a", "24Gi"))), ["30Gi"], "30Gi", "24Gi", "gpu.test/n2/a"),
        (on("n1", gpu("a"), gpu("b", "48Gi")), [], "80Gi", "48Gi", "gpu.test/n1/b"),
        (on("n1", gpu("a", policy=STEPS)), [], "39Gi", "35Gi", "gpu.test/n1/a"),
        (on("n1", gpu("a", policy=STEPS)), ["15Gi"], "35Gi", "25Gi", "gpu.test/n1/a"),
        (on("n1", gpu("a", policy=VALUES)), ["10Gi"], "40Gi", "20Gi", "gpu.test/n1/a"),
        (on("n1", gpu("a", "1500m")), ["700m"], "1", "800m", "gpu.test/n1/a"),
    ],
)
def test_what_is_offered_can_be_had_and_no_more(
    world: Sequence[Obj], held: Sequence[str], wanted: str, amount: str, device_id: str
) -> None:
    before = [asking(memory=one) for one in held]

    name, amounts, where, _ = offered(decide(world, asking(memory=wanted), held=before))
    again = decide(world, asking(memory=amount), held=before)
    more = str(Quantity.parse(amount) + Quantity.parse("1m"))
    beyond = decide(world, asking(memory=more), held=before)

    assert (name, amounts, where) == ("gpu", {"memory": amount}, device_id)
    assert devices(again) == [device_id]
    assert not beyond.outcomes[-1].is_placed


def devices(report: Report) -> list[str]:
    last = report.outcomes[-1]
    assert last.is_placed, last.message
    allocation = last.claims[0].status.allocation
    return [str(one.device_id) for one in allocation.devices.results] if allocation else []


def test_what_waiting_would_bring_is_told_apart_from_what_is_there_now() -> None:
    world = on("n1", gpu("a"))

    now = decide(world, asking(memory="20Gi"), held=[asking(memory="30Gi")]).outcomes[-1]
    never = decide(world, asking(memory="80Gi"), held=[asking(memory="30Gi")]).outcomes[-1]

    assert "up to 10Gi of memory now, with device gpu.test/n1/a on node n1; or free more" in now.message
    assert now.verdict == "not now"
    assert (
        "up to 40Gi of memory, with device gpu.test/n1/a on node n1, while that is free; or add larger"
        in never.message
    )
    assert never.verdict == "never"


def test_where_nothing_is_left_no_less_is_offered() -> None:
    found = decide(on("n1", gpu("a")), asking(memory="1Gi"), held=[asking(memory="40Gi")]).outcomes[-1]

    assert "ask for less" not in found.message
    assert "end pods that have shares of such devices" in found.message


def test_several_capacities_are_lowered_together_where_they_must() -> None:
    world = on("n1", gpu("a", cores="8"))

    _, amounts, _, _ = offered(decide(world, asking(memory="80Gi", cores="16")))

    assert amounts == {"memory": "40Gi", "cores": "8"}
    assert devices(decide(world, request("gpu", "gpu", capacity={"requests": amounts}))) == ["gpu.test/n1/a"]


def test_one_that_must_give_way_in_fewer_is_offered_before_one_that_gives_more() -> None:
    world = on("n1", gpu("a", "79Gi", cores="15"), gpu("b", "40Gi", cores="16"))

    assert offered(decide(world, asking(memory="80Gi", cores="16")))[1:3] == (
        {"memory": "40Gi"},
        "gpu.test/n1/b",
    )


def test_a_count_is_offered_what_each_of_them_can_have() -> None:
    """The second largest, where two devices are wanted."""
    world = on("n1", gpu("a", "60Gi"), gpu("b"), gpu("c", "50Gi"))

    _, amounts, _, _ = offered(decide(world, asking(2, memory="80Gi")))

    assert amounts == {"memory": "50Gi"}
    assert devices(decide(world, request("gpu", "gpu", count=2, capacity={"requests": amounts}))) == [
        "gpu.test/n1/a",
        "gpu.test/n1/c",
    ]


def test_the_alternative_of_a_list_that_is_offered_is_named() -> None:
    def either(**more: Any) -> Obj:
        wish: Mapping[str, Any] = {"capacity": {"requests": {"memory": "90Gi"}}} | more
        return first_available("gpu", alternative("big", "none"), alternative("some", "gpu", **wish))

    world = (*on("n1", gpu("a")), device_class("none", driver="none.test"))

    name, amounts, _, _ = offered(decide(world, either()))

    assert (name, amounts) == ("gpu/some", {"memory": "40Gi"})
    assert devices(decide(world, either(capacity={"requests": amounts}))) == ["gpu.test/n1/a"]


def test_what_does_not_help_is_not_offered() -> None:
    """A second request of the claim needs the only device for itself, which cannot be shared."""
    alone = device("a", capacity={"memory": "40Gi"})
    other = request("other", "gpu")

    found = decide(on("n1", alone, device("b")), asking(memory="80Gi"), other, request("third", "gpu"))

    assert "ask for less" not in found.outcomes[-1].message
