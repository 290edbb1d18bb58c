"""Addresses that cannot be had are settings, and the flag that is at fault is named."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from dra_operator.app.endpoints import Endpoints
from dra_operator.errors import InvalidSettings
from dra_operator.metrics import Metrics


class Well:
    """An operator in good health."""

    is_ready = True

    def readiness(self) -> dict[str, Any]:
        return {"status": "ok", "reason": ""}

    def ailments(self) -> list[str]:
        return []

    async def catch_up(self) -> None:
        """Nothing to do."""


async def refused(host: str, port: int) -> str:
    with pytest.raises(InvalidSettings) as caught:
        await Endpoints(Well(), Metrics()).start(host, port)
    return caught.value.path


async def test_a_host_that_nobody_knows_is_the_hosts_fault() -> None:
    assert await refused("no-such-host.invalid", 0) == "--http-host"


async def test_a_port_in_use_is_the_ports_fault() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        assert await refused("127.0.0.1", taken.getsockname()[1]) == "--http-port"
