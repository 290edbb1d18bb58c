"""On random small clusters, every number of an explanation is what counting device by device gives."""

from __future__ import annotations

from random import Random

import pytest

from dra_operator.testing.builders import device, node, resource_slice
from tests.unit.explain.situations import GPU, MODEL, asks, gpu, held
from tests.unit.explain.test_why import explained


@pytest.mark.parametrize("seed", range(60))
def test_figures(seed: int) -> None:
    dice = Random(seed)
    nodes = [f"n{number}" for number in range(dice.randint(1, 4))]
    sick = [{"key": "sick", "effect": "NoSchedule"}]
    world, truth = [], {}
    for name in nodes:
        found = []
        for number in range(dice.randint(1, 4)):
            model, is_sick, is_held = dice.choice(("a", "b")), dice.random() < 0.3, dice.random() < 0.3
            found.append(device(f"g{number}", attributes={"model": model}, taints=sick if is_sick else []))
            truth[name, number] = (model == "a", is_held, is_sick)
            if is_held:
                world.append(held(f"h-{name}-{number}", f"g{number}", at=name))
        world += [node(name), resource_slice(name, GPU, found, node=name)]
    free = {
        name: sum(truth[key] == (True, False, False) for key in truth if key[0] == name) for name in nodes
    }
    told = explained([*world, *asks(gpu(max(free.values()) + 1, f'{MODEL} == "a"'))])
    (asked,) = told.asked
    assert asked.seen == len(truth)
    assert asked.matching == sum(matches for matches, _, _ in truth.values())
    assert (asked.free, asked.best) == (sum(free.values()), max(free.values()))
    assert not asked.best_node or free[asked.best_node] == asked.best
    counts = {fact.code: fact.count for fact in asked.facts}
    assert counts.get("RequestSelector", 0) == sum(not matches for matches, _, _ in truth.values())
    assert counts.get("InUse", 0) == sum(matches and is_held for matches, is_held, _ in truth.values())
    assert counts.get("Tainted", 0) == sum(
        is_sick and matches and not is_held for matches, is_held, is_sick in truth.values()
    )
    assert sum(row.pools * row.free for row in asked.rows) == asked.free
