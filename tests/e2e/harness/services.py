"""The network of Services, as far as kube-apiserver uses it: its calls to a Service reach a process of this machine.

kube-apiserver is told by `--egress-selector-config-file` to call Services through an HTTP CONNECT proxy, which this is. It knows a Service by its
cluster IP, as kube-proxy does; who stands behind it is asked at each connection. What goes over a connection is not looked at, so TLS is kube-apiserver's
own, with the Service's name.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

HEAD_END = b"\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
NOBODY = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"


class ServiceNetwork:
    """Use as a context manager; start the control plane with its flags.

    Attributes:
        backends: Ports on loopback behind an address such as `10.0.0.7:443`; set by the test.
        reached: Port of each connection that was made, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.backends: Callable[[str], list[int]] = lambda _address: []
        self.reached: list[int] = []
        self._configuration = folder / "egress.json"
        self._path = folder / "egress.sock"
        self._listener = socket.socket(socket.AF_UNIX)

    @property
    def flags(self) -> tuple[str, ...]:
        """For kube-apiserver."""
        return (f"--egress-selector-config-file={self._configuration}",)

    def __enter__(self) -> Self:
        transport = {"uds": {"udsName": str(self._path)}}
        connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
        document = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        self._configuration.write_text(json.dumps(document))
        self._listener.bind(str(self._path))
        self._listener.listen()
        Thread(target=self._accept, name="service-network", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A close alone would not wake the thread that accepts.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            server = self._connected(_address(client))
            if server is None:
                client.sendall(NOBODY)
                return
            with server:
                client.sendall(ESTABLISHED)
                back = Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()

    def _connected(self, address: str) -> socket.socket | None:
        """To the one that was reached the longest time ago, of those that accept."""
        latest = {port: number for number, port in enumerate(self.reached)}
        for port in sorted(self.backends(address), key=lambda port: latest.get(port, -1)):
            with suppress(OSError):
                server = socket.create_connection(("127.0.0.1", port), timeout=10)
                server.settimeout(None)
                self.reached.append(port)
                return server
        return None


def _address(client: socket.socket) -> str:
    """What the head of a CONNECT request names. Raises: ConnectionError: It is cut off."""
    head = b""
    while not head.endswith(HEAD_END):
        if not (read := client.recv(1)):
            raise ConnectionError("cut off")
        head += read
    return head.split()[1].decode()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Bytes from one to the other until either ends; then the other ends, too."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
