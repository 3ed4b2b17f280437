"""Run the whole demo: a broker, topics, one worker, the paper's portfolio, the benchmark, a
report.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from uuid import uuid4

import click
import numpy as np
from rich.console import Console
from rich.live import Live

from commands.broker.choose import Broker, choose_broker
from commands.broker.wire import free_ports
from commands.demo.benchmark import projection_for
from commands.demo.demo_clients import Traffic
from commands.demo.demo_play import Scenario
from commands.demo.paper_models import held_out_prompts, known_before, paper_router
from commands.demo.player import Play, Player
from commands.demo.ramp import on_a_ramp, proved
from commands.demo.report import Report
from commands.demo.shocks import SHOCKS
from commands.demo.stage import beside, delete_topics, running_dashboard, running_worker
from drawing.alert_words import sentence
from streams.encoder.encoder_choice import choose_encoder, variables_of
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings
from watching import screen
from watching.board import Board

ROUTER_ID = "default"
"""The router of the quick start: its commands look at the demo, too."""
REDRAW_EVERY = 0.12
"""Seconds between two pictures on a terminal."""
LINE_EVERY = 2.0
"""Seconds between two lines elsewhere."""


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of a demo's run; `requests` None: all of them."""

    requests: int | None = None
    shock: str = "none"
    in_flight: int = 100
    seed: int = 0
    profile: str = "live"
    budget_usd: float = 3e-4
    ramp: bool = False
    encoder: str = "static"
    keep: bool = False
    folder: Path | None = None


