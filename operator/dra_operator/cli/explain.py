"""`kubectl dra explain`: why a pod or claim is not served, and the smallest change that would work. `dra_operator.explain` tells; nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from dra_operator.words import akin, listed

from .seen import files_flag, uncollected
from .shown import dumped, print_table
from .where import located, or_snapshot
from .whole import Whole, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.explain import Asked, Fact, Row, Why
    from dra_operator.model import Pod, ResourceClaim

    from .where import Where

Shown = str | tuple[Sequence[str], Sequence[Sequence[str]]]
"""A line, or a table: headings and cells."""

SERVED, NOT_SERVED, WRONG_INPUT = 0, 3, 2
"""Exit status."""

REASONS: Final = 3
"""Reasons that a cell tells, without `-o wide`. Arbitrary."""


class NotExplained(click.ClickException):
    """There is nothing to explain: not to be mistaken for the exit status of what is not served."""

    exit_code = WRONG_INPUT


@click.command("explain")
@located
@or_snapshot
@files_flag
@click.argument("thing", metavar="POD|CLAIM")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to show it.",
)
def explain_command(where: Where, named: tuple[str, ...], thing: str, output: str) -> None:
    """Tell why a pod or claim is not served: cause and remedy, figures for each request, the smallest change that would work. Changes nothing.

    Named as pod/NAME, claim/NAME, or NAME for a pod, or else a claim, of that name; [namespace/]NAME is taken, too. Each change that is proposed was tried by
    the allocator on input so changed. All pools are the operator's unless there are AllocationPolicies, or the pod waits for kube-scheduler.

    Exit status: 0 served, or could be now; 3 not; 2 there is no such thing, or it cannot be read.
    """
    with uncollected():
        found = _explained(_seen(where, named), where.namespace, thing)
    if output in {"json", "yaml"}:
        click.echo(dumped(found.to_object(), output))
    else:
        for line in lines(found, wide=output == "wide"):
            click.echo(line) if isinstance(line, str) else print_table(*line)
    sys.exit(SERVED if found.is_served else NOT_SERVED)


def _seen(where: Where, named: Sequence[str]) -> Whole:
    try:
        return read(where, named)
    except click.UsageError:
        raise
    except click.ClickException as error:
        raise NotExplained(error.message) from error


def _explained(seen: Whole, namespace: str | None, thing: str) -> Why:
    from dra_operator.explain import why_claim, why_pod
    from dra_operator.model import Pod

    found = _find(seen, namespace, thing)
    return (
        why_pod(seen.cluster, seen.features, found)
        if isinstance(found, Pod)
        else why_claim(seen.cluster, seen.features, found)
    )


def _find(seen: Whole, namespace: str | None, thing: str) -> Pod | ResourceClaim:
    """The pod or claim.

    Raises:
        NotExplained: there is none; tells which name may be meant.
    """
    kind, _, name = thing.rpartition("/") if thing.count("/") <= 1 else thing.partition("/")
    kinds = {"pod": ("pods",), "pods": ("pods",), "claim": ("claims",), "claims": ("claims",)}
    kinds |= {"resourceclaim": ("claims",), "resourceclaims": ("claims",)}
    if kind and kind not in kinds:
        namespace, kind = kind, ""
    if "/" in name:
        namespace, _, name = name.partition("/")
    searched = kinds.get(kind, ("pods", "claims"))
    tables: dict[str, dict[str, Pod | ResourceClaim]] = {
        "pods": dict(seen.cluster.pods),
        "claims": dict(seen.cluster.claims),
    }
    own = seen.own if namespace is None else namespace
    for table in searched:
        for key, one in tables[table].items():
            if key == f"{own}/{name}" or (not own and key.endswith(f"/{name}")):
                return one
    raise NotExplained(_unknown(name, own, {key for table in searched for key in tables[table]}))


def _unknown(name: str, namespace: str, keys: set[str]) -> str:
    elsewhere = sorted(key for key in keys if key.endswith(f"/{name}"))
    if elsewhere:
        return f"There is no {name} in namespace {namespace}, but there is {listed(elsewhere, REASONS)}: name it with --namespace"
    near = akin(
        name, {key.rpartition("/")[2] for key in keys if not namespace or key.startswith(f"{namespace}/")}
    )
    meant = f"did you mean {near}?" if near else "kubectl dra claims lists the claims"
    return f"There is neither a pod nor a claim called {name} in namespace {namespace or 'any'}: {meant}"


# --- text


def lines(found: Why, *, wide: bool) -> Iterator[Shown]:
    """Lines and tables."""
    yield found.first_line
    for held in found.held:
        pods = f", for {', '.join(held.pods)}" if held.pods else ""
        yield f"Claim {held.claim} holds {', '.join(held.devices)}{pods}"
    for one in found.asked:
        yield from _request(one, wide=wide)
    if found.nodes and wide:
        yield ""
        yield ("CODE", "NODES", "WHY"), [(fact.code, str(fact.count), fact.detail) for fact in found.nodes]
    yield from _ending(found)
    for note in found.notes:
        yield f"Note: {note}."


def _request(one: Asked, *, wide: bool) -> Iterator[Shown]:
    wanted = f"{one.wanted} wanted" if one.wanted else "all wanted"
    yield ""
    yield (
        f"Request {one.request} of claim {one.claim} (class {one.device_class}): {wanted} on one node; {one.seen} seen, {one.matching} "
        f"matching, {one.free} free"
    )
    if one.rows:
        yield _table(one, wide=wide)
    if one.more_rows:
        yield f"… and {one.more_rows} more group(s) of pools"


def _ending(found: Why) -> Iterator[str]:
    """What comes closest."""
    for fact in found.together:
        yield f"Free, but not together: {fact.detail} ({fact.count} device(s), such as {fact.example})"
    if found.nearest:
        yield ""
        yield f"Nearest: {found.nearest}"
    for change in found.changes:
        yield f"Would work: {change.text} ({change.code}; then on node {change.node})"
    if found.trials:
        yield f"Searches on changed input: {found.trials}. What would work was found by one of them."


def _table(one: Asked, *, wide: bool) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    headings = ("POOLS", "NODES", "SEEN", "FREE", "WHY NOT THE OTHERS")
    return headings, [_row(row, wide=wide) for row in one.rows]


def _row(row: Row, *, wide: bool) -> Sequence[str]:
    from dra_operator.explain.why import in_words

    most = len(row.facts) if wide else REASONS
    said = [in_words(fact) if wide else in_words(_brief(fact)) for fact in row.facts[:most]]
    rest = sum(fact.count for fact in row.facts[most:])
    told = "; ".join(
        [*([row.node_problem] if row.node_problem else []), *said, *([f"{rest} for others"] if rest else [])]
    )
    pools = f"{row.driver}/{row.pool}" + (f" and {row.pools - 1} like it" if row.pools > 1 else "")
    return pools, listed(row.nodes, 1) or "any", str(row.seen), str(row.free), told


def _brief(fact: Fact) -> Fact:
    """Without holders that are many."""
    from msgspec.structs import replace as changed

    return changed(fact, by=fact.by[:1], saw=fact.saw[:2])
