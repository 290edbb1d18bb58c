"""Single HTTP requests on loopback: a GET for readiness, and a PATCH as the operator sends it.

Used by `cluster`, and by tests for what kubectl cannot do: it reads before it patches, which needs rights that the operator
does not have.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.client import HTTPResponse

_TIMEOUT = 5.0  # seconds; a process that is stopped (SIGSTOP) must not hang the caller


def answers_ok(url: str, certificate: Path | None = None, token: str | None = None) -> bool:
    """Whether a GET answers 200.

    Args:
        url: On loopback; no proxy is ever asked.
        certificate: Authority to expect (PEM). While the file does not exist yet, the answer is no.
        token: Bearer token.
    """
    if certificate is not None and not certificate.exists():
        return False
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with _open(urllib.request.Request(url, headers=headers), certificate) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except urllib.error.HTTPError as refused:
        refused.close()
        return False
    except OSError:
        # Connection refused, reset or timed out, a certificate half written: not ready yet.
        return False


def readiness(url: str) -> dict[str, Any] | None:
    """What `/readyz` says, if it answers 200; None otherwise.

    Args:
        url: Of the operator, on loopback.
    """
    try:
        with _open(urllib.request.Request(f"{url}/readyz"), None) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:  # a refusal by HTTP is one, too
        return None


def decides(url: str) -> bool:
    """Whether an operator is ready and is the one that may write."""
    found = readiness(url)
    return found is not None and found["role"] in {"leader", "alone"}


def merge_patch(kubeconfig: Path, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Sends one merge patch with a kubeconfig of this harness, and returns the object as it is then.

    Raises:
        AssertionError: The server refused; the text holds its words.
    """
    document = json.loads(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/merge-patch+json"}
    data = json.dumps(body).encode()
    request = urllib.request.Request(cluster["server"] + path, data=data, headers=headers, method="PATCH")
    try:
        with _open(request, Path(cluster["certificate-authority"])) as answer:
            patched: dict[str, Any] = json.load(answer)
            return patched
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"PATCH {path}: {error.code} {error.read().decode()}") from error


def _open(request: urllib.request.Request, certificate: Path | None) -> HTTPResponse:
    """Past any proxy; the certificate is the only authority."""
    context = ssl.create_default_context(cafile=str(certificate)) if certificate else None
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    answer: HTTPResponse = opener.open(request, timeout=_TIMEOUT)
    return answer
