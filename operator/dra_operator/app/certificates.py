"""The certificate of the gate's webhook: read from disk, read again when it was renewed there, and when it ends.

Used by `webhook`. What is on disk may be missing, half written or wrong at any time: that is told, and the last good one goes on serving.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
"""Names of a Secret of the type kubernetes.io/tls, under which the kubelet mounts them."""

REMEDY: Final = (
    "the Deployment mounts them from the Secret dra-operator-webhook (type kubernetes.io/tls), which cert-manager or openssl makes: "
    "docs/gate-webhook.md"
)


class ServingCertificate:
    """A certificate and its key in one folder.

    Attributes:
        context: for the server; each handshake takes the newest good certificate, connections that stand go on.
        trouble: what is wrong with the files now, with the remedy; empty if nothing is.
        expires: seconds since 1970 at which the certificate in use ends; None as long as there is none.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._digest = b""
        self._current: ssl.SSLContext | None = None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.sni_callback = self._choose
        self.trouble = ""
        self.expires: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether there is one to serve with."""
        return self._current is not None

    def refresh(self) -> None:
        """Look whether the files have changed, and take what they hold if it is good; says what is wrong once."""
        try:
            self._take()
        except OSError as error:  # ssl.SSLError is one
            self._complain(_words(error, self._folder))
        except ValueError as error:
            self._complain(f"{self._folder / CERTIFICATE}: {error}")
        else:
            self.trouble = ""

    def _take(self) -> None:
        """Take the files if they are new.

        Raises:
            OSError: they cannot be read, or do not belong together.
            ValueError: there is no certificate in the file, or it is none.
        """
        digest, pem = self._read()
        if digest == self._digest:
            return
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Without a word for the password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(self._folder / CERTIFICATE, self._folder / KEY, password=lambda: "")
        expires = end_of(pem)
        # Should they have been renewed in the midst of it, the next look finds another digest.
        self._current, self._digest, self.expires = context, digest, expires
        logger.info(
            "the webhook serves with the certificate in %s, valid until %s", self._folder, at(expires)
        )

    def _read(self) -> tuple[bytes, bytes]:
        """A digest of both, for the key is not kept, and the certificate."""
        certificate, key = (self._folder / CERTIFICATE).read_bytes(), (self._folder / KEY).read_bytes()
        digest = hashlib.sha256(hashlib.sha256(certificate).digest() + hashlib.sha256(key).digest()).digest()
        return digest, certificate

    def _complain(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        self.trouble = trouble
        then = "it goes on with the one that it has" if self.is_usable else "it answers nobody until then"
        logger.error("the webhook of the gate: %s (%s)", trouble, then)

    def _choose(
        self, tls: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        """For each handshake, whether the client names a server or not."""
        if self._current is not None:
            tls.context = self._current


def at(moment: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _words(error: OSError, folder: Path) -> str:
    if isinstance(error, ssl.SSLError):
        words = (error.reason or "no certificate or key").replace("_", " ").lower()
        return f"{folder / CERTIFICATE} and {KEY} beside it cannot be used: {words}: {REMEDY}"
    return f"cannot read {error.filename or folder}: {error.strerror}: {REMEDY}"


def end_of(pem: bytes) -> float:
    """When the first certificate of a file ends, in seconds since 1970. The standard library tells it of peers only.

    Raises:
        ValueError: there is none, or it is not one.
    """
    from cryptography import x509  # 8 MiB of memory, which an operator without the webhook does not need

    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    except ValueError:
        raise ValueError("holds no X.509 certificate in PEM form") from None
