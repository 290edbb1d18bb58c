"""A survey costs so many calls a device, and twice as many for twice as many devices: what `kubectl dra pools` and `devices` hang on in a large cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dra_operator.cli.stock import Stock
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import KINDS, from_object
from dra_operator.survey import pool_rows, survey
from dra_operator.testing.builders import allocation, claim, devices, request, resource_slice, result

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVER = "gpu.test"
EACH = 8
"""Devices of a node, of which six are in use."""

POOLS_CALLS, SURVEY_CALLS = 25, 60
"""Calls of Python functions a device that are allowed, each step of a generator included; 20 and 52 when this was written."""


def stocked(nodes: int) -> Stock:
    stock = Stock()
    for number in range(nodes):
        node = f"node-{number}"
        made = devices(EACH, attributes={"model": "a", "index": 1}, capacity={"memory": "40Gi"})
        objects = [resource_slice(node, DRIVER, made, node=node)]
        for at in (0, 3):
            held = claim(f"{node}-{at}", request("gpu", DRIVER, count=3))
            results = [result("gpu", DRIVER, node, f"gpu-{at + more}") for more in range(3)]
            held["status"] = {"allocation": allocation(*results, node=node)}
            objects.append(held)
        stock.take([from_object(KINDS[raw["kind"]], raw) for raw in objects])
    return stock


def calls(work: Callable[[], object]) -> int:
    """Calls of Python functions."""
    count = 0

    def listen(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        del frame
        count += event == "call"

    sys.setprofile(listen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_pools_cost_so_many_calls_a_device_however_many_there_are() -> None:
    few, many = stocked(20), stocked(200)

    small = calls(lambda: pool_rows(few, DEFAULT_1_37))
    assert small < POOLS_CALLS * EACH * 20
    assert calls(lambda: pool_rows(many, DEFAULT_1_37)) < small * 10.5


def test_rows_of_all_cost_so_many_calls_a_device_however_many_there_are() -> None:
    few, many = stocked(20), stocked(200)

    small = calls(lambda: survey(few, DEFAULT_1_37))
    assert small < SURVEY_CALLS * EACH * 20
    assert calls(lambda: survey(many, DEFAULT_1_37)) < small * 10.5
