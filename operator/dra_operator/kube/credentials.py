"""Where the API server is and how to be let in, out of kubernetes-asyncio's configuration.

The library reads kubeconfigs, runs exec plug-ins, follows OIDC and reads in-cluster tokens; we take host, TLS files, proxy and
authorization header from it and open connections of our own (`api`): its sessions look up proxy variables and netrc on every
request, which costs half of its time. Called by `api`; `handlers` gives the same facts to Kopf. Never logs a token, never
writes to the kubeconfig.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from dra_operator.errors import InvalidSettings
from dra_operator.logfields import News, hide

from .kubeconfig import examine
from .timing import REAL, Timing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Load = Callable[[], Awaitable["Connection"]]

_log = logging.getLogger(__name__)


def _is_told_by_nobody_else(record: logging.LogRecord) -> bool:
    """Not so what the library logs and raises: failures of plug-ins. It only logs that their answer lacks something."""
    return record.funcName != "load_from_exec_plugin" or record.getMessage().startswith("exec: missing")


logging.getLogger(load_kube_config.__module__).addFilter(_is_told_by_nobody_else)

REFRESH_SECONDS = 60.0
"""How old an authorization header may grow; kubernetes-asyncio re-reads in-cluster tokens in the same rhythm."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = Path("~/.kube/config")


