"""JSON requests to kube-apiserver with a kubeconfig of this harness, for what kubectl is too slow or too clever for.

Used by `podrunner`, which looks at pods several times a second.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path

Object = dict[str, Any]

TIMEOUT = 10.0  # seconds; kube-apiserver on loopback answers in milliseconds unless a test has stopped it
MERGE = "application/merge-patch+json"


class RawApiError(Exception):
    """kube-apiserver refused; `status` is HTTP's."""

    def __init__(self, what: str, status: int, words: str) -> None:
        super().__init__(f"{what}: {status} {words}")
        self.status = status


class RawApi:
    """Requests as the user of a kubeconfig; a connection each, so that threads may share it."""

    def __init__(self, kubeconfig: Path) -> None:
        document = json.loads(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self._token = document["users"][0]["user"]["token"]
        self._place = urlsplit(cluster["server"]).netloc
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def get(self, path: str) -> Object:
        """An object or a list. Raises: RawApiError, OSError."""
        return self._send("GET", path)

    def post(self, path: str, body: Object) -> Object:
        """Creates. Raises: RawApiError, OSError."""
        return self._send("POST", path, body)

    def patch(self, path: str, body: Object, content_type: str = MERGE) -> Object:
        """Patches. Raises: RawApiError, OSError."""
        return self._send("PATCH", path, body, content_type)

    def delete(self, path: str, options: Object | None = None) -> Object:
        """Deletes. Raises: RawApiError, OSError."""
        return self._send("DELETE", path, options)

    def _send(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        connection = self._connection()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            found: Object = json.loads(answer.read())
        except http.client.HTTPException as error:  # cut off in the middle of an answer
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            self._done_with(connection)
        if answer.status >= http.client.BAD_REQUEST:
            raise RawApiError(f"{method} {path}", answer.status, str(found.get("message")))
        return found

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._place, context=self._context, timeout=TIMEOUT)

    def _done_with(self, connection: http.client.HTTPSConnection) -> None:
        connection.close()


class SteadyRawApi(RawApi):
    """One connection for all requests, for one thread that sends hundreds: a handshake costs more than most answers."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(kubeconfig)
        self._kept = super()._connection()

    def close(self) -> None:
        """Ends the connection; a later request opens it again."""
        self._kept.close()

    def _connection(self) -> http.client.HTTPSConnection:
        return self._kept

    def _done_with(self, connection: http.client.HTTPSConnection) -> None:
        pass
