"""Objects read over one connection, where a kubectl process would do it for a tenth of a second of CPU: tests look at them ten thousand times.

Used by `kubectl` alone, which asks kubectl itself wherever this has no answer: refusals, words and odd flags stay kubectl's. An answer is
what `kubectl get --output=json` prints.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from tests.e2e.harness.rawapi import RawApiError, SteadyRawApi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Object = dict[str, Any]

QUERIES = {"--selector=": "labelSelector", "--field-selector=": "fieldSelector"}
EVERYWHERE = "--all-namespaces"
BY_AGE = "--sort-by=.metadata.creationTimestamp"


class NoAnswerError(Exception):
    """kubectl has to be asked."""


@dataclass(frozen=True, slots=True)
class _Resource:
    """A kind as the server names it."""

    group_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str) -> str:
        """Of the collection; in all namespaces for an empty one."""
        root = "/apis/" if "/" in self.group_version else "/api/"
        inside = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{root}{self.group_version}{inside}/{self.plural}"


class Reading:
    """Reads as the user of a kubeconfig, in the thread that made it."""

    def __init__(self, kubeconfig: Path) -> None:
        try:
            self._api = SteadyRawApi(kubeconfig)
        except (ValueError, LookupError, OSError) as error:  # a kubeconfig that this harness has not written
            raise NoAnswerError from error
        self._resources: dict[str, _Resource] = {}
        weakref.finalize(self, self._api.close)  # threads end

    def find(self, kind: str, name: str, namespace: str | None) -> Object | None:
        """One object; None if there is none.

        Raises:
            NoAnswerError: ask kubectl.
        """
        resource = self._resource(kind, namespace)
        try:
            return _shown(self._get(f"{resource.path(namespace or '')}/{quote(name, safe='')}"))
        except RawApiError as error:
            if error.status == HTTPStatus.NOT_FOUND and f'"{name}" not found' in str(error):
                return None
            raise NoAnswerError from error

    def list(self, kind: str, flags: Sequence[str], namespace: str | None) -> list[Object]:
        """All objects of a kind.

        Raises:
            NoAnswerError: ask kubectl.
        """
        everywhere = EVERYWHERE in flags
        resource = self._resource(kind, "" if everywhere else namespace)
        path = resource.path("" if everywhere else namespace or "")
        query = dict(_queries(flag for flag in flags if flag not in {EVERYWHERE, BY_AGE}))
        try:
            found = self._get(f"{path}?{urlencode(query)}")
        except RawApiError as error:
            raise NoAnswerError from error
        typed = {"apiVersion": resource.group_version, "kind": resource.kind}
        items = [_shown({**typed, **item}) for item in found["items"]]
        if BY_AGE in flags:
            items.sort(key=lambda item: item["metadata"]["creationTimestamp"])
        return items

    def _resource(self, kind: str, namespace: str | None) -> _Resource:
        if kind not in self._resources and "," not in kind:
            try:
                self._discover()
            except RawApiError as error:
                raise NoAnswerError from error
        resource = self._resources.get(kind)
        if resource is None or (resource.namespaced and namespace is None):
            raise NoAnswerError
        return resource

    def _discover(self) -> None:
        """As kubectl does: the first group that has the name counts, the core group before all, and of a group its preferred version."""
        versions = ["v1"]
        for group in self._get("/apis")["groups"]:
            preferred = group["preferredVersion"]["groupVersion"]
            others = [version["groupVersion"] for version in group["versions"]]
            versions += dict.fromkeys([preferred, *others])
        for version in versions:
            root = "/apis/" if "/" in version else "/api/"
            for found in self._get(f"{root}{version}")["resources"]:
                if "/" not in found["name"]:
                    self._know(version, found)

    def _know(self, version: str, found: Object) -> None:
        resource = _Resource(version, found["kind"], found["name"], found["namespaced"])
        names = {found["name"], found["singularName"], found["kind"].lower(), *found.get("shortNames", ())}
        group = version.rpartition("/")[0]
        for name in names:
            self._resources.setdefault(name, resource)
            self._resources.setdefault(f"{name}.{group}", resource)

    def _get(self, path: str) -> Object:
        try:
            try:
                return self._api.get(path)
            except OSError:
                self._api.close()  # the server had ended the connection, or is a new one
                return self._api.get(path)
        except (OSError, ValueError) as error:
            self._api.close()
            raise NoAnswerError from error


def _queries(flags: Iterator[str]) -> Iterator[tuple[str, str]]:
    for flag in flags:
        beginning = next((known for known in QUERIES if flag.startswith(known)), None)
        if beginning is None:
            raise NoAnswerError
        yield QUERIES[beginning], flag.removeprefix(beginning)


def _shown(obj: Object) -> Object:
    """Without what kubectl shows on demand only."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


class _Kept(threading.local):
    """Of this thread: connections are for one."""

    def __init__(self) -> None:
        self.by_kubeconfig: dict[tuple[Path, int], Reading] = {}


_kept = _Kept()


def reading(kubeconfig: Path) -> Reading:
    """This thread's connection for a kubeconfig, as it is now.

    Raises:
        NoAnswerError: ask kubectl.
    """
    known = _kept.by_kubeconfig
    try:
        key = (kubeconfig, kubeconfig.stat().st_mtime_ns)
    except OSError as error:
        raise NoAnswerError from error
    if key not in known:
        known[key] = Reading(kubeconfig)
    return known[key]
