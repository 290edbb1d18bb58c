"""The operator as the bench runs it: a process of its own, its counters read from `/metrics`; and kube-apiserver's counters.

Used by `embedded`; the real control plane's harness has its own way to start one, so `real` uses the counters only.
"""

from __future__ import annotations

import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Self

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.harness.cluster import free_port
from tests.e2e.harness.process import Process

from .processes import NotReadyError, await_ready

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CONFLICT = "409"
WRITES = frozenset({"APPLY", "DELETE", "PATCH", "POST", "PUT"})
SERVED = "apiserver_request_total"


class Subject:
    """One operator process; use as a context manager.

    Attributes:
        url: of `/readyz` and `/metrics`.
        start_seconds: from its start to `/readyz`.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *flags: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"operator-{port}.log"
        self.start_seconds = 0.0
        # Ready then means that it works; an election costs a write every two seconds, whatever the load.
        where = [
            f"--kubeconfig={kubeconfig}",
            "--http-host=127.0.0.1",
            f"--http-port={port}",
            "--leader-elect=false",
        ]
        self._command = [sys.executable, "-m", "dra_operator", "run", *where, *flags]

    def __enter__(self) -> Self:
        begin = time.monotonic()
        self._process = Process("dra-operator", self._command, self.log, {})
        try:
            self.start_seconds = await_ready(self.url, begin, lambda: self._process.exit_status is None)
        except BaseException as error:
            self._process.kill()
            error.add_note(f"the end of its log:\n{self._process.log_tail()}")
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.stop(grace=30)
        if kind is None and self._process.exit_status != 0:
            raise NotReadyError(
                f"the operator ended with status {self._process.exit_status}:\n{self._process.log_tail()}"
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid


def writes(text: str) -> tuple[float, float]:
    """Writes so far, and how many of them were conflicts, out of the text of `/metrics`."""
    samples = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "dra_operator_writes_total"
    ]
    conflicts = sum(sample.value for sample in samples if sample.labels["code"] == CONFLICT)
    return sum(sample.value for sample in samples), conflicts


def served_writes(text: str) -> float:
    """Writes that kube-apiserver has answered so far, whoever sent them, out of the text of its `/metrics`."""
    # Of its thousands of lines only those that count: the parser takes seconds for all.
    lines = "\n".join(line for line in text.splitlines() if line.startswith(f"{SERVED}{{"))
    families = text_string_to_metric_families(f"# TYPE {SERVED} counter\n{lines}\n")
    samples = (sample for family in families for sample in family.samples)
    return sum(sample.value for sample in samples if sample.labels["verb"] in WRITES)


def scrape(url: str) -> str:
    """The text of `/metrics`."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


class Writes:
    """Writes of an operator since this was made."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before = writes(scrape(url))

    def per_pod(self, pods: int) -> dict[str, float]:
        """Writes and conflicts a pod."""
        total, conflicts = writes(scrape(self._url))
        return {
            "writesPerPod": (total - self._before[0]) / pods,
            "conflictsPerPod": (conflicts - self._before[1]) / pods,
        }
