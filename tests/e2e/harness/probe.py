"""One HTTP GET on loopback, for readiness: 200 or not. Used by `cluster` only; tests talk through kubectl or their own client."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
    try:
        context = ssl.create_default_context(cafile=str(certificate)) if certificate else None
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=context),
        )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with opener.open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        # Refused, reset, timed out, a status of 4xx or 5xx, a certificate half written: not ready yet.
        return False