@dataclass(frozen=True, slots=True)
class Connection:
    """All that a client needs to know of the server at one moment.

    Attributes:
        server: URL without a slash at the end.
        authorization: value of the header; empty for none. Not in `repr`.
        ca_file: certificate authorities; None for the system's.
        certificate_file: client certificate.
        key_file: key of the client certificate.
        verify: whether the server's certificate is checked.
        tls_server_name: the name that the certificate must bear, when it is not the host's.
        proxy: URL of a proxy that was configured explicitly.
        namespace: of the context, or of the ServiceAccount.
    """

    server: str
    authorization: str = field(default="", repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"

    @property
    def tls_facts(self) -> tuple[object, ...]:
        """What TLS depends on, the files' states included: certificates are renewed under the same name. Reads the file system."""
        files = (self.ca_file, self.certificate_file, self.key_file)
        return (self.server, self.verify, *files, *(_state(file) for file in files))

    @property
    def token(self) -> str:
        """The bearer token, for clients that write the header themselves; empty when there is none."""
        scheme, _, token = self.authorization.partition(" ")
        return token if scheme == "Bearer" else ""

    def ssl_context(self) -> ssl.SSLContext | bool:
        """TLS for this server; True (aiohttp's default, unused) for plain http.

        Raises:
            InvalidSettings: a file is missing or holds no certificate.
        """
        if not self.server.startswith("https:"):
            return True
        try:
            return self._build_context()
        except OSError as error:  # ssl.SSLError is one
            raise InvalidSettings(
                "kubeconfig", f"cannot read the TLS files of {self.server}: {error}"
            ) from error

    def _build_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        # Cluster authorities often lack the key identifiers that RFC 5280 asks for; Python >= 3.13 refuses them, Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


def _state(file: str | None) -> tuple[int, ...]:
    """Tells one content of a file from the next; a file that is not there has none."""
    try:
        found = os.stat(file) if file else None  # noqa: PTH116 - a path may be relative to whatever the library took it to be
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else ()


class Credentials(Protocol):
    """Who is let in, now."""

    async def current(self) -> Connection:
        """The connection facts, renewed when they have aged."""

    async def renew(self, refused: Connection) -> Connection:
        """The server refused these with 401: get others, or the same ones if there are no others."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Facts that never change; for tests and tools."""

    connection: Connection

    async def current(self) -> Connection:
        """The facts."""
        return self.connection

    async def renew(self, refused: Connection) -> Connection:
        """The same facts: there are no others."""
        return refused


class LoadedCredentials:
    """Facts out of a configuration that may change: re-read when old, and at once after a 401.

    One reader at a time; the others wait for its result.

    Args:
        load: reads the configuration anew, tokens included.
        first: what it has given at start.
        timing: the clock.
    """

    def __init__(self, load: Load, first: Connection, timing: Timing = REAL) -> None:
        self._load = load
        self._timing = timing
        self._connection = first
        self._read_at = timing.monotonic()
        self._lock = asyncio.Lock()
        self._news = News()

    async def current(self) -> Connection:
        """See `Credentials.current`."""
        if self._timing.monotonic() - self._read_at >= REFRESH_SECONDS:
            await self._read(self._connection)
        return self._connection

    async def renew(self, refused: Connection) -> Connection:
        """See `Credentials.renew`."""
        await self._read(refused)
        return self._connection

    async def _read(self, outdated: Connection) -> None:
        """Replace the facts. When their source fails, the old ones stay in use: they may well be good still."""
        async with self._lock:
            if self._connection is not outdated:
                return  # somebody else has read it while we waited
            self._read_at = self._timing.monotonic()  # after a failure, too: not again for every request
            try:
                self._connection = await self._load()
            except InvalidSettings as error:
                level = logging.WARNING if self._news.is_new("", str(error)) else logging.DEBUG
                _log.log(level, "credentials not renewed, those at hand stay in use: %s", error)
            else:
                if self._news.forget(""):
                    _log.info("credentials can be renewed again")


async def load_credentials(
    kubeconfig: str | None = None, context: str | None = None, timing: Timing = REAL
) -> LoadedCredentials:
    """Credentials out of a kubeconfig, or of the pod that we run in.

    In order: the given file; `$KUBECONFIG`; the ServiceAccount of the pod; `~/.kube/config`.

    Raises:
        InvalidSettings: there is none, it cannot be used, or its plug-in failed.
    """
    load = _loader(kubeconfig or os.environ.get("KUBECONFIG") or None, context)
    return LoadedCredentials(load, await load(), timing)


def _loader(kubeconfig: str | None, context: str | None) -> Load:
    if kubeconfig is None and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _load_in_cluster
    file = kubeconfig or str(DEFAULT_KUBECONFIG.expanduser())

    async def load() -> Connection:
        return await _load_kubeconfig(file, context)

    return load


async def _load_in_cluster() -> Connection:
    configuration = Configuration()
    try:
        load_incluster_config(  # type: ignore[no-untyped-call]  # the library does not annotate it
            client_configuration=configuration,
            try_refresh_token=False,  # we read all of it again
            token_filename=str(SERVICE_ACCOUNT / "token"),
            cert_filename=str(SERVICE_ACCOUNT / "ca.crt"),
        )
        namespace = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except (ConfigException, OSError) as error:
        raise InvalidSettings("in-cluster configuration", str(error)) from error
    return await _connection(configuration, namespace)


async def _load_kubeconfig(file: str, context: str | None) -> Connection:
    if not _exists(file):
        raise InvalidSettings("kubeconfig", f"cannot use {file}: there is no such file")
    examine(file, context)
    configuration = Configuration()
    try:
        loader = await load_kube_config(
            config_file=file, context=context, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # the file, YAML, plug-ins and token providers fail in ways of their own
        words = str(error) or type(error).__name__
        raise InvalidSettings("kubeconfig", f"cannot use {file}: {words}") from error
    return await _connection(configuration, _namespace(loader.current_context))


def _exists(files: str) -> bool:
    """Whether one of the files is there; as in `$KUBECONFIG`, there may be several. The library would only warn, and fail later."""
    return any(Path(file).expanduser().exists() for file in files.split(os.pathsep) if file)


def _namespace(context: Any) -> str:
    chosen = context.get("context", {}) if isinstance(context, dict) else {}
    return str(chosen.get("namespace") or "default")


async def _connection(configuration: Any, namespace: str) -> Connection:
    settings = await configuration.auth_settings()
    authorization = str(settings.get("BearerToken", {}).get("value") or "").strip()
    hide(authorization.partition(" ")[2])
    return Connection(
        server=str(configuration.host).rstrip("/"),
        authorization=authorization,
        ca_file=configuration.ssl_ca_cert,
        certificate_file=configuration.cert_file,
        key_file=configuration.key_file,
        verify=bool(configuration.verify_ssl),
        tls_server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
        namespace=namespace,
    )
