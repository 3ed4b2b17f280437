"""`pbstream broker` and `pbstream worker`: run until stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from doors.console.failures import Failure
from doors.console.session import Session, option, pass_session, port_option

if TYPE_CHECKING:
    from streams.settings import Settings

LEVELS = ("debug", "info", "warning", "error")
"""Levels of the standard library's logging."""


@click.command()
@option("--port", click.IntRange(1, 65_535), 9092, "Port to listen on, on loopback.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps the data; default: a temporary one.",
)
@option(
    "--brokers", click.Choice(["1", "3"]), "1", "Number of brokers; three survive the loss of one."
)
def broker(port: int, data: Path | None, brokers: str) -> None:
    """Start a real Kafka on this machine and stay until Ctrl-C.

    It needs Java 17, and Maven once, which fetches Kafka's jars (45 MB). Should Kafka end by
    itself, the command ends with the last lines of its log (exit code 1).

    \b
      pbstream broker
      pbstream broker --port 19092 --data ~/kafka-data
    """
    from commands.broker.choose import LocalKafka

    _require_free(port)
    stop_on_sigterm()
    with LocalKafka(int(brokers), data, port=port) as kafka:
        click.echo(f"export PB_BOOTSTRAP={kafka.bootstrap}")
        click.echo(
            "Kafka is ready. In each other terminal: the line above first (else commands look at "
            "127.0.0.1:9092), then `pbstream topics create`. Ctrl-C stops it.",
            err=True,
        )
        try:
            kafka.watch()
        except KeyboardInterrupt:
            click.echo("Stopping Kafka ...", err=True)


def _require_free(port: int) -> None:
    """Raise Failure if something listens on the port, and say what to do."""
    from commands.broker.wire import HOST, answers, free_ports, is_free

    if is_free(port):
        return
    (other,) = free_ports(1)
    here = f"{HOST}:{port}"
    there = f"a Kafka answers at {here} already: use it" if answers(here) else f"{here} is taken"
    raise Failure(
        f"{there}, or start one elsewhere with `pbstream broker --port {other}`, and then "
        f"`export PB_BOOTSTRAP={HOST}:{other}` in each terminal."
    )


def stop_on_sigterm() -> None:
    """Let SIGTERM stop the command as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # An exception instead of an exit, so that every `with` stops what it started.
    signal.signal(signal.SIGTERM, stop)


@click.command()
@option("--log-level", click.Choice(LEVELS), "info", "Lowest level that is logged to stderr.")
@option(
    "--processes",
    click.IntRange(1, 256),
    1,
    "Number of workers on this machine; each uses one core.",
)
@port_option("PB_WEB_PORT", 8080)
@pass_session
def worker(session: Session, log_level: str, processes: int, port: int | None) -> None:
    """Run workers until SIGTERM or Ctrl-C.

    Start as many as you like with the same PB_APP_ID: they share the partitions. Each needs a web
    port of its own (--port) and, for short pauses at a restart, a name that stays
    (PB_INSTANCE_ID). With --processes one command runs several: it replaces those that end, and
    answers for all of them on one port.

    \b
      pbstream worker
      pbstream worker --processes 4
      PB_INSTANCE_ID=worker-1 pbstream worker --port 8081

    http://127.0.0.1:8080/readyz says whether it is ready, /metrics how it does.
    """
    from ground.boundary import exit_at_once
    from streams.service.lifetime import run, serve
    from streams.service.logs import announce, log_to_stderr
    from streams.service.worker import build_worker

    settings = session.with_port("web_port", port)
    log_to_stderr(log_level, settings.log_format)
    if processes > 1:
        run_crew(settings, processes=processes, log_level=log_level)
        return
    announce(f"Worker of {settings.app_id} on {settings.bootstrap}.", settings.log_format)

    async def work() -> None:
        app = build_worker(settings)
        app.announce = lambda address: announce(
            f"{address} says when it is ready.", settings.log_format
        )
        await serve(app)

    run(work())
    exit_at_once(0)  # everything is handed over; freeing 10,000 routers would take ten seconds more


def run_crew(settings: Settings, *, processes: int, log_level: str) -> None:
    """Run several workers as one; exit with the status of a worker that could not start."""
    from commands.crew.crew import Crew
    from streams.service.logs import announce

    announce(
        f"{processes} workers of {settings.app_id} on {settings.bootstrap}.", settings.log_format
    )

    async def work() -> int:
        crew = Crew(settings, processes=processes, log_level=log_level)
        crew.announce = lambda address: announce(
            f"{address} says when all are ready.", settings.log_format
        )
        await crew.run()
        return crew.status

    sys.exit(asyncio.run(work()))
