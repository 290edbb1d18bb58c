from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from dra_operator.kube import KINDS, Timing, timestamp
from dra_operator.kube.kinds import describe
from dra_operator.kube.timing import Retries


@pytest.mark.parametrize(
    ("kind", "arguments", "path"),
    [
        ("Pod", (), "/api/v1/pods"),
        ("Pod", ("ns",), "/api/v1/namespaces/ns/pods"),
        ("Pod", ("ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status"),
        ("Node", ("", "n1"), "/api/v1/nodes/n1"),
        ("ResourceClaim", ("ns", "c"), "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"),
        ("DeviceClass", ("ignored", "gpu"), "/apis/resource.k8s.io/v1/deviceclasses/gpu"),
        ("Pod", ("ns", "a/../b"), "/api/v1/namespaces/ns/pods/a%2F..%2Fb"),
    ],
)
def test_paths(kind: str, arguments: tuple[str, ...], path: str) -> None:
    assert KINDS[kind].path(*arguments) == path


@pytest.mark.parametrize(
    ("method", "path", "described"),
    [
        ("GET", "/api/v1/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces/ns/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces/ns/pods/p", ("get", "pods")),
        ("PATCH", "/api/v1/namespaces/ns/pods/p", ("patch", "pods")),
        (
            "PATCH",
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status",
            ("patch", "resourceclaims/status"),
        ),
        ("DELETE", "/apis/resource.k8s.io/v1/devicetaintrules/r", ("delete", "devicetaintrules")),
        ("POST", "/api/v1/namespaces/ns/events", ("create", "events")),
        ("GET", "/version", ("get", "other")),
        ("GET", "/apis/resource.k8s.io/v1", ("get", "other")),
        ("GET", "/", ("get", "other")),
        ("GET", "/api/v1/namespaces/ns/secrets/s", ("get", "other")),
    ],
)
def test_requests_are_described_by_verb_and_resource(
    method: str, path: str, described: tuple[str, str]
) -> None:
    assert describe(method, path) == described


def test_waits_grow_to_their_cap_and_start_again_after_success() -> None:
    retries = Retries(Timing(uniform=lambda _, high: high), base=1, cap=10)
    grown = [retries.next_delay() for _ in range(5)]
    retries.reset()

    assert [*grown, retries.next_delay()] == [1, 2, 4, 8, 10, 1]


def test_waits_are_at_least_as_long_as_asked() -> None:
    retries = Retries(Timing(uniform=lambda low, _: low))

    assert retries.next_delay(5) == 5


def test_timestamps_are_utc_without_fractions() -> None:
    east = timezone(timedelta(hours=2))

    assert timestamp(datetime(2026, 11, 1, 12, 0, 0, 999, tzinfo=UTC)) == "2026-11-01T12:00:00Z"
    assert timestamp(datetime(2026, 11, 1, 12, 0, tzinfo=east)) == "2026-11-01T10:00:00Z"
