"""The HTTPS server behind the gate's admission webhook: Kopf's, with a certificate that is renewed on disk, and large or odd questions in mind.

Kopf starts it, and hands it the function that has the handlers answer (`handlers`). Of a pod, no more is read than the gate depends on, so
Kopf, its log and its errors never see the rest. Every operator serves, whether it leads or not. It writes nothing: the webhook's configuration is
in manifests/components/gate-webhook.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import kopf
from aiohttp import web

from dra_operator.errors import InvalidObject, InvalidSettings
from dra_operator.model import AdmissionReview, from_json, to_object
from dra_operator.placement import Way

from .certificates import ServingCertificate, at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""Between two looks at the certificate. The kubelet takes up to two minutes to bring a renewed Secret, so this adds nothing to speak of."""

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a question. etcd takes objects of 1.5 MiB, and one of its bytes is at most six of the JSON that the API server sends (\\u003c for <)."""

LARGE: Final = 1024 * 1024
"""Bytes from which on questions wait for each other, so that a crowd of large ones does not fill the memory. Arbitrary."""

LARGE_AT_ONCE: Final = 4
READ_SECONDS: Final = 5.0
"""For a question to arrive: the configuration's timeoutSeconds, after which the API server does not listen any more."""

CLOSE_SECONDS: Final = 2.0
"""For answers under way at the end."""


class GateServer(kopf.WebhookServer):
    """One path for each way that pods can come to the operator.

    Attributes:
        certificate: with what it serves.
        is_listening: whether it can be asked.
    """

    def __init__(self, host: str, port: int, folder: str, refused: Callable[[], None]) -> None:
        self.certificate = ServingCertificate(folder)
        super().__init__(addr=host, port=port, context=self.certificate.context)
        self._refused = refused
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.is_listening = False

    @property
    def hindrance(self) -> str:
        """Why it cannot be asked; empty if it can."""
        if self.is_listening:
            return ""
        return f"the webhook of the gate: {self.certificate.trouble or 'waiting for Kopf to start it'}"

    def describe(self) -> Mapping[str, Any]:
        """For `/readyz`."""
        expires = self.certificate.expires
        return {
            "listening": self.is_listening,
            "certificateExpires": None if expires is None else at(expires),
            "trouble": self.certificate.trouble,
        }

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Serve until Kopf ends, from the moment on when there is a certificate.

        Raises:
            InvalidSettings: the address cannot be had.
        """
        self.certificate.refresh()
        while not self.certificate.is_usable:
            await asyncio.sleep(LOOK_SECONDS)
            self.certificate.refresh()
        app = web.Application(client_max_size=LARGEST)
        app.add_routes([web.post(f"/{way}", partial(self._review, fn, way)) for way in Way])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        try:
            yield kopf.WebhookClientConfig(url=await self._listen(runner))
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                self.certificate.refresh()
        finally:
            self.is_listening = False
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> str:
        try:
            await web.TCPSite(runner, self.addr, self.port, ssl_context=self.context).start()
        except OSError as error:
            problem = f"cannot listen on {self.addr}:{self.port}: {error.strerror}"
            raise InvalidSettings("--webhook-port", problem) from error
        self.port = int(runner.addresses[0][1])
        self.is_listening = True
        url = self._build_url("https", str(self.addr), self.port, "")
        logger.info("the webhook of the gate on %s", url)
        return url

    async def _review(self, fn: kopf.WebhookFn, way: Way, request: web.Request) -> web.Response:
        """One question. Whatever is wrong with it is the asker's, and the API server does with the pod what `failurePolicy` says."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                review = await self._read(request)
        except TimeoutError:
            return self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the question took too long to arrive")
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the question has more than {LARGEST} bytes"
            )
        except InvalidObject as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        kind = review.request.resource
        if (kind.group, kind.resource) != ("", "pods"):
            words = f"{kind.resource}.{kind.group}: only pods get the gate; mend the rules of the webhook's configuration"
            return self._refuse(HTTPStatus.NOT_FOUND, words)
        return web.json_response(await fn(_for_kopf(review), webhook=way.value))

    async def _read(self, request: web.Request) -> AdmissionReview:
        """The question, as far as it is ours to read.

        Raises:
            InvalidObject: it is none.
            HTTPRequestEntityTooLarge: it is too large.
        """
        length = request.content_length
        if length is not None and length <= LARGE:
            return from_json(AdmissionReview, await request.read())
        async with self._large:
            return from_json(AdmissionReview, await request.read())

    def _refuse(self, status: HTTPStatus, words: str) -> web.Response:
        self._refused()
        logger.debug("a question to the webhook of the gate is refused: %s", words)
        return web.Response(status=status, text=words + "\n")


def _for_kopf(review: AdmissionReview) -> Any:
    """The question in Kopf's form, without what nobody needs: who asks, and most of the pod."""
    request = review.request
    kind = request.resource
    return {
        "apiVersion": review.api_version,
        "kind": review.kind,
        "request": {
            "uid": request.uid,
            "resource": {"group": kind.group, "version": kind.version, "resource": kind.resource},
            "operation": request.operation,
            "userInfo": {},
            "object": {} if request.object is None else to_object(request.object),
            "dryRun": request.dry_run,
        },
    }
