"""`pbstream watch`: watch a running service live."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from rich.live import Live

from doors.console.bus import Bus, open_bus
from doors.console.output import console, print_json
from doors.console.session import Session, json_option, pass_session, router_option, run
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of
from ground.messages import Record
from schemas import EVENTS, DeadLetter, MalformedEvent, decode

if TYPE_CHECKING:
    from watching.board import Board

TOPICS = ("routers", "lambda", "routes", "costs", "rewards", "alerts", "dlq")
"""Topics of a view, in the order in which their past is read."""
RECENT = {"routes": 10_000, "costs": 20_000, "rewards": 20_000}
"""Number of newest records of a topic with which a view begins: ten thousand decisions, with their
bills and labels; of another topic `FEW`."""
FEW = 1_000
"""See `RECENT`."""
LINE_EVERY = 2.0
"""Seconds between two lines where the output is no terminal."""


@click.command()
@router_option
@click.option("--once", is_flag=True, help="Show what the topics hold now, and end.")
@json_option
@pass_session
def watch(session: Session, router_id: str, once: bool, as_json: bool) -> None:
    """Watch a router: requests/s, spend against budget, λ_t, shares, rewards, dead letters, alerts.
    Ctrl-C ends it.

    \b
      pbstream watch
      pbstream watch --router acme.chat
      pbstream watch --once --json
    """
    try:
        run(_watch(session, router_id, once=once, as_json=as_json))
    except KeyboardInterrupt:
        click.echo()


async def _watch(session: Session, router_id: str, *, once: bool, as_json: bool) -> None:
    from watching import screen

    async with (
        open_bus(session.settings, *TOPICS, *STANDING) as bus,
        # Followed before the past is read, so that nothing is missed in between.
        bus.follow(*TOPICS, router_id=router_id) as records,
    ):
        board = await recent(bus, router_id, session.settings.source_rank)
        if once:
            if board.state is None:
                raise await absence_of(bus, router_id)
            _show(board, as_json)
            return
        out = console()
        if out.is_terminal and not as_json:
            with Live(console=out, refresh_per_second=8, screen=False) as live:
                while True:
                    _take(board, await records.arrivals())
                    live.update(
                        screen.draw(
                            board,
                            now=time.monotonic(),
                            footer="Ctrl-C ends this view, nothing else.",
                        )
                    )
        while True:
            until = time.monotonic() + LINE_EVERY
            while time.monotonic() < until:
                _take(board, await records.arrivals())
            _show(board, as_json, line=True)


def _show(board: Board, as_json: bool, *, line: bool = False) -> None:
    from watching import screen

    now = time.monotonic()
    if as_json:
        print_json(screen.as_json(board, now=now))
    elif line:
        click.echo(screen.line(board, now=now))
    else:
        console().print(screen.draw(board, now=now))


async def recent(bus: Bus, router_id: str, rank: Callable[[str], int]) -> Board:
    """Return a view of the newest records of every topic; it has no rates, as arrival times are
    unknown."""
    from watching.board import Board

    board = Board(router_id, rank=rank)
    for name in TOPICS:
        records = [
            record async for record in bus.backwards(name, router_id, limit=RECENT.get(name, FEW))
        ]
        # The oldest first, and without an arrival time, so that they count in no rate.
        _take(board, [(name, record) for record in reversed(records)], at=float("-inf"))
        await asyncio.sleep(0)
    return board


def _take(board: Board, arrivals: list[tuple[str, Record]], *, at: float | None = None) -> None:
    now = time.monotonic() if at is None else at
    for name, record in arrivals:
        # Other routers share the partition; a dead letter of a malformed event may have no key.
        if record.key is not None and record.key != board.router_id.encode():
            continue
        if name == "routers":
            board.declare(record)
            continue
        try:
            event: Any = (
                DeadLetter.from_headers(record.headers)
                if name == "dlq"
                else decode(EVENTS[name], record.value)
            )
        except MalformedEvent:
            continue
        if name == "dlq" or event.router_id == board.router_id:
            board.observe(event, at=now)
