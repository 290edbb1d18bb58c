"""What each alert is tried with: samples a minute that bring the trouble and end it, when it has to be quiet, and what it says when it fires.

Used by `test_alerts`, which has promtool play them. Nothing in here is read from the rules: what they would say is written down once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB: Final = {"namespace": "dra-operator", "job": "dra-operator"}
"""Labels of the scrape."""


def series(name: str, samples: str, pod: str = "one", **labels: str) -> dict[str, str]:
    """One series of one operator, in promtool's notation: `0x5 1x9` is six times 0, then ten times 1."""
    pairs = ", ".join(f'{key}="{value}"' for key, value in {**JOB, "pod": pod, **labels}.items())
    return {"series": f"{name}{{{pairs}}}", "values": samples}


@dataclass(frozen=True, slots=True)
class Trial:
    """One alert from quiet to firing to quiet again.

    Attributes:
        alert: its name.
        samples: the series.
        quiet: minutes at which it does not fire: before, while it is too early, and after.
        fires: the minute at which it does.
        summary: what it says then.
        labels: what it has then, beside those of the job and its severity.
        of_job: whether it knows the job.
    """

    alert: str
    samples: tuple[dict[str, str], ...]
    quiet: tuple[int, ...]
    fires: int
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)
    of_job: bool = True

    def document(self, rules: str, rule: Mapping[str, Any]) -> dict[str, Any]:
        """The test as promtool reads it.

        Args:
            rules: path of the rule file.
            rule: the alert in it, for its severity and for the words that hold no figure.
        """
        said = {**rule["annotations"], "summary": self.summary}
        found = {**(JOB if self.of_job else {}), **self.labels, "severity": rule["labels"]["severity"]}
        firing = {"exp_labels": found, "exp_annotations": said}
        checks: list[tuple[int, list[dict[str, Any]]]] = [(minute, []) for minute in self.quiet]
        checks.append((self.fires, [firing]))
        return {
            "rule_files": [rules],
            "evaluation_interval": "1m",
            "tests": [
                {
                    "interval": "1m",
                    "input_series": list(self.samples),
                    "alert_rule_test": [
                        {"eval_time": f"{minute}m", "alertname": self.alert, "exp_alerts": expected}
                        for minute, expected in checks
                    ],
                }
            ],
        }


def _decisions(slow: str) -> tuple[dict[str, str], ...]:
    """Decisions by how long they took: two upper bounds are enough."""
    name = "dra_operator_placement_duration_seconds_bucket"
    return (
        series(name, slow, le="1.0", result="plan"),
        series(name, "0+60x90", le="2.5", result="plan"),
        series(name, "0+60x90", le="+Inf", result="plan"),
    )


def _writes(failed: str, fine: str) -> tuple[dict[str, str], ...]:
    name = "dra_operator_writes_total"
    return (
        series(name, failed, verb="patch", resource="pods", code="500"),
        series(name, fine, verb="patch", resource="pods", code="200"),
        series(name, fine, verb="patch", resource="pods", code="409"),
    )


