"""What `why` answers: an explanation as frozen values that JSON can hold, with stable codes (codes.py). Nothing here decides anything.

Sizes are bounded whatever the cluster: rows and names beyond the bounds are counted, not told.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Told(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Of all of these."""

    def to_object(self) -> dict[str, Any]:
        """Its JSON form; what is empty is left out."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Fact(Told, frozen=True):
    """Why some devices do not serve a request.

    Args:
        code: see codes.py.
        count: devices.
        detail: selector, taint, counter and by how much it is short, and the like.
        clause: the part of the selector that fails, where it has several.
        saw: what the devices have instead, with how many of them have it.
        by: who holds them: claim, pods, since when.
        example: the first of the devices, driver/pool/device.
    """

    code: str
    count: int
    detail: str = ""
    clause: str = ""
    saw: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    example: str = ""


class Row(Told, frozen=True):
    """Pools of which the same is to be said.

    Args:
        driver: of the pools.
        pools: how many there are; the figures below are of each of them.
        pool: the first.
        nodes: the first of their nodes; empty for devices that all nodes reach, `several` for those of a selector.
        seen: devices.
        free: those that nothing speaks against.
        facts: why the others cannot be had.
        node_problem: what keeps the pod off those nodes besides devices, as a code, and in words.
    """

    driver: str
    pools: int
    pool: str
    nodes: tuple[str, ...]
    seen: int
    free: int
    facts: tuple[Fact, ...] = ()
    node_problem: str = ""


class Asked(Told, frozen=True):
    """What became of one request, or alternative.

    Args:
        claim: `namespace/name`.
        request: `name`, or `name/alternative`.
        device_class: its class.
        wanted: devices on one node; 0 for all.
        seen: devices of the drivers that the class takes devices of, or of all if it takes none.
        matching: those that meet the selectors.
        free: those that nothing speaks against.
        best_node: the node that has most of them, of those that can take the pod if there are any; empty if none has one.
        best: how many it has.
        facts: why the others cannot be had, over all pools.
        rows: the same by pool.
        more_rows: rows that are left out.
    """

    claim: str
    request: str
    device_class: str
    wanted: int
    seen: int
    matching: int
    free: int
    best_node: str = ""
    best: int = 0
    facts: tuple[Fact, ...] = ()
    rows: tuple[Row, ...] = ()
    more_rows: int = 0


class Change(Told, frozen=True):
    """A change with which the pod could be served; a search has found it so.

    Args:
        code: see codes.py.
        text: what to do.
        node: where the pod would be served then.
        claim, request: what the change is about.
        clause: that is dropped.
        value: the toleration, amounts, claim, pool, constraint or number that the change is about.
        like: the device to add more of.
        spec: of the claim, after the change; empty if it stays as it is.
    """

    code: str
    text: str
    node: str
    claim: str = ""
    request: str = ""
    clause: str = ""
    value: str = ""
    like: str = ""
    spec: dict[str, Any] = {}


class Held(Told, frozen=True):
    """What a claim holds."""

    claim: str
    devices: tuple[str, ...]
    node: str = ""
    pods: tuple[str, ...] = ()
    since: str = ""


class Why(Told, frozen=True):
    """The explanation.

    Args:
        kind: Pod or ResourceClaim.
        namespace, name: of what is explained.
        verdict: `served`, `now` (could be allocated), `not now`, `never`, or `gave up`.
        code: the cause; see codes.py.
        cause: in words.
        remedy: what to do.
        nodes: why nodes cannot take the pod, most nodes first: code, number of nodes, text.
        asked: a request each.
        together: which free devices do not go with which others, on the node that comes closest.
        nearest: which node comes closest, in words.
        changes: the smallest first; one of a kind.
        trials: searches on changed input.
        held: by claims of the pod.
        notes: what else is to be known.
    """

    kind: str
    namespace: str
    name: str
    verdict: str
    code: str
    cause: str
    remedy: str
    nodes: tuple[Fact, ...] = ()
    asked: tuple[Asked, ...] = ()
    together: tuple[Fact, ...] = ()
    nearest: str = ""
    changes: tuple[Change, ...] = ()
    trials: int = 0
    held: tuple[Held, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_served(self) -> bool:
        """Whether the claims hold devices, or could be given some now."""
        return self.verdict in {SERVED, NOW}

    @property
    def first_line(self) -> str:
        """Verdict, cause and remedy."""
        about = f"{self.kind} {self.namespace}/{self.name}"
        end = f" Remedy: {self.remedy}." if self.remedy else ""
        return f"{about}: {self.verdict}: {self.cause.rstrip('.')}.{end}"


SERVED, NOW, NOT_NOW, NEVER, GAVE_UP = "served", "now", "not now", "never", "gave up"
"""Verdicts."""
