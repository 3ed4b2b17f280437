"""Settings, router and options that every command shares."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import click

from ground.texts import NOT_UNICODE, is_valid, mended

if TYPE_CHECKING:
    from streams.settings import Settings

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")
DEFAULT_ROUTER = "default"
"""The router of commands that name none."""
OUTPUT = "pbstream.output"
"""Key of click's context that holds the form of the output."""


@dataclass(slots=False)
class Session:
    """The settings given on the command line, which win over the environment."""

    bootstrap: str | None = None
    prefix: str | None = None
    app_id: str | None = None

    @cached_property
    def settings(self) -> Settings:
        """Read the settings when a command first needs them, so that help works without
        settings.
        """
        from streams.settings import load_settings

        return load_settings(bootstrap=self.bootstrap, prefix=self.prefix, app_id=self.app_id)

    def with_port(self, field: str, port: int | None) -> Settings:
        """Return the settings with another port, where one is given."""
        return self.settings if port is None else self.settings.model_copy(update={field: port})


SHARED = (
    ("bootstrap", "HOST:PORT", "Kafka's address; default: PB_BOOTSTRAP, else 127.0.0.1:9092."),
    ("prefix", "TEXT", 'Prefix of topic names; default: PB_PREFIX, else "pb.".'),
    ("app_id", "TEXT", "The consumer group; default: PB_APP_ID, else it follows from the prefix."),
)
"""Options of every command: parameter, type and help of each."""


class _Text(click.types.StringParamType):
    """A text that has to be valid Unicode, as ids and names have to be."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(super().convert(value, param, ctx))
        if not is_valid(text):
            self.fail(f"{text!r} {NOT_UNICODE}", param, ctx)
        return text


class _Prompt(click.types.StringParamType):
    """A text that people wrote: invalid Unicode in it is replaced."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        return mended(str(super().convert(value, param, ctx)))


TEXT, PROMPT = _Text(), _Prompt()


def take_everywhere(command: click.Command) -> None:
    """Add the shared options to a command and all its subcommands; the innermost given option
    counts. Refuse texts that are not valid Unicode.
    """
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = TEXT
    taken = {option for parameter in command.params for option in parameter.opts}
    for name, metavar, text in SHARED:
        flag = f"--{name.replace('_', '-')}"
        # A command may have an option of the same name that means something else.
        if flag not in taken:
            command.params.append(
                click.Option(
                    [flag, f"shared_{name}"],
                    type=TEXT,
                    metavar=metavar,
                    help=text,
                    expose_value=False,
                    callback=_keep(name),
                )
            )
    for inner in list(command.commands.values()) if isinstance(command, click.Group) else ():
        take_everywhere(inner)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        session = ctx.ensure_object(Session)
        if value is not None:
            setattr(session, name, value)

    return keep


pass_session = click.make_pass_decorator(Session)


def valid_router(value: str) -> str:
    """Return a router's id, or raise BadParameter."""
    from pydantic import TypeAdapter, ValidationError

    from schemas.fields import RouterId

    try:
        return str(TypeAdapter(RouterId).validate_python(value))
    except ValidationError:
        raise click.BadParameter(
            f"{value!r} is not a router id: 1 to 128 of A-Z a-z 0-9 . _ -"
        ) from None


def named(router_id: str) -> str:
    """Return the `--router` option that a command to be copied needs."""
    return (
        # Whoever copies the command has the same environment.
        "" if router_id == os.environ.get("PB_ROUTER", DEFAULT_ROUTER) else f" --router {router_id}"
    )


router_option: Callable[[F], F] = click.option(
    "--router",
    "router_id",
    envvar="PB_ROUTER",
    default=DEFAULT_ROUTER,
    show_default=True,
    callback=lambda ctx, parameter, value: valid_router(value),
    metavar="ID",
    help="Router to work on; default: PB_ROUTER.",
)


def option(name: str, kind: click.ParamType, default: object, text: str) -> Callable[[F], F]:
    """Return an option whose help says its default."""
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def port_option(name: str, usual: int) -> Callable[[F], F]:
    """Return the option `--port` of a command that listens, which is None where it is not given.

    Args:
        name: the setting that holds where the option is not given, such as PB_WEB_PORT.
    """
    return click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        help=f"Port to listen on, 0: a free one; default: {name}, else {usual}.",
    )


def json_option(function: F) -> F:
    """Add `--json` and `--output json` or `yaml` to a command; it gets `as_json`."""
    flag = click.option(
        "--json", "as_json", is_flag=True, callback=_machine, help="Print JSON, for programs."
    )
    kind = click.option(
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        # Before `--json`, whose callback looks at what this one has kept.
        is_eager=True,
        expose_value=False,
        callback=_keep_output,
        help="Form of the output; default: table.",
    )
    return flag(kind(function))


def _keep_output(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    ctx.meta[OUTPUT] = value


def _machine(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    return value or ctx.meta.get(OUTPUT) in ("json", "yaml")


timeout_option: Callable[[F], F] = click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds to wait for the worker.",
)


def answered(function: Callable[..., object]) -> Callable[..., object]:
    """Add the options of a command that waits for a worker's answer; it gets `session`,
    `router_id`, `timeout` and `as_json`.
    """
    return router_option(timeout_option(json_option(pass_session(function))))


def quiet() -> None:
    """Silence the Kafka client's log lines: failures are raised and printed as a sentence."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


def run(work: Coroutine[object, None, T]) -> T:
    """Run a command's work."""
    import asyncio  # not for a page of help

    quiet()
    return asyncio.run(work)
