"""What one candidate makes of a Lease, as a table: state and time in, the next act out. Several candidates: tests/properties/test_lease.py."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dra_operator.kube.lease import NAMESPACE, RELEASED, Act, Found, Record, Standing, Terms, own_namespace
from dra_operator.kube.listing import RawMeta

if TYPE_CHECKING:
    from pathlib import Path

TERMS = Terms(lease=15, renew=10, retry=2)
FRESH = Standing("me", TERMS)


def lease(holder: str, version: int = 1, duration: int | None = 15, transitions: int = 3) -> Found:
    meta = RawMeta("dra-operator", "dra-operator", "u1", str(version))
    return Found(meta, Record(holder, duration, transitions))


HELD = FRESH.seen(lease("", duration=RELEASED), 100).accepted(Act.TAKE, lease("me", 2), 100, 101)


@pytest.mark.parametrize(
    ("found", "later", "act"),
    [
        (None, 0, Act.CREATE),
        (lease("", duration=RELEASED), 0, Act.TAKE),
        (lease("other"), 0, Act.WAIT),
        (lease("other"), 14.9, Act.WAIT),
        (lease("other"), 15, Act.TAKE),
        (lease("other", duration=60), 59.9, Act.WAIT),
        (lease("other", duration=60), 60, Act.TAKE),
        (lease("other", duration=1), 14.9, Act.WAIT),
        (lease("other", duration=None), 14.9, Act.WAIT),
        (lease("other", duration=None), 15, Act.TAKE),
        (lease("", duration=15), 14.9, Act.WAIT),
        (lease("", duration=None), 14.9, Act.WAIT),
        (lease("", duration=15), 15, Act.TAKE),
    ],
)
def test_a_standby_waits_as_long_as_somebody_may_live(found: Found | None, later: float, act: Act) -> None:
    """From when it saw the last change, on its own clock; an empty holder is a release only in the form of one."""
    assert FRESH.seen(found, 1000).act(1000 + later) is act


def test_each_change_of_the_lease_is_a_sign_of_life_and_a_look_is_none() -> None:
    seen = FRESH.seen(lease("other", 1), 0).seen(lease("other", 1), 10)
    assert seen.act(15) is Act.TAKE
    assert seen.seen(lease("other", 2), 14).act(28.9) is Act.WAIT


def test_a_lease_deleted_by_hand_leaves_its_holder_the_time_to_notice() -> None:
    """Whoever knew the holder waits for it; whoever did not makes a new one, and does not write before the other must have stopped."""
    assert FRESH.seen(lease("other"), 0).seen(None, 5).act(14.9) is Act.WAIT
    created = FRESH.seen(None, 0).accepted(Act.CREATE, lease("me"), 0.1, 0.3)
    assert not created.leads(10.2)
    renewed = created.accepted(Act.RENEW, lease("me", 2), 8, 8.1)
    assert not renewed.leads(10.2)
    assert renewed.leads(10.4)


def test_a_lease_that_we_made_without_hearing_of_it_counts_from_when_it_is_seen() -> None:
    seen = FRESH.seen(lease("me"), 50)
    assert seen.act(50) is Act.TAKE
    taken = seen.accepted(Act.TAKE, lease("me", 2), 50, 50.2)
    assert not taken.leads(59.9)


def test_the_holder_may_write_from_before_its_renewal_was_sent() -> None:
    """Not from its answer: a standby may have seen the renewal long before."""
    assert HELD.held_from == 100
    assert HELD.leads(109.9)
    assert not HELD.leads(110)
    assert HELD.end == 115
    assert HELD.accepted(Act.RENEW, lease("me", 3), 104, 109).leads(113.9)


@pytest.mark.parametrize(
    ("found", "now", "act"),
    [
        (lease("me", 2), 109.9, Act.RENEW),
        (lease("me", 2), 110, Act.GIVE_UP),
        (lease("me", 9), 105, Act.RENEW),  # somebody put a label on it
        (lease("", 9), 105, Act.RENEW),  # somebody emptied it: standbys wait all the same
        (lease("other", 9), 105, Act.GIVE_UP),
        (None, 105, Act.GIVE_UP),
    ],
)
def test_the_holder_renews_until_it_cannot_be_sure(found: Found | None, now: float, act: Act) -> None:
    assert HELD.seen(found, now).act(now) is act


def test_who_gave_up_may_not_write() -> None:
    assert not HELD.given_up().leads(101)


def test_transitions_count_holders_and_renewals_leave_them() -> None:
    at = "2026-01-01T00:00:00.000001Z"
    assert HELD.spec(Act.RENEW, at) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": at,
    }
    taken = FRESH.seen(lease("other", transitions=3), 0).spec(Act.TAKE, at)
    assert (taken["leaseTransitions"], taken["acquireTime"]) == (4, at)
    assert FRESH.spec(Act.CREATE, at)["leaseTransitions"] == 0
    emptied = HELD.seen(lease("", 9, transitions=7), 105)
    assert emptied.spec(Act.RENEW, at)["leaseTransitions"] == 8


def test_the_duration_that_others_read_is_never_shorter_than_ours() -> None:
    assert replace(FRESH, terms=Terms(1.5, 1, 0.1)).spec(Act.CREATE, "")["leaseDurationSeconds"] == 2


def test_the_namespace_is_the_pods_own(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert own_namespace(file) == NAMESPACE
    file.write_text("elsewhere\n")
    assert own_namespace(file) == "elsewhere"
