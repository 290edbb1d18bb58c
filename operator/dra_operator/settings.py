"""What can be set, from flags or environment (`DRA_OPERATOR_*`), as one frozen value.

`app` decorates its command with `options` and gets a `Settings`; nothing else reads the environment. Adding a setting means a
field here, an option here, and a line in the README's table.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import click

from .errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

F = TypeVar("F", bound="Callable[..., Any]")

MAX_PORT = 65535

RANGES = {
    "settle_seconds": (0, 3600),
    "max_writes": (1, 1000),
    "http_port": (0, MAX_PORT),
    "sweep_seconds": (0.1, 86_400),
}
"""Lowest and highest value of each number. The ends for seconds and writes are arbitrary: nobody wants what lies beyond, while a typo
may; not-a-number and infinity would switch off what they time."""


class Mode(StrEnum):
    """How the operator shares the cluster with the stock parts (architecture, section 2)."""

    COOPERATE = "cooperate"
    REPLACE = "replace"


class GenerateClaims(StrEnum):
    """Who generates and releases claims: kube-controller-manager (`never`) or we (`always`) (cp I-33)."""

    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings.

    Attributes:
        kubeconfig: a file; None means the service account of the pod we run in, else the usual places.
        context: of the kubeconfig; None is its current one.
        mode: `cooperate` or `replace`.
        generate_claims: `never` or `always`.
        settle_seconds: age of a DeviceTaintRule before its pool is allocated from.
        http_host, http_port: where `/healthz`, `/readyz` and `/metrics` are; port 0 lets the machine choose.
        log_level, log_format: of our own log.
        max_writes: writes under way at the same time.
        sweep_seconds: how long an allocation of ours without consumers and pods is left before it is taken back.
    """

    kubeconfig: str | None = None
    context: str | None = None
    mode: Mode = Mode.COOPERATE
    generate_claims: GenerateClaims = GenerateClaims.NEVER
    settle_seconds: float = 15.0
    http_host: str = "0.0.0.0"  # noqa: S104 - probes come from the kubelet, scrapes from other pods
    http_port: int = 8080
    log_level: str = "info"
    log_format: str = "text"
    max_writes: int = 16
    sweep_seconds: float = 30.0

    @property
    def generates(self) -> bool:
        """Whether we generate and release claims."""
        return self.generate_claims is GenerateClaims.ALWAYS

    @property
    def level(self) -> int:
        """The level as `logging` has it."""
        return logging.getLevelNamesMapping()[self.log_level.upper()]


def build(generate_claims: str | None = None, mode: str = Mode.COOPERATE, **rest: Any) -> Settings:
    """Settings from what click parsed.

    Args:
        generate_claims: None picks the mode's default: `never` in cooperate, `always` in replace.
        mode: `cooperate` or `replace`.
        rest: the other fields of `Settings`.

    Raises:
        InvalidSettings: a value out of range, or values that contradict each other.
    """
    chosen = Mode(mode)
    by_mode = GenerateClaims.ALWAYS if chosen is Mode.REPLACE else GenerateClaims.NEVER
    generator = GenerateClaims(generate_claims) if generate_claims else by_mode
    settings = Settings(mode=chosen, generate_claims=generator, **rest)
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    if settings.mode is Mode.REPLACE and not settings.generates:
        raise InvalidSettings(
            "--generate-claims", "mode replace has nobody else to generate claims; use always"
        )
    for name, (low, high) in RANGES.items():
        if not low <= getattr(settings, name) <= high:  # false for not-a-number, too
            flag = "--" + name.replace("_", "-")
            raise InvalidSettings(flag, f"must lie between {low} and {high}, not {getattr(settings, name)}")
    if settings.context and not settings.kubeconfig:
        raise InvalidSettings("--context", "names a context of a kubeconfig; give --kubeconfig, too")


def _option(flag: str, text: str, default: object = None, **more: Any) -> Callable[[F], F]:
    name = flag.removeprefix("--").replace("-", "_")
    variable = "DRA_OPERATOR_" + name.upper()
    ends = "{} to {}.".format(*RANGES[name]) if name in RANGES else ""
    return click.option(
        flag,
        help=f"{text} {ends}".rstrip(),
        default=default,
        envvar=variable,
        show_envvar=True,
        show_default=default is not None,
        **more,
    )


_DEFAULTS = Settings()

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _option(
        "--kubeconfig",
        "Kubeconfig file; default: the pod's service account, else $KUBECONFIG and ~/.kube/config.",
    ),
    _option("--context", "Context of the kubeconfig."),
    _option(
        "--mode",
        "cooperate: stock parts serve what is not ours. replace: they are switched off.",
        _DEFAULTS.mode.value,
        type=click.Choice([mode.value for mode in Mode]),
    ),
    _option(
        "--generate-claims",
        "Generate and release claims (always), or leave it to kube-controller-manager (never). Default: never in cooperate, always in replace.",
        type=click.Choice([choice.value for choice in GenerateClaims]),
    ),
    _option(
        "--settle-seconds",
        "Age of the taint rule of a newly owned pool before it is used.",
        _DEFAULTS.settle_seconds,
        type=float,
    ),
    _option("--http-host", "Address of /healthz, /readyz and /metrics.", _DEFAULTS.http_host),
    _option("--http-port", "Port of /healthz, /readyz and /metrics.", _DEFAULTS.http_port, type=int),
    _option(
        "--log-level",
        "How much to log.",
        _DEFAULTS.log_level,
        type=click.Choice(["debug", "info", "warning", "error"]),
    ),
    _option("--log-format", "How to log.", _DEFAULTS.log_format, type=click.Choice(["text", "json"])),
    _option("--max-writes", "Writes to the API server at the same time.", _DEFAULTS.max_writes, type=int),
    _option(
        "--sweep-seconds",
        "How long an unused allocation of ours is left before it is taken back.",
        _DEFAULTS.sweep_seconds,
        type=float,
    ),
)


def options(command: F) -> F:
    """Decorate a click command with all options; it is called with the keyword arguments of `build`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
