"""Which of the shipped rights a whole run of the end-to-end tier has used: `python -m tests.e2e.harness.rights FOLDER`, called by `make e2e`.

kube-apiserver's audit log tells it, at level Metadata and for the operator's accounts only (`AUDIT_POLICY`). Each control plane that was
started with `DRA_E2E_RIGHTS` in the environment leaves one file in that folder when it stops. A right that is given and was never used
is one too many, unless `UNSEEN` says why it cannot be seen; a request that was denied, and that no role would have allowed, is a duty that
the roles do not know of. Both are errors. That each right is needed, the scenarios show (`tests/scenarios/operator/test_rights.py`).
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = "DRA_E2E_RIGHTS"
"""Variable with the folder that collects; nothing is audited without it."""

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"
BASE = "base/rbac.yaml"
GENERATE = "components/generate-claims/rbac.yaml"
REPLACE = "components/replace-refused/rbac.yaml"
RELEASE = "release/rbac.yaml"
ACCOUNTS = {"dra-operator": (BASE, GENERATE, REPLACE), "dra-operator-release": (RELEASE,)}
"""ServiceAccounts of namespace dra-operator, and the files with their roles."""

PREFIX = "system:serviceaccount:dra-operator:"
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Metadata", "users": [PREFIX + account for account in ACCOUNTS]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource, as RBAC writes it."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.resource, self.group)))


BINDING = Right("resource.k8s.io", "resourceclaims/binding", "patch")
RACE = "only after a write that somebody else's has overtaken, which no run arranges; the scenarios do"
UNSEEN = {
    (
        "dra-operator",
        BINDING,
    ): "no request names it: Kubernetes asks for it besides, when the status of a claim is written (cp V-78)",
    ("dra-operator-release", BINDING): "the same",
    (
        "dra-operator",
        Right("coordination.k8s.io", "leases", "create"),
    ): "the harness makes the Lease (`ensure_lease`); the scenarios do not",
    (
        "dra-operator",
        Right("dra-operator.io", "allocationpolicies", "get"),
    ): "only before a rule of no policy is deleted; the scenarios have one",
    (
        "dra-operator",
        Right("scheduling.k8s.io", "podgroups", "get"),
    ): "only where a group went while no operator ran; the scenarios have one",
    ("dra-operator-release", Right("", "pods", "get")): RACE,
    ("dra-operator-release", Right("resource.k8s.io", "resourceclaims", "get")): RACE,
    ("dra-operator-release", Right("dra-operator.io", "allocationpolicies", "get")): RACE,
}
"""Rights that an account has and may not show in the audit log of a run, and why."""

EVERYBODYS = {Right("authorization.k8s.io", "selfsubjectaccessreviews", "create")}
"""Given to whoever is let in, by Kubernetes' own system:basic-user."""


def shipped(file: str) -> list[dict[str, Any]]:
    """The objects of a file of manifests."""
    return list(yaml.safe_load_all((MANIFESTS / file).read_text()))


def rights_of(file: str) -> list[Right]:
    """Each right that the roles of a file give, as often as it is given."""
    roles = (obj for obj in shipped(file) if obj["kind"] in {"ClusterRole", "Role"})
    return [right for role in roles for rule in role["rules"] for right in rights_in(rule)]


def rights_in(rule: dict[str, Any]) -> Iterator[Right]:
    """Each right that a rule gives."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield Right(group, resource, verb)


# --------------------------------------------------------------------------- collecting


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """What an account asked for, and whether it was let."""

    account: str
    right: Right
    allowed: bool


def uses(lines: Iterable[str]) -> Counter[Use]:
    """How often what was asked for, out of the lines of an audit log. A last line that was cut off by a crash is no news.

    A refusal by an admission plugin, a quota or a full claim is not one of rights.
    """
    found: Counter[Use] = Counter()
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        about = event.get("objectRef")
        if not about or "resource" not in about:
            continue  # discovery
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        right = Right(about.get("apiGroup", ""), resource, event["verb"])
        decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
        account = event["user"]["username"].removeprefix(PREFIX)
        found[Use(account, right, decision != "forbid")] += 1
    return found


def collect(log: Path) -> None:
    """Leave in the folder of `FOLDER` what an audit log tells; nothing without that, or without a log."""
    folder = os.environ.get(FOLDER)
    if not folder or not log.exists():
        return
    with log.open(errors="replace") as lines:
        found = uses(lines)
    rows = [
        [use.account, use.right.group, use.right.resource, use.right.verb, use.allowed, count]
        for use, count in sorted(found.items())
    ]
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{uuid4()}.json").write_text(json.dumps(rows))


def collected(folder: Path) -> Counter[Use]:
    """All that the control planes of a run have left."""
    found: Counter[Use] = Counter()
    for file in folder.glob("*.json"):
        for account, group, resource, verb, allowed, count in json.loads(file.read_text()):
            found[Use(account, Right(group, resource, verb), allowed)] += count
    return found


# --------------------------------------------------------------------------- comparing


def problems(found: Counter[Use]) -> list[str]:
    """What is given and not used, and what is wanted and not given; in words."""
    told = []
    for account, files in ACCOUNTS.items():
        given = {right for file in files for right in rights_of(file)}
        used = {use.right for use in found if use.account == account and use.allowed}
        wanted = {use.right for use in found if use.account == account and not use.allowed}
        told += [
            f"{account} may {right}, and never did in this run: take it out of manifests, test it, or say in UNSEEN why it is not seen"
            for right in sorted(given - used)
            if (account, right) not in UNSEEN
        ]
        told += [
            f"{account} asked for {right}, and no role gives it: grant it in manifests, or do not ask"
            for right in sorted(wanted - given - EVERYBODYS)
        ]
    return told


def main() -> int:
    """Exit status: 1 if there is a problem, or nothing was collected."""
    folder = Path(sys.argv[1])
    found = collected(folder)
    if not found:
        print(f"no control plane has left anything in {folder}: was {FOLDER} set?", file=sys.stderr)
        return 1
    for use, count in sorted(found.items()):
        print(f"{use.account:22} {use.right!s:55} {count:8} {'' if use.allowed else 'denied'}")
    told = problems(found)
    print("\n".join(told), file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
