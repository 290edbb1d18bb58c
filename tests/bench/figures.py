"""The figures of the bench as one table, and what is made of them: percentiles of a run, the spread over runs, ratios of pairs.

Pure; `embedded` and `real` measure, `report` prints. A figure that has no row here cannot be reported.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Figures = dict[str, float]
"""Figures of one run, by the keys of `TABLE`."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a figure is.

    Attributes:
        text: for people.
        unit: of the number.
    """

    text: str
    unit: str


TABLE: Mapping[str, Row] = {
    "podsPerSecond": Row("pods placed", "pods/s"),
    "latencyP50": Row("creation to placed, median", "s"),
    "latencyP99": Row("creation to placed, 99 %", "s"),
    "operatorCpu": Row("CPU of the operator", "ms/pod"),
    "serverCpu": Row("CPU of the embedded server", "ms/pod"),
    "schedulerCpu": Row("CPU of kube-scheduler", "ms/pod"),
    "apiserverCpu": Row("CPU of kube-apiserver", "ms/pod"),
    "etcdCpu": Row("CPU of etcd", "ms/pod"),
    "controllerManagerCpu": Row("CPU of kube-controller-manager", "ms/pod"),
    "totalCpu": Row("CPU of all these", "ms/pod"),
    "allWrites": Row("writes at kube-apiserver, of everybody", "1/pod"),
    "loadCpu": Row("CPU of the load generator", "ms/pod"),
    "writesPerPod": Row("writes of the operator", "1/pod"),
    "conflictsPerPod": Row("of them conflicts", "1/pod"),
    "memoryAtRest": Row("memory of the operator at rest, nothing there", "MB"),
    "memoryAfter": Row("memory of the operator after the run", "MB"),
    "memoryPeak": Row("memory of the operator, peak", "MB"),
    "cpuAtRest": Row("CPU of the operator at rest", "ms/s"),
    "startEmpty": Row("start of the operator to ready, nothing there", "s"),
    "startFull": Row("start of the operator to ready, all that there", "s"),
    "startLarge": Row("start of the operator to ready", "s"),
    "memoryReady": Row("memory of the operator when ready", "MB"),
    "memoryStartPeak": Row("memory of the operator until ready, peak", "MB"),
    "startCpu": Row("CPU of the operator until ready", "s"),
}


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over several runs."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        found = sorted(values)
        return cls(found[0], statistics.median(found), found[-1])


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest value that so many per cent of the values do not exceed (nearest rank).

    Raises:
        ValueError: there is no value.
    """
    found = sorted(values)
    if not found:
        raise ValueError("no values")
    rank = math.ceil(percent / 100 * len(found))
    return found[max(rank, 1) - 1]


def rate(moments: Sequence[float], begin: float) -> float:
    """How many happened per second, from `begin` to the last moment."""
    return len(moments) / (max(moments) - begin)


def spreads(runs: Sequence[Figures]) -> dict[str, Spread]:
    """The spread of each figure that the runs have, in the order of the table."""
    return {key: Spread.of(run[key] for run in runs) for key in TABLE if all(key in run for run in runs)}


def ratios(ours: Sequence[Figures], theirs: Sequence[Figures], key: str) -> Spread:
    """Ours divided by theirs, run by run: what the machine did meanwhile falls out of a pair that ran one after the other."""
    return Spread.of(mine[key] / other[key] for mine, other in zip(ours, theirs, strict=True))
