"""`python -m tests.bench.selectors` (part of `make bench`): what a selector costs for a device, beside cel-python's interpreter and upstream.

One run on one machine; what counts are the ratios. Each figure is the least CPU time of some rounds, and our rounds and those of cel-python take
turns, so that a busy machine disturbs them alike. cel-python evaluates contexts that are ready; upstream converts the device each time, as the scheduler does.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dra_operator.cel import default_compiler
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.compiler import compile_selector
from dra_operator.cel.types.values import device_input
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import ResourceSlice, from_object
from tests.e2e.harness.build import built_oracle

from .arguments import RESULTS
from .celpython import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DRIVER = "gpu.example.com"
_A = f'device.attributes["{DRIVER}"]'
_MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("10Gi")) >= 0'
_VERSION = f'{_A}.driverVersion.isGreaterThan(semver("550.0.0"))'
_MATCHES = 'matches("^(Hopper|Blackwell)$")'

SELECTORS = {
    "(a)": f'device.driver == "{DRIVER}"',
    "(b)": f'device.driver == "{DRIVER}" && {_A}.type == "mig" && {_A}.profile == "1g.10gb"',
    "(c)": f'{_MEMORY} && {_A}.?architecture.orValue("").{_MATCHES} && {_VERSION}',
}
PLAIN = SELECTORS | {"(c)": f"{_MEMORY} && {_A}.architecture.{_MATCHES} && {_VERSION}"}
"""The same without the optional access, which cel-python cannot parse."""

NEW = f'{_A}.type == "mig" && {_A}.index >= 0'
EACH = 125
"""Devices of a slice."""


def device(number: int) -> dict[str, Any]:
    """A device with 12 attributes and 4 capacities, which meets all selectors: nothing is cut short."""
    attributes = {
        "type": {"string": "mig"},
        "profile": {"string": "1g.10gb"},
        "architecture": {"string": "Hopper"},
        "driverVersion": {"version": "560.35.3"},
        "cudaVersion": {"version": "12.6.0"},
        "uuid": {"string": f"MIG-{number:08}"},
        "parent": {"string": f"GPU-{number // 7:08}"},
        "index": {"int": number % 7},
        "minor": {"int": number},
        "brand": {"string": "Nvidia"},
        "ecc": {"bool": True},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }
    amounts = {"memory": "10Gi", "multiprocessors": "16", "copyEngines": "1", "jpegEngines": "1"}
    capacity = {name: {"value": amount} for name, amount in amounts.items()}
    return {"name": f"d{number}", "attributes": attributes, "capacity": capacity}


def slices(count: int) -> list[ResourceSlice]:
    """Slices with so many devices together."""
    return [
        from_object(
            ResourceSlice,
            {
                "metadata": {"name": f"s{first}", "uid": f"u{first}", "generation": 1},
                "spec": {
                    "driver": DRIVER,
                    "devices": [device(number) for number in range(first, min(first + EACH, count))],
                },
            },
        )
        for first in range(0, count, EACH)
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds for a device.

    Attributes:
        generated: of generated code, devices converted.
        interpreter: of cel-python's interpreter.
        upstream: of upstream's evaluation; None without the program.
    """

    generated: float
    interpreter: float
    upstream: float | None


def cost(name: str, rounds: int, oracle: Path | None) -> Cost:
    """Measure one selector; the engines take turns."""
    many = [device_input(DRIVER, each) for slice_ in slices(2000) for each in slice_.spec.devices]
    _, generated = compile_selector(SELECTORS[name], stored_expressions())
    assert generated is not None
    fill = generated.fill
    few = [device(number) for number in range(200)]
    theirs = interpreter(PLAIN[name], DRIVER, few)
    ours, others = [], []
    for _ in range(rounds):
        ours.append(_seconds(lambda: fill(many)) / len(many))
        others.append(_seconds(theirs) / len(few))
    return Cost(min(ours) * 1e6, min(others) * 1e6, _upstream(oracle, name, few))


def _seconds(run: Callable[[], object]) -> float:
    """Seconds of CPU: what else the machine does counts little."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        run()
        return time.process_time() - began
    finally:
        gc.enable()


def _upstream(oracle: Path | None, name: str, devices: Sequence[dict[str, Any]]) -> float | None:
    if oracle is None:
        return None
    published = [
        {"driver": DRIVER, "attributes": each["attributes"], "capacity": each["capacity"]} for each in devices
    ]
    question = json.dumps({"expression": SELECTORS[name], "devices": published})
    done = subprocess.run(
        [str(oracle), "cel", "-bench=200ms"], input=question, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(json.loads(done.stdout)["nsPerDevice"]) / 1000


@dataclass(frozen=True, slots=True)
class Fleet:
    """What selectors cost over a fleet.

    Attributes:
        converting: milliseconds to convert all devices, once for each generation.
        new: milliseconds for a new selector.
        known: milliseconds for a selector whose answers are kept.
        evaluated: devices that were evaluated for the latter.
    """

    converting: float
    new: float
    known: float
    evaluated: int


def fleet(count: int) -> Fleet:
    """Ask a new selector about all devices, and again."""
    compiler, published = default_compiler(), slices(count)
    converting = _seconds(lambda: [compiler.answers.inputs(slice_) for slice_ in published])

    def ask() -> None:
        selector = compiler.compile(NEW, DEFAULT_1_37)
        for slice_ in published:
            assert selector.matching(slice_) == (1 << len(slice_.spec.devices)) - 1

    new = _seconds(ask)
    before = compiler.answers.tally.evaluated
    known = _seconds(ask)
    return Fleet(converting * 1e3, new * 1e3, known * 1e3, compiler.answers.tally.evaluated - before)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write. Exit status 0, however fast it is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=50_000, help="of the fleet")
    parser.add_argument("--rounds", type=int, default=7, help="for each engine")
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "selectors.json", help="where the document is written"
    )
    arguments = parser.parse_args(argv)
    oracle = built_oracle()
    print(
        "selectors, µs for a device      generated  cel-python   ratio (goal >= 150)   upstream   ratio (goal <= 1)"
    )
    found: dict[str, Any] = {}
    for name in SELECTORS:
        costs = cost(name, arguments.rounds, oracle)
        faster = costs.interpreter / costs.generated
        line = f"  {name:<30}{costs.generated:>9.3f}{costs.interpreter:>12.1f}{faster:>8.0f}"
        if costs.upstream is not None:
            line += f"{costs.upstream:>25.3f}{costs.generated / costs.upstream:>8.3f}"
        print(line, flush=True)
        found[name] = {
            "generated": costs.generated,
            "celPython": costs.interpreter,
            "upstream": costs.upstream,
        }
    if oracle is None:
        print("  upstream is left out: python -m tests.e2e.harness.build builds its program")
    whole = fleet(arguments.devices)
    print(
        f"{arguments.devices} devices: a new selector {whole.new:.0f} ms (goal 100), the same again {whole.known:.1f} ms "
        f"with {whole.evaluated} evaluations; converting them, once, {whole.converting:.0f} ms"
    )
    found["fleet"] = {
        "devices": arguments.devices,
        "newMs": whole.new,
        "knownMs": whole.known,
        "evaluated": whole.evaluated,
        "convertingMs": whole.converting,
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
