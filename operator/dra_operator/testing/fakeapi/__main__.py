"""`python -m dra_operator.testing.fakeapi`: the embedded API server as a program.

Used by the demo and by hand. Runs until SIGINT or SIGTERM; prints the address and writes a kubeconfig if asked to.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from dra_operator.testing.fakeapi.server import FakeApi
from dra_operator.testing.fakeapi.standins import STANDINS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fakeapi", description="embedded Kubernetes API server on loopback")
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1; 0 (the default) takes a free one"
    )
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig there once the server listens")
    parser.add_argument("--standins", default="", help=f"comma-separated, out of: {', '.join(STANDINS)}")
    return parser.parse_args()


def _named(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in STANDINS]
    if unknown:
        raise SystemExit(f"fakeapi: unknown stand-in {unknown[0]!r}; known are {', '.join(STANDINS)}")
    return names


async def serve(api: FakeApi, kubeconfig: Path | None) -> None:
    """Serve until a signal comes."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with api:
        if kubeconfig is not None:
            api.write_kubeconfig(kubeconfig)
        print(f"fakeapi: serving on {api.url}", flush=True)
        await stopped.wait()


def main() -> None:
    """Entry point."""
    arguments = _arguments()
    asyncio.run(serve(FakeApi(_named(arguments.standins), port=arguments.port), arguments.kubeconfig))


if __name__ == "__main__":
    main()
