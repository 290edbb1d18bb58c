"""What an audit log tells of the rights of the operator's roles."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.harness import rights
from tests.e2e.harness.rights import ACCOUNTS, PREFIX, UNSEEN, Right, Use

if TYPE_CHECKING:
    from pathlib import Path

NODES = Right("", "nodes", "list")


def line(verb: str, decision: str = "allow", account: str = "dra-operator", **about: str) -> str:
    event: dict[str, Any] = {
        "verb": verb,
        "user": {"username": PREFIX + account},
        "annotations": {"authorization.k8s.io/decision": decision},
    }
    return json.dumps(event | ({"objectRef": about} if about else {}))


def everything() -> Counter[Use]:
    """Each right of each account used once."""
    found = {
        Use(account, right, allowed=True)
        for account, files in ACCOUNTS.items()
        for file in files
        for right in rights.rights_of(file)
    }
    return Counter(use for use in found if (use.account, use.right) not in UNSEEN)


def test_lines_become_rights_and_what_is_no_resource_is_left_out() -> None:
    found = rights.uses(
        [
            line("list", resource="nodes", apiVersion="v1"),
            line("list", resource="nodes", apiVersion="v1"),
            line("patch", "forbid", resource="pods", subresource="status"),
            line("get"),
            '{"cut off',
        ]
    )
    assert found == {
        Use("dra-operator", NODES, allowed=True): 2,
        Use("dra-operator", Right("", "pods/status", "patch"), allowed=False): 1,
    }


def test_a_run_that_uses_all_and_no_more_is_in_order() -> None:
    assert rights.problems(everything()) == []


def test_a_right_that_nobody_uses_is_named() -> None:
    found = everything()
    del found[Use("dra-operator", NODES, allowed=True)]
    assert [text.partition(":")[0] for text in rights.problems(found)] == [
        "dra-operator may list nodes, and never did in this run"
    ]


def test_what_no_role_gives_is_named_and_what_one_gives_was_only_late() -> None:
    """A server that has just started knows no roles yet, and a removal takes them away at the end."""
    found = everything()
    found[Use("dra-operator", NODES, allowed=False)] = 1
    found[Use("dra-operator", Right("", "secrets", "list"), allowed=False)] = 1
    assert [text.partition(":")[0] for text in rights.problems(found)] == [
        "dra-operator asked for list secrets, and no role gives it"
    ]


def test_control_planes_leave_their_shares_and_all_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rights.FOLDER, str(tmp_path / "found"))
    log = tmp_path / "audit.log"
    rights.collect(log)
    assert not (tmp_path / "found").exists()
    log.write_text(line("list", resource="nodes") + "\n")
    rights.collect(log)
    rights.collect(log)
    assert rights.collected(tmp_path / "found") == {Use("dra-operator", NODES, allowed=True): 2}


def test_what_is_said_not_to_be_seen_is_given() -> None:
    given = {
        (account, right)
        for account, files in ACCOUNTS.items()
        for file in files
        for right in rights.rights_of(file)
    }
    assert given >= UNSEEN.keys()
    assert all(UNSEEN.values())


@pytest.mark.parametrize(
    ("given", "is_gate"),
    [
        ((), True),
        (("E2E=",), True),
        (("E2E=--numprocesses=4 --dist=loadfile -v",), True),
        (("E2E=-k takeover",), False),
        (("E2E=--deselect tests/e2e/test_user.py",), False),
    ],
)
def test_whole_runs_are_compared_with_the_roles_and_parts_are_not(
    given: tuple[str, ...],
    is_gate: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "e2e", *given]
    said = subprocess.run(
        command, cwd=rights.MANIFESTS.parent, capture_output=True, text=True, check=True
    ).stdout
    assert ("tests.e2e.harness.rights .e2e-rights" in said) == is_gate
    assert "tests.e2e.harness.contract" in said
