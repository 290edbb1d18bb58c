"""Prometheus and promtool, to look at /metrics as an installation does: scraped every second, queried, linted.

Used by the tests of metrics and of the dashboard. Everything is on loopback and below the control plane's folder.
"""

from __future__ import annotations

import json
import math
import subprocess
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.harness.cluster import StartError, free_port
from tests.e2e.harness.probe import answers_ok
from tests.e2e.harness.process import Process
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from tests.e2e.harness.build import PrometheusBinaries
    from tests.e2e.harness.cluster import ControlPlane

SCRAPE_SECONDS = 1

Series = tuple[dict[str, str], float]
"""Labels and value."""


class Prometheus:
    """A Prometheus server; `Prometheus.start()` makes one that is ready, a `with` block ends it."""

    def __init__(
        self,
        control_plane: ControlPlane,
        binaries: PrometheusBinaries,
        targets: Mapping[str, Mapping[str, str]],
        rules: Path | None = None,
    ) -> None:
        """Starts it.

        Args:
            control_plane: Whose session it ends with.
            binaries: As built.
            targets: `host:port` to scrape, and the labels of each.
            rules: A rule file; evaluated as often as is scraped.
        """
        port = free_port()
        folder = control_plane.folder / f"prometheus-{port}"
        folder.mkdir()
        self.url = f"http://127.0.0.1:{port}"
        command = [
            *control_plane.guard_command,
            str(binaries.prometheus),
            f"--config.file={_configuration(folder, targets, rules)}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
        self._process = Process("prometheus", command, folder / "log", {})

    @classmethod
    def start(
        cls,
        control_plane: ControlPlane,
        binaries: PrometheusBinaries,
        targets: Mapping[str, Mapping[str, str]],
        rules: Path | None = None,
    ) -> Self:
        """Starts it and waits until all targets have been scraped.

        Raises:
            StartError: It ended at once; the text holds what it wrote.
            NotInTimeError: It is not ready, or a target is not up, in time.
        """
        server = cls(control_plane, binaries, targets, rules)
        try:
            wait_until(server.ready, "Prometheus ready")
            wait_until(
                lambda: server.query("up == 1"), "targets up", accept=lambda up: len(up) == len(targets)
            )
        except BaseException:
            server.stop()
            raise
        return server

    def ready(self) -> bool:
        """Whether it answers. Raises: StartError: It has ended."""
        if self._process.exit_status is not None:
            raise StartError(f"Prometheus ended:\n{self._process.log_tail()}")
        return answers_ok(f"{self.url}/-/ready")

    def query(self, expression: str) -> list[Series]:
        """The series of an instant query now; those without a number (NaN) are left out.

        Raises:
            AssertionError: It cannot be evaluated; the text holds Prometheus' words.
        """
        found = self._get("query", query=expression)["result"]
        series = [(item["metric"], float(item["value"][1])) for item in found]
        return [item for item in series if not math.isnan(item[1])]

    def rules(self) -> list[dict[str, Any]]:
        """All rules: `name`, `query`, `health` (`ok` once one was evaluated), `lastError`, and `state` of alerts."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def stop(self) -> None:
        """Ends it."""
        self._process.stop()

    def _get(self, what: str, **query: str) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Refusals())
        with opener.open(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            document = json.load(answer)
        assert document["status"] == "success", f"{query}: {document.get('error')}"
        data: dict[str, Any] = document["data"]
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Refusals(urllib.request.HTTPErrorProcessor):
    """Has refusals read like answers: Prometheus says in the body what is wrong."""

    def http_response(self, request: Any, response: Any) -> Any:
        """As it came."""
        del request
        return response


def lint(binaries: PrometheusBinaries, metrics: str) -> list[str]:
    """What `promtool check metrics` has to say; empty when it is content."""
    done = subprocess.run(
        [str(binaries.promtool), "check", "metrics"],
        input=metrics,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    said = (done.stdout + done.stderr).splitlines()
    return said if said or done.returncode == 0 else [f"promtool ended with {done.returncode}"]


def _configuration(folder: Path, targets: Mapping[str, Mapping[str, str]], rules: Path | None) -> Path:
    """JSON is YAML."""
    jobs = [
        {
            "job_name": f"job-{number}",
            "honor_labels": True,  # as the PodMonitor has it
            "static_configs": [{"targets": [target], "labels": dict(labels)}],
        }
        for number, (target, labels) in enumerate(targets.items())
    ]
    path = folder / "prometheus.yml"
    interval = f"{SCRAPE_SECONDS}s"
    pace = {"scrape_interval": interval, "evaluation_interval": interval}
    rule_files = [] if rules is None else [str(rules)]
    path.write_text(json.dumps({"global": pace, "rule_files": rule_files, "scrape_configs": jobs}))
    return path
