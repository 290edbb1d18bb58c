"""What a new operator does about objects that the server does not show, or not so that they can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.access import Access
from dra_operator.controllers.takeover import REFUSALS, Takeover
from dra_operator.errors import ApiConflict, ApiForbidden, ApiUnavailable, InvalidObject
from dra_operator.kube.timing import Backoff
from dra_operator.model import ResourceClaim, from_object
from dra_operator.model.marks import MARK

if TYPE_CHECKING:
    from dra_operator.errors import DraError

UNREADABLE = InvalidObject("ResourceClaim ns/c", "status.allocation", "not what it should be")


METADATA = {
    "name": "c",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "1",
    "annotations": {MARK: "x"},
}


class Server:
    """The claim has changed since it was listed; reads of it fail in these ways, in turn."""

    def __init__(self, *failures: DraError) -> None:
        self.reads = 0
        self._failures = failures

    async def patch(self, *_: Any, **__: Any) -> Any:
        raise ApiConflict("the object has been modified", status=409)

    async def get(self, *_: Any) -> Any:
        self.reads += 1
        raise self._failures[self.reads - 1]


class Refusing:
    """Whoever wants to touch the claim is told of a conflict, although it has not changed."""

    def __init__(self) -> None:
        self.tries = 0

    async def patch(self, *_: Any, **__: Any) -> Any:
        self.tries += 1
        raise ApiConflict("not while I am here", status=409)

    async def get(self, *_: Any) -> Any:
        return from_object(ResourceClaim, {"metadata": METADATA, "spec": {}})


def a_marked_claim() -> Cluster:
    cluster = Cluster()
    cluster.apply("ADDED", from_object(ResourceClaim, {"metadata": METADATA, "spec": {}}))
    return cluster


async def test_conflicts_without_end_about_what_does_not_change_are_told_and_keep_nobody_from_working(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = a_marked_claim()
    server: Any = Refusing()

    await Takeover(Access(server, server, cluster), cluster, Backoff(0.0001, cap=0.001)).run()

    assert server.tries == REFUSALS
    assert "may come late, as it cannot be touched: not while I am here" in caplog.text


@pytest.mark.parametrize(
    ("failures", "reads"),
    [
        ((UNREADABLE,), 1),
        ((ApiForbidden("no such right", status=403),), 1),
        ((ApiUnavailable("away"), UNREADABLE), 2),
    ],
    ids=["unreadable", "forbidden", "away, then unreadable"],
)
async def test_an_object_that_cannot_be_read_keeps_nobody_from_working(
    failures: tuple[DraError, ...], reads: int
) -> None:
    cluster = a_marked_claim()
    server: Any = Server(*failures)

    await Takeover(Access(server, server, cluster), cluster, Backoff(0.001)).run()

    assert server.reads == reads
