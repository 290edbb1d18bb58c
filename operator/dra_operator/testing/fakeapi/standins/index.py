"""Indexes that spare the stand-ins a walk over all pods at every change.

Made by the stand-ins that need them. Kept by listening to the store; never asked for anything but keys.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import controller_of, key_of, meta
from dra_operator.testing.fakeapi.standins.resources import CLAIMS, PODS, claim_name, pod_claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dra_operator.testing.fakeapi.objects import Key, Obj, Resource
    from dra_operator.testing.fakeapi.store import Change, Store

Terms = tuple[str, ...]


class Index:
    """Keys of objects of one resource by the terms that a function finds in them."""

    def __init__(self, store: Store, resource: Resource, terms: Callable[[Obj], Iterator[Terms]]) -> None:
        self._terms = terms
        self._keys: dict[Terms, set[Key]] = defaultdict(set)
        for record in store.items(resource):
            self._add(record.obj)
        store.listen(self._changed, resource)

    def keys(self, *term: str) -> list[Key]:
        """The keys of the objects in which `term` was found, in order."""
        return sorted(self._keys.get(term, ()))

    def _add(self, obj: Obj) -> None:
        for term in self._terms(obj):
            self._keys[term].add(key_of(obj))

    def _changed(self, change: Change) -> None:
        if change.previous is not None:
            for term in self._terms(change.previous.obj):
                self._keys[term].discard(key_of(change.previous.obj))
        if change.type != "DELETED":
            self._add(change.record.obj)


def pods_by_claim(store: Store) -> Index:
    """Pods by namespace and name of a claim, in spec or status."""

    def terms(pod: Obj) -> Iterator[Terms]:
        for entry in pod_claims(pod):
            name, _known = claim_name(pod, entry)
            if name is not None:
                yield meta(pod)["namespace"], name

    return Index(store, PODS, terms)


def pods_by_template(store: Store) -> Index:
    """Pods by namespace and name of a template."""

    def terms(pod: Obj) -> Iterator[Terms]:
        for entry in pod_claims(pod):
            if entry.get("resourceClaimTemplateName"):
                yield meta(pod)["namespace"], entry["resourceClaimTemplateName"]

    return Index(store, PODS, terms)


def claims_by_owner(store: Store) -> Index:
    """Claims by the uid of their controller."""

    def terms(claim: Obj) -> Iterator[Terms]:
        owner = controller_of(claim)
        if owner is not None:
            yield (str(owner.get("uid")),)

    return Index(store, CLAIMS, terms)
