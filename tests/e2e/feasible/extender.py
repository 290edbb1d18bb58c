"""A scheduler extender that turns every node down and remembers which nodes it was asked about: those that passed all filters.

kube-scheduler asks an extender after its own filters, about all nodes that passed them and about nothing else. So one attempt to place a
pod tells what holds for every node, nothing is ever bound, and the cluster stays as it was made.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

REFUSAL = "node(s) passed all filters"
"""What pods are told of such nodes, in the condition PodScheduled."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scheduler that is killed leaves its connections behind: that is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Extender:
    """The server, on loopback while the `with` block runs.

    Attributes:
        url: for `Options.scheduler_extender`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._passed: dict[str, frozenset[str]] = {}
        extender = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                names = asked["NodeNames"]
                extender._remember(asked["Pod"]["metadata"]["uid"], names)
                # Unresolvable: nothing is preempted for a node that was turned down so.
                answer = {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(names, REFUSAL)}
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the base class's
                del format, args

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="extender", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def passed(self, pod_uid: str) -> frozenset[str]:
        """Names of the nodes that passed kube-scheduler's filters in the last attempt that came so far; empty if none did."""
        with self._lock:
            return self._passed.get(pod_uid, frozenset())

    def _remember(self, pod_uid: str, names: list[str]) -> None:
        with self._lock:
            self._passed[pod_uid] = frozenset(names)