TRIALS: Final = (
    Trial(
        "DraOperatorDeviceHeldTwice",
        (series("dra_operator_devices_held_twice", "0x5 2x10 0x10"),),
        quiet=(5, 20),
        fires=7,
        summary="2 devices are allocated to two claims each",
    ),
    Trial(
        "DraOperatorDeviceLeak",
        (
            series("dra_operator_drift", "0x5 3x30 0x10", finding="AllocationUnused"),
            series("dra_operator_drift", "1x60", finding="SlicesMissing"),
        ),
        quiet=(5, 18, 40),
        fires=25,
        summary="3 times AllocationUnused: devices are held for nobody",
        labels={"finding": "AllocationUnused"},
    ),
    Trial(
        "DraOperatorDrift",
        (
            series("dra_operator_drift", "0x5 1x30 0x10", finding="SlicesMissing"),
            series("dra_operator_drift", "1x60", finding="AllocationUnused"),
            series("dra_operator_drift", "1x60", finding="DeviceHeldTwice"),
            series("dra_operator_drift", "1x60", finding="PoolStuck"),
        ),
        quiet=(5, 18, 40),
        fires=25,
        summary="1 times SlicesMissing",
        labels={"finding": "SlicesMissing"},
    ),
    Trial(
        "DraOperatorClaimWaitingLong",
        (series("dra_operator_oldest_waiting_pod_seconds", "0+60x70 0x10", reason="AllocationFailed"),),
        quiet=(60, 63, 75),
        fires=68,
        summary="A pod has waited 1h 8m 0s for its devices: AllocationFailed",
        labels={"reason": "AllocationFailed"},
    ),
    Trial(
        "DraOperatorPoolIncomplete",
        tuple(
            series(
                "dra_operator_pools", samples, pod, driver="gpu.example.com", owned=owned, condition=condition
            )
            for pod in ("one", "two")
            for owned, condition, samples in (
                ("true", "incomplete", "0x5 2x20 0x10"),
                ("false", "incomplete", "0x5 1x20 0x10"),
                ("true", "complete", "9x40"),
            )
        ),
        quiet=(5, 12, 30),
        fires=20,
        summary="3 pools of gpu.example.com are incomplete",
        labels={"driver": "gpu.example.com", "condition": "incomplete"},
    ),
    Trial(
        "DraOperatorNotLeading",
        (series("dra_operator_leader", "1x5 0x30"), series("dra_operator_leader", "0x15 1x20", "two")),
        quiet=(5, 7, 20),
        fires=10,
        summary="No operator leads",
    ),
    Trial(
        "DraOperatorAbsent",
        (series("dra_operator_leader", "1x5 stale _x15 1x10"),),
        quiet=(5, 9, 25),
        fires=15,
        summary="Prometheus sees no operator",
        of_job=False,
    ),
    Trial(
        "DraOperatorLeadersTooMany",
        (series("dra_operator_leader", "1x40"), series("dra_operator_leader", "0x5 1x10 0x20", "two")),
        quiet=(5, 7, 20),
        fires=10,
        summary="2 operators believe that they lead",
    ),
    Trial(
        "DraOperatorDecisionSlow",
        # From the tenth minute on half of the decisions take longer than a second, from the fiftieth on none.
        _decisions("0+60x10 630+30x39 1860+60x40"),
        quiet=(10, 20, 70),
        fires=40,
        summary="The slowest hundredth of decisions takes 2.47s and more",
    ),
    Trial(
        "DraOperatorWritesFail",
        _writes("0x60 15+15x60 900x120", "0+30x240"),
        quiet=(60, 66, 140),
        fires=110,
        summary="20% of the writes to the API server fail",
    ),
    Trial(
        "DraOperatorWritesFailSteadily",
        _writes("0x60 6+6x360 2166x120", "0+30x540"),
        quiet=(60, 120, 500),
        fires=421,
        summary="9.091% of the writes to the API server have failed for hours",
    ),
    Trial(
        "DraOperatorWatchStale",
        (
            series("dra_operator_feed_age_seconds", "0+60x20 5x20", kind="ResourceClaim"),
            series("dra_operator_feed_age_seconds", "55x40", kind="Pod"),
        ),
        quiet=(10, 14, 25),
        fires=18,
        summary="Nothing was heard of ResourceClaim for 18m 0s",
        labels={"kind": "ResourceClaim"},
    ),
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording rule gives at one minute."""

    record: str
    samples: tuple[dict[str, str], ...]
    minute: int
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self, rules: str) -> dict[str, Any]:
        """The test as promtool reads it."""
        pairs = ", ".join(f'{key}="{value}"' for key, value in {**JOB, **self.labels}.items())
        expected = {"labels": f"{self.record}{{{pairs}}}", "value": self.value}
        check = {"expr": self.record, "eval_time": f"{self.minute}m", "exp_samples": [expected]}
        return {
            "rule_files": [rules],
            "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": list(self.samples), "promql_expr_test": [check]}],
        }


_DEVICES = tuple(
    series("dra_operator_devices", f"{number}x20", pod, driver="gpu.example.com", owned="true", state=state)
    for pod in ("one", "two")
    for state, number in (("free", 2), ("allocated", 5), ("tainted", 1))
)
_RELEASES = tuple(
    series("dra_operator_pod_release_duration_seconds_bucket", f"0+{number}x20", le=bound)
    for bound, number in (("1.0", 50), ("5.0", 100), ("+Inf", 100))
)
_FAILING = _writes("0+30x400", "0+45x400")

RECORDS: Final = (
    Recorded("job:dra_operator_placement_duration_seconds:p99_5m", _decisions("0+60x90"), 20, 0.99),
    Recorded("job:dra_operator_pod_release_duration_seconds:p99_5m", _RELEASES, 15, 4.92),
    *(
        Recorded(f"job:dra_operator_writes_failed:ratio_rate{window}", _FAILING, 380, 0.25)
        for window in ("5m", "30m", "1h", "6h")
    ),
    Recorded(
        "job_driver:dra_operator_devices:max",
        _DEVICES[3:4],
        5,
        2,
        {"driver": "gpu.example.com", "owned": "true", "state": "free"},
    ),
    Recorded(
        "job_driver:dra_operator_devices_not_free:ratio", _DEVICES, 5, 0.75, {"driver": "gpu.example.com"}
    ),
)
