"""`pbstream top`: all routers, live."""

from __future__ import annotations

import time

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from doors.console.bus import Bus, Follower, open_bus
from doors.console.failures import first_model
from doors.console.output import console, print_json, table
from doors.console.session import DEFAULT_ROUTER, Session, json_option, option, pass_session, run
from drawing.numbers import dual, number, seconds, usd
from ground.json_values import Document
from schemas import LambdaUpdated, MalformedEvent, decode

SORTS = ("rate", "spend", "ratio", "lambda", "in-flight", "router")
"""Columns by which routers can be sorted, the largest first, and their names."""
LINE_EVERY = 2.0
"""Seconds between two lines if the output is no terminal."""
RATE_OVER = 5.0
"""Seconds over which decisions are counted to a rate."""


class Top:
    """The last state of every router, and how many decisions it made in the last seconds."""

    def __init__(self) -> None:
        self.states: dict[str, LambdaUpdated] = {}
        self._seen: dict[str, list[tuple[float, int]]] = {}

    def observe(self, key: bytes | None, value: bytes | None, *, at: float) -> None:
        """Take in a record of `pb.lambda`; null removes the router."""
        router_id = (key or b"").decode(errors="replace")
        if value is None:
            self.states.pop(router_id, None)
            self._seen.pop(router_id, None)
            return
        try:
            state = decode(LambdaUpdated, value)
        except MalformedEvent:
            return
        before = self.states.get(router_id)
        if before is None or state.observed_at >= before.observed_at:
            self.states[router_id] = state
            seen = self._seen.setdefault(router_id, [])
            seen.append((at, state.decided))
            # One record older than the window is kept: a rate is a difference and needs a start.
            while len(seen) > 2 and seen[1][0] < at - RATE_OVER:
                del seen[0]

    def rate(self, router_id: str, *, now: float) -> float:
        """Return decisions per second over the last five seconds."""
        # Records that were there at the start have no arrival time, see `_present`.
        seen = [one for one in self._seen[router_id] if one[0] > float("-inf")]
        if len(seen) < 2 or seen[-1][0] < now - RATE_OVER:
            return 0.0
        return max(0, seen[-1][1] - seen[0][1]) / max(seen[-1][0] - seen[0][0], 0.2)

    def rows(self, *, sort: str, now: float) -> list[Document]:
        """Return a row of each router, the largest first."""
        rows = [self._row(state, now) for state in self.states.values()]
        # Sorts are stable: routers that are equal in the column stay in the order of their names.
        rows.sort(key=lambda row: row["router_id"])
        if sort != "router":
            column = {
                "rate": "requests_per_second",
                "spend": "spend_usd",
                "ratio": "spend_per_budget",
                "lambda": "lambda_t",
            }
            rows.sort(key=lambda row: -(row[column.get(sort, "in_flight")] or 0.0))
        return rows

    def _row(self, state: LambdaUpdated, now: float) -> Document:
        budget = state.budget_usd_per_request
        mean = state.spend_usd / state.settled if state.settled else None
        ratio = None if mean is None or not budget else mean / budget
        if state.budgets or state.floor:
            # With a budget of a period the budget of a request varies, so the forecast of its end
            # counts.
            ends = [one.forecast_usd / one.usd for one in state.budgets or () if one.usd]
            ratio = max(ends, default=None)
        return {
            "router_id": state.router_id,
            "requests_per_second": round(self.rate(state.router_id, now=now), 3),
            "decided": state.decided,
            "in_flight": state.in_flight,
            "spend_usd": state.spend_usd,
            "budget_usd_per_request": budget,
            "spend_per_budget": ratio,
            "lambda_t": state.lambda_t,
            "rewards_applied": state.rewards_applied,
            "latency_ms": state.latency and state.latency.measured_ms,
            "latency_over": state.latency and state.latency.measured_over,
        }


@click.command()
@option("--sort", click.Choice(SORTS), "rate", "Column to sort by, the largest value first.")
@option("--rows", click.IntRange(1), 30, "Most routers to show.")
@click.option("--once", is_flag=True, help="Show what the topic holds now, and end.")
@json_option
@pass_session
def top(session: Session, sort: str, rows: int, once: bool, as_json: bool) -> None:
    """Watch all routers: requests/s, spend against budget, λ_t, in flight. Ctrl-C ends it.

    For a router with a budget for a period, spend ÷ budget is forecast for the period's end.

    \b
      pbstream top
      pbstream top --sort ratio
      pbstream top --once --json
    """
    try:
        run(_top(session, sort=sort, limit=rows, once=once, as_json=as_json))
    except KeyboardInterrupt:
        click.echo()


async def _top(session: Session, *, sort: str, limit: int, once: bool, as_json: bool) -> None:
    async with (
        open_bus(session.settings, "lambda") as bus,
        bus.follow("lambda", router_id=None) as records,
    ):
        board = await _present(bus)
        if once:
            _show(board, sort, limit, as_json)
            return
        out = console()
        if not out.is_terminal or as_json:
            while True:
                await _take(board, records, seconds=LINE_EVERY)
                _show(board, sort, limit, as_json)
        with Live(console=out, refresh_per_second=4, screen=False) as live:
            while True:
                await _take(board, records, seconds=0.5)
                live.update(_drawn(board, sort, limit))


async def _present(bus: Bus) -> Top:
    """Return the last state of every router, as the topic holds it."""
    board = Top()
    for key, value in (await bus.newest("lambda")).items():
        board.observe(key, value, at=float("-inf"))
    return board


async def _take(board: Top, records: Follower, *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for _, record in await records.arrivals(within=min(left, 0.2)):
            board.observe(record.key, record.value, at=time.monotonic())


def _show(board: Top, sort: str, limit: int, as_json: bool) -> None:
    if as_json:
        print_json(board.rows(sort=sort, now=time.monotonic())[:limit])
    else:
        console().print(_drawn(board, sort, limit))


def _time(row: Document) -> str:
    """Return the mean time of a router's calls, and the share of late ones."""
    if row["latency_ms"] is None:
        return "–"
    over = row["latency_over"]
    return seconds(row["latency_ms"]) + ("" if over is None else f", {over:.1%} late")


def _drawn(board: Top, sort: str, limit: int) -> Table | Text:
    rows = board.rows(sort=sort, now=time.monotonic())
    shown = table(
        "router", "requests/s", "decided", "in flight", "spend", "÷ budget", "λ_t", "rewarded"
    )
    timed = any(row["latency_ms"] is not None for row in rows)
    if timed:
        shown.add_column("time", justify="right")
    shown.caption = f"{len(rows):,} router{'' if len(rows) == 1 else 's'}" + (
        f", the first {limit} by {sort}" if len(rows) > limit else f", by {sort}"
    )
    if not rows:
        return Text(
            f"No router is in force yet: {first_model(DEFAULT_ROUTER)}; `pbstream routers list` "
            "shows what waits or was refused."
        )
    for row in rows[:limit]:
        ratio = row["spend_per_budget"]
        shown.add_row(
            row["router_id"],
            f"{row['requests_per_second']:.1f}",
            f"{row['decided']:,}",
            f"{row['in_flight']:,}",
            usd(row["spend_usd"]),
            "–" if ratio is None else number(ratio),
            dual(row["lambda_t"]),
            f"{row['rewards_applied']:,}",
            *([_time(row)] if timed else []),
        )
    return shown