def show(options: Options, *, out: Console) -> Report:
    """Run the demo, leave its results in a folder, stop everything that was started, and return the
    report.

    Raises:
        KafkaUnavailable: no broker can be had.
        MissingData: the benchmark is not installed.
        Failure: the worker ended, or stopped answering.
    """
    folder = options.folder or Path("runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True, exist_ok=True)
    scenario = compose(options)
    with ExitStack() as stack:
        started = time.monotonic()
        broker = stack.enter_context(choose_broker(say=out.print))
        out.print(
            f"Broker   {broker.bootstrap} ({broker.kind}, {time.monotonic() - started:.1f} s)"
        )
        settings = _own_settings(broker)
        asyncio.run(create_topics(settings))
        # A broker of somebody else goes on after the demo; its own brokers end with their topics.
        if broker.kind == "env":
            stack.callback(lambda: asyncio.run(delete_topics(settings)))
        projection_for(options.encoder).save(folder / "projection")
        log, started = folder / "worker.log", time.monotonic()
        environment = _environment(folder, options.encoder)
        # Started in its own process, as an operator would: the demo shows the product.
        process = stack.enter_context(running_worker(settings, environment=environment, log=log))
        out.print(f"Worker   ready after {time.monotonic() - started:.1f} s, log in {log}")
        opens = out.is_terminal and _has_screen()
        board = folder / "dashboard.log"
        address = stack.enter_context(
            running_dashboard(settings, environment=environment, opens=opens, log=board)
        )
        out.print(
            f"Dashboard {address}#/router/{ROUTER_ID}, for as long as this runs; --keep keeps it"
        )
        play = _play(scenario, settings, options, process, log, out)
        report = Report(
            scenario,
            play,
            options.profile,
            options.shock,
            seed=options.seed,
            in_flight=options.in_flight,
            proof=proved(ROUTER_ID, settings, folder) if options.ramp else None,
        )
        report.save(folder)
        _tell(report, folder, out)
        if options.keep:
            _stay(settings, environment, process, log, out)
    return report


def _has_screen() -> bool:
    """Tell whether this machine has a screen for a browser."""
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


def compose(options: Options) -> Scenario:
    """Return the scenario that the options describe."""
    declared = paper_router(
        known_before(options.encoder),
        router_id=ROUTER_ID,
        budget_usd=options.budget_usd,
        profile=options.profile,
    )
    if options.ramp:
        declared = on_a_ramp(declared)
    prompts = held_out_prompts(declared)
    sampled = prompts.sampled(
        options.requests or len(prompts), rng=np.random.default_rng(options.seed)
    )
    return SHOCKS[options.shock](sampled)


def _environment(folder: Path, encoder: str) -> dict[str, str]:
    """Return the environment of processes that read the demo's prompts: worker, dashboard,
    replay."""
    chosen = choose_encoder(load_settings(), encoder)
    return {**variables_of(chosen), "PB_PROJECTION_PATH": str((folder / "projection").absolute())}


def _own_settings(broker: Broker) -> Settings:
    # Its own prefix and group: on a shared broker nothing of others is touched.
    name = f"demo-{datetime.now():%H%M%S}-{uuid4().hex[:6]}"
    return load_settings(
        bootstrap=broker.bootstrap, prefix=f"{name}.", app_id=name, web_port=free_ports(1)[0]
    )


def _play(
    scenario: Scenario,
    settings: Settings,
    options: Options,
    process: subprocess.Popen[bytes],
    log: Path,
    out: Console,
) -> Play:
    traffic = Traffic(scenario, in_flight=options.in_flight, seed=options.seed)
    total = len(scenario)

    def playing(draw: Callable[[Board], None], every: float) -> Play:
        last = float("-inf")

        def look(board: Board) -> None:
            nonlocal last
            # The player calls this after each poll, far more often than a terminal should be
            # redrawn.
            if time.monotonic() - last >= every:
                last = time.monotonic()
                draw(board)

        return asyncio.run(beside(process, Player(settings, traffic, look=look).play(), log=log))

    if not out.is_terminal:
        return playing(
            lambda board: out.print(
                screen.line(board, now=time.monotonic(), total=total), soft_wrap=True
            ),
            LINE_EVERY,
        )
    with Live(console=out, refresh_per_second=10, transient=True) as live:
        footer = "Bills come some 30 decisions later, rewards some 100. Ctrl-C stops everything."
        return playing(
            lambda board: live.update(
                screen.draw(board, now=time.monotonic(), total=total, footer=footer)
            ),
            REDRAW_EVERY,
        )


def _tell(report: Report, folder: Path, out: Console) -> None:
    out.print()
    out.print(report.table())
    out.print(f"[bold]{report.answer}[/bold]", soft_wrap=True)
    for text in (report.result, report.lead, report.why):
        if text:
            out.print(text, soft_wrap=True)
    out.print(report.summary, soft_wrap=True)
    for alert in report.play.alerts:
        out.print(f"Alert: {sentence(alert)}", soft_wrap=True)
    if report.play.dead_letters:
        out.print(
            f"[red]{len(report.play.dead_letters)} events were refused; their reasons are in "
            f"{folder / 'demo.json'}[/red]"
        )
    out.print(f"\nReport   {folder / 'demo.html'}")
    out.print(
        '\nNext     make demo ARGS="--shock price-cut"        (or price-rise, model-failure, '
        "new-model)"
    )
    out.print('         make demo ARGS="--budget 6.62e-4"         (another budget)')
    out.print(
        '         make demo ARGS="--profile paper"          (the paper\'s policy, with the same '
        "delays)"
    )
    out.print(
        '         make demo ARGS="--ramp"                   (take over from one model step by step)'
    )
    out.print(
        '         make demo ARGS="--requests 300 --keep"    (and then, beside it: pbstream '
        "watch, request, explain)"
    )


def _stay(
    settings: Settings,
    environment: Mapping[str, str],
    process: subprocess.Popen[bytes],
    log: Path,
    out: Console,
) -> None:
    out.print("\nBroker and worker go on until Ctrl-C. In another terminal:\n")
    out.print(
        f"  export PB_BOOTSTRAP={settings.bootstrap} PB_PREFIX={settings.prefix} "
        f"PB_APP_ID={settings.app_id}",
        soft_wrap=True,
    )
    # The encoder's settings: without them a replay would make other contexts.
    told = " ".join(f"{name}={quote(value)}" for name, value in environment.items())
    out.print(f"  export {told}", soft_wrap=True)
    for command in (
        "watch",
        "explain r-00001",
        'request "Why is the sky blue?"',
        "budget set 3e-4",
        "models list",
        "replay --verify",
    ):
        out.print(f"  pbstream {command}")
    try:
        asyncio.run(beside(process, asyncio.Event().wait(), log=log))
    except KeyboardInterrupt:
        click.echo("Stopping ...", err=True)
