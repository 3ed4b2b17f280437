"""Import commands only when they are used, so that `pbstream` starts quickly."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from commands.cli.suggesting import Suggesting
from doors.console.failures import NoBroker, in_a_sentence
from doors.console.session import Session, quiet, take_everywhere
from ground.boundary import Attempt

COMMANDS = {
    "demo": ("demo", "Play the paper's benchmark through a real worker on a real Kafka broker."),
    "broker": ("service", "Start a real Kafka on this machine and stay until Ctrl-C."),
    "topics": ("topics_command", "Create the service's topics, or check them."),
    "worker": ("service", "Run workers until SIGTERM or Ctrl-C."),
    "gateway": ("gateway", "Answer HTTP: decisions, bills and rewards under /v1/routers/ID."),
    "convert": ("convert_and_ingest", "Show which events another system's payload makes."),
    "ingest": (
        "convert_and_ingest",
        "Convert another system's topic to this service's bills and labels.",
    ),
    "models": ("models", "Add, reprice, remove and list the models of a router."),
    "budget": ("budget", "Set what a request may cost on average, and see how that goes."),
    "pools": ("pools_command", "Share one budget among several routers."),
    "families": ("families_command", "Let routers learn from each other."),
    "routers": ("routers_command", "Show, compare and declare whole routers, or let one go."),
    "request": ("request", "Ask which model shall answer a prompt, and why."),
    "cost": ("cost_and_reward", "Report what a request really cost."),
    "reward": ("cost_and_reward", "Report how good the answer to a request was."),
    "verdict": (
        "verdict_command",
        "Report what a verifier says of an answer, and see what follows.",
    ),
    "verifiers": ("verifiers_command", "Show what the verdicts of verifiers mean."),
    "sources": ("sources_command", "Show how far judges are from the labels of people."),
    "labels": ("labels_command", "Show what people are asked to label, and take their labels."),
    "explain": ("explain", "Explain why a request went to its model, and what it cost and earned."),
    "watch": ("watch", "Watch a router live; `dashboard` shows all of them."),
    "dlq": ("dlq_command", "Look at the events that were refused, and send some again."),
    "dashboard": ("dashboard", "Show all routers, one router, one decision in the browser, live."),
    "doctor": (
        "doctor_command",
        "Look at everything that a service stands on, and say what to do.",
    ),
    "replay": (
        "replay",
        "Replay history: verify its decisions, or ask what would have happened otherwise.",
    ),
    "proof": (
        "proof_command",
        "Show what a router saved against its incumbent, and how sure that is.",
    ),
    "audit": ("audit", "Check every promise of a service on its topics."),
    "snapshot": ("snapshot", "Keep what a router has learned in a file, and go on from it."),
    "fit": ("fit_command", "Fit warm-up priors of rewards and costs."),
    "encoder": ("encoder_command", "Make the files that a worker's encoder runs on."),
    "completion": ("completion", "Print the script by which a shell completes these commands."),
}
"""Module under `commands.cli` and help of each command, in the order in which a new user needs
them."""
STAYING = {"worker", "gateway", "dashboard", "broker", "ingest", "keep"}
"""Commands that run until they are stopped; their output is a log."""
ALONE = {"demo", "broker", "completion"}
"""Commands that reach no service: the first two bring a broker of their own."""


class Loading(dict[str, click.Command]):
    """Commands by name, each imported when it is first looked up."""

    def __missing__(self, name: str) -> click.Command:
        if name not in COMMANDS:
            raise KeyError(name)
        # Faust, numpy and pydantic take a second to import; `pbstream --help` needs none of them.
        command: click.Command = getattr(import_module(f"commands.cli.{COMMANDS[name][0]}"), name)
        if name not in ALONE:
            take_everywhere(command)
        self[name] = command
        return command


class Commands(Suggesting):
    """The group of all commands, which prints a known failure as one sentence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = Loading()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.commands[name] if name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        stays = bool(STAYING & {*ctx._protected_args, *ctx.args[:1]})
        if not stays:
            quiet()
        with Attempt() as done:
            return super().invoke(ctx)
        assert done.error is not None
        sentence = _unreached(ctx, done.error) or in_a_sentence(done.error)
        # Read from the environment, as the settings may be at fault.
        if stays and os.environ.get("PB_LOG_FORMAT") == "json":
            _log(sentence or done.error)
        if sentence is None:
            raise done.error
        raise sentence from done.error


def _log(error: Exception) -> None:
    """End the process with one JSON line that says why, if it failed."""
    from streams.service.logs import say_why

    if isinstance(error, click.ClickException):
        say_why(error.format_message())
        raise click.exceptions.Exit(error.exit_code) from error
    if not isinstance(error, click.exceptions.Exit | click.Abort):
        say_why(f"{type(error).__name__}: {error}", error)
        raise click.exceptions.Exit(1) from error


def _unreached(ctx: click.Context, error: Exception) -> NoBroker | None:
    """Return the failure for a Kafka that can't be reached; None for other errors."""
    # Compared by name, so that a command without Kafka does not import its client.
    if type(error).__name__ != "KafkaConnectionError":
        return None
    import asyncio

    from streams.log.login_refusal import refusal

    settings = ctx.ensure_object(Session).settings
    return NoBroker(settings.bootstrap, asyncio.run(refusal(settings)))
