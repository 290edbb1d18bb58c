"""Settings as click options: where each value comes from, and what they say together. Flag > environment > file > default."""

from __future__ import annotations

import contextlib
import difflib
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dra_operator.errors import InvalidSettings
from dra_operator.lint import gates

from . import file
from .table import BY_NAME, PREFIX, TABLE, Group, Setting, plain
from .values import GenerateClaims, Mode, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

CONFIG = "config"


class SetCommand(click.Command):
    """A command with settings: its help lists them under their headings, wrong ones end it with a sentence and exit status 2."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the flags, and read the file that they name."""
        with _as_usage(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _as_usage(ctx):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, group by group; what is no setting comes last."""
        sections: dict[str, list[tuple[str, str]]] = {group.value: [] for group in Group}
        sections["Other options"] = []
        for parameter in self.get_params(ctx):
            setting = BY_NAME.get(parameter.name or "")
            heading = setting.group.value if setting else "Other options"
            if record := parameter.get_help_record(ctx):
                sections[heading].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


@contextlib.contextmanager
def _as_usage(context: click.Context) -> Iterator[None]:
    try:
        yield
    except InvalidSettings as error:
        raise click.UsageError(str(error), context) from error


def options(*groups: Group, without: str = "") -> Callable[[F], F]:
    """Decorate a click command with the settings of these groups (of all, if none is named) and `--config`.

    The command is called with the keyword arguments of `build`. It takes the other settings, too, and its help is silent about them: one
    file, one environment and one line of arguments do for two commands.

    Args:
        groups: those in the help.
        without: a setting for which the command has an option of its own.
    """

    def decorate(command: F) -> F:
        command = _config_option(command)
        for setting in reversed(TABLE):
            if setting.name != without:
                command = _option(setting, hidden=bool(groups) and setting.group not in groups)(command)
        return command

    return decorate


def _option(setting: Setting, *, hidden: bool) -> Callable[[F], F]:
    return click.option(
        setting.flag,
        help=" ".join(_sentences(setting)),
        default=setting.default,
        envvar=setting.variable,
        type=click.UNPROCESSED,  # `build` checks: its errors name the source
        metavar=_metavar(setting),
        hidden=hidden,
    )


def _metavar(setting: Setting) -> str:
    if setting.choices:
        return f"[{'|'.join(setting.choices)}]"
    return "TEXT" if setting.type is str else "NUMBER"


def _sentences(setting: Setting) -> list[str]:
    default = setting.default
    words = setting.unset or plain(default)
    ends = [f"{setting.range[0].upper()}{setting.range[1:]}."] if setting.type is not str else []
    return [setting.what, setting.change, *ends, f"Default: {words}."]


def _config_option(command: F) -> F:
    return click.option(
        "--config",
        envvar=PREFIX + "CONFIG",
        metavar="FILE",
        is_eager=True,  # before the options whose defaults it sets
        expose_value=False,
        callback=_take_file,
        help="YAML file with settings, such as settleSeconds: 15. A flag or variable wins over it.",
    )(command)


def _take_file(context: click.Context, _: click.Parameter, path: str | None) -> None:
    if path is not None:
        context.default_map = file.read(path)
        context.meta[CONFIG] = path


def origins(context: click.Context) -> dict[str, str]:
    """Where each setting comes from that is not at its default: the flag, the variable, or the file and key."""
    found = {}
    for setting in TABLE:
        match context.get_parameter_source(setting.name):
            case ParameterSource.COMMANDLINE:
                found[setting.name] = setting.flag
            case ParameterSource.ENVIRONMENT:
                found[setting.name] = setting.variable
            case ParameterSource.DEFAULT_MAP:
                found[setting.name] = f"{context.meta[CONFIG]}: {setting.key}"
    return found


def strays(environment: Iterable[str]) -> dict[str, str]:
    """Variables that look like misspelt ones of ours, and what was probably meant; Kubernetes makes others with our prefix."""
    known = {setting.variable.removeprefix(PREFIX): setting.variable for setting in TABLE}
    known["CONFIG"] = PREFIX + "CONFIG"
    found = {}
    for name in environment:
        if name.startswith(PREFIX) and name not in known.values():
            close = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1, cutoff=0.8)
            if close:
                found[name] = known[close[0]]
    return found


def chosen(settings: Settings, places: Mapping[str, str]) -> dict[str, str]:
    """The settings that somebody chose, by file key: `5 (--settle-seconds)`. None of them is a secret."""
    return {
        BY_NAME[name].key: f"{getattr(settings, name)} ({place.removesuffix(f': {BY_NAME[name].key}')})"
        for name, place in places.items()
    }


def build(places: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Settings from what click parsed.

    Args:
        places: where the values come from, as of `origins`; flags if not given.
        given: fields of `Settings`, numbers as such or as text. None, or not there, is the default, which for `generate_claims` follows
            from the mode: `never` in cooperate, `always` in replace.

    Raises:
        InvalidSettings: a value out of range, or values that contradict each other.
    """
    names = {setting.name: setting.flag for setting in TABLE} | dict(places or {})
    values = {
        name: BY_NAME[name].value(value, names[name], strict=False)
        for name, value in given.items()
        if value is not None
    }
    if values.get("mode") is Mode.REPLACE:
        values.setdefault("generate_claims", GenerateClaims.ALWAYS)
    settings = Settings(**values)
    _check_together(settings, names)
    _check_gates(settings, names)
    return settings


def _check_gates(settings: Settings, names: Mapping[str, str]) -> None:
    try:
        gates.read((settings.feature_gates or "",))
    except ValueError as error:
        raise InvalidSettings(names["feature_gates"], str(error)) from error


def _check_together(settings: Settings, names: Mapping[str, str]) -> None:
    if settings.mode is Mode.REPLACE and not settings.generates:
        raise InvalidSettings(
            names["generate_claims"], "mode replace has nobody else to generate claims; use always"
        )
    if settings.renew_seconds >= settings.lease_seconds:
        raise InvalidSettings(
            names["renew_seconds"],
            f"must be less than leaseSeconds ({settings.lease_seconds:g}): the holder has to stop before another may begin",
        )
    if settings.retry_seconds * 2 > settings.renew_seconds:
        raise InvalidSettings(
            names["retry_seconds"],
            f"must be at most half of renewSeconds ({settings.renew_seconds:g}): one lost request must not end the operator",
        )
    if settings.webhook_certificates and settings.http_port == settings.webhook_port != 0:
        raise InvalidSettings(
            names["webhook_port"],
            f"is the port of health and metrics, too ({settings.http_port}): take another",
        )
    if settings.context and not settings.kubeconfig:
        raise InvalidSettings(
            names["context"], "names a context of a kubeconfig; give --kubeconfig (kubeconfig), too"
        )
