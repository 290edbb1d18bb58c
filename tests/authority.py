"""A certificate authority for tests of the webhook, made with openssl as docs/cluster-admin.md tells it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = "IP:127.0.0.1"
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Authority:
    """One authority.

    Attributes:
        folder: with ca.crt and ca.key.
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Authority:
        """A new one, in a folder of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        files = ("-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.crt"))
        _openssl("req", "-x509", *EC, "-days", "3650", "-subj", "/CN=webhook authority", *files)
        return cls(folder)

    @property
    def bundle(self) -> Path:
        """What clients trust."""
        return self.folder / "ca.crt"

    def sign(self, target: Path, *names: str, days: int = 365) -> None:
        """Put a certificate and its key, tls.crt and tls.key, into a folder.

        Args:
            target: the folder; what it holds is replaced, each file at once.
            names: subject alternative names; loopback if there is none.
            days: how long it is valid; -1 for one that has ended.
        """
        target.mkdir(parents=True, exist_ok=True)
        key, request, signed = (self.folder / name for name in ("new.key", "new.csr", "new.crt"))
        wanted = f"subjectAltName={','.join(names or (LOOPBACK,))}"
        subject = ("-subj", "/CN=dra-operator-webhook", "-addext", wanted)
        _openssl("req", *EC, *subject, "-keyout", str(key), "-out", str(request))
        ca = ("-CA", str(self.bundle), "-CAkey", str(self.folder / "ca.key"))
        flags = ("-days", str(days), "-copy_extensions", "copy")
        _openssl("x509", "-req", "-in", str(request), *ca, *flags, "-out", str(signed))
        key.replace(target / "tls.key")
        signed.replace(target / "tls.crt")


def _openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {' '.join(words)}\n{done.stderr}"
