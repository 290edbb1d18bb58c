"""`python -m tests.bench.allocations` (part of `make bench`): what a call of the allocator takes, beside upstream's.

One run on one machine; what counts are the ratios. Each figure is the least of some rounds. Cold: expressions are compiled, but nothing is known of the devices,
whose pools are gathered in the call. Warm: the same again. The hard problems are families that grow (`hard`); upstream has some seconds for each.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dra_operator.allocator import Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution
from dra_operator.testing import builders as make
from tests.conformance.problems import decode_problem
from tests.e2e.harness.build import built_oracle
from tests.oracle.upstream import Upstream

from . import hard
from .arguments import RESULTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.cel.compiler import Compiler
    from tests.conformance.problems import Problem

Json = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
GATES = (
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "PartitionableDevices",
    "PrioritizedList",
)
COUNTED = {"allocationMode": "ExactCount"}
MODEL = f'device.attributes["{GPU}"].model == "a100"'
NEVER = f'device.attributes["{GPU}"].model == "h100"'
GOALS = "goals: cold <= 3, warm <= 1"


def want(name: str, *selectors: str, count: int = 1, device_class: str = "gpu", **more: Any) -> Json:
    return make.request(name, device_class, *selectors, count=count, **COUNTED, **more)


def problem(slices: Sequence[Json], *claims: Json) -> Json:
    """A problem object (tests/oracle/README.md) with one node and a class for each driver."""
    classes = [make.device_class("gpu", driver=GPU), make.device_class("nic", driver=NIC)]
    return {
        "features": dict.fromkeys(GATES, True),
        "node": make.node("n1"),
        "classes": classes,
        "claims": list(claims),
        "slices": list(slices),
    }


def gpus(count: int, **more: Any) -> list[Json]:
    return [
        make.device(
            f"gpu-{at}",
            attributes={"model": "a100", "index": at, "root": at},
            capacity={"memory": "80Gi"},
            **more,
        )
        for at in range(count)
    ]


def usual() -> Json:
    """One request with a selector, a node of eight devices."""
    return problem([make.resource_slice("s", GPU, gpus(8), node="n1")], make.claim("c", want("r", MODEL)))


def partitions() -> Json:
    """Eight of 64 partitions, with counters."""
    devices, spec = hard.parts(5)
    slices = [
        make.resource_slice("s", GPU, devices[:64], node="n1", resourceSliceCount=2),
        make.resource_slice("sets", GPU, [], node="n1", resourceSliceCount=2, **spec),
    ]
    return problem(slices, make.claim("c", want("r", count=8)))


def pairs() -> Json:
    """A GPU and a NIC on one root, eight of each."""
    nics = [make.device(f"nic-{at}", attributes={"root.example.com/root": 7 - at}) for at in range(8)]
    cards = [make.device(f"gpu-{at}", attributes={"root.example.com/root": at}) for at in range(8)]
    slices = [
        make.resource_slice("g", GPU, cards, node="n1"),
        make.resource_slice("n", NIC, nics, node="n1"),
    ]
    requests = (want("g"), want("n", device_class="nic"))
    return problem(
        slices, make.claim("c", *requests, constraints=[{"matchAttribute": "root.example.com/root"}])
    )


def shares() -> Json:
    """A hundred shares of the devices of a node, a claim each."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    devices = [
        {
            "name": f"gpu-{at}",
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": "20Gi", "requestPolicy": policy}},
        }
        for at in range(5)
    ]
    claims = [make.claim(f"c{at}", want("r", capacity={"requests": {"memory": "1Gi"}})) for at in range(100)]
    return problem([make.resource_slice("s", GPU, devices, node="n1")], *claims)


def alternatives() -> Json:
    """A prioritized list of eight, of which the last can be had."""
    options = [make.alternative(f"a{at}", "gpu", NEVER, count=1, **COUNTED) for at in range(7)]
    options.append(make.alternative("a7", "gpu", MODEL, count=1, **COUNTED))
    slices = [make.resource_slice("s", GPU, gpus(8), node="n1")]
    return problem(slices, make.claim("c", make.first_available("r", *options)))


USUAL: Mapping[str, Json] = {
    "(a) one request, one node of 8": usual(),
    "(b) 8 of 64 partitions": partitions(),
    "(c) a GPU and a NIC of 8 each": pairs(),
    "(d) 100 shares": shares(),
    "(e) the last of 8 alternatives": alternatives(),
}


def once(raw: Json, compiler: Compiler) -> tuple[float, float]:
    """Microseconds of a cold and a warm call."""
    asked = decode_problem(raw)
    allocator = Allocator(_inputs(asked, compiler), Options())
    found = []
    for _ in range(2):
        began = time.perf_counter()
        with suppress(NoSolution):
            allocator.allocate(asked.nodes[0], asked.claims)
        found.append((time.perf_counter() - began) * 1e6)
    return found[0], found[1]


def _inputs(asked: Problem, compiler: Compiler) -> Inputs:
    return Inputs(
        features=asked.features,
        classes={each.metadata.name: each for each in asked.classes},
        slices=SliceList(asked.slices),
        allocated=asked.allocated,
        selectors=compiler,
    )


def ours(raw: Json, rounds: int) -> tuple[float, float]:
    """The least microseconds of cold and warm calls."""
    compiler = default_compiler()
    once(raw, compiler)
    gc.collect()
    gc.disable()
    try:
        found = [once(raw, compiler) for _ in range(rounds)]
    finally:
        gc.enable()
    return min(cold for cold, _ in found), min(warm for _, warm in found)


def theirs(raw: Json, rounds: int, seconds: float) -> float | None:
    """Upstream's least microseconds; None where it does not come back."""
    if built_oracle() is None:
        return None
    answer = Upstream.built().solve([raw], timeout=seconds)[0]
    if answer["outcome"] == "timeout":
        return None
    repeated = (
        Upstream.built().solve([{**raw, "repeat": rounds}], timeout=seconds)[0] if rounds > 1 else answer
    )
    return float(repeated.get("minAllocateNs") or answer["allocateNs"]) / 1e3


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write. Exit status 0, however fast it is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200, help="of usual calls")
    parser.add_argument("--seconds", type=float, default=5.0, help="that upstream has for a hard problem")
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "allocations.json", help="where the document is written"
    )
    arguments = parser.parse_args(argv)
    document: dict[str, Any] = {}
    print(f"allocator, µs a call               cold      warm  upstream   ratio cold  warm ({GOALS})")
    for name, raw in USUAL.items():
        cold, warm = ours(raw, arguments.rounds)
        other = theirs(raw, arguments.rounds, arguments.seconds)
        text = f"{'-':>10}" if other is None else f"{other:>10.1f}{cold / other:>13.1f}{warm / other:>6.1f}"
        print(f"  {name:<31}{cold:>9.1f}{warm:>10.1f}{text}", flush=True)
        document[name] = {"coldUs": cold, "warmUs": warm, "upstreamUs": other}
    print(
        f"hard problems, ms                  ours  upstream   times as fast (goal >= 100; - where upstream has no answer after {arguments.seconds:g} s)"
    )
    for name, (devices, claims, spec) in hard.FAMILIES.items():
        raw = problem(hard.published(GPU, devices, **spec), *claims)
        cold, _ = ours(raw, 3)
        other = theirs(raw, 1, arguments.seconds)
        text = f"{'-':>10}{'-':>12}" if other is None else f"{other / 1e3:>10.2f}{other / cold:>12.1f}"
        print(f"  {name:<31}{cold / 1e3:>9.2f}{text}", flush=True)
        document[name] = {"oursUs": cold, "upstreamUs": other}
    if built_oracle() is None:
        print("upstream is left out: python -m tests.e2e.harness.build builds its program")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
