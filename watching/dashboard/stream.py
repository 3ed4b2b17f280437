"""Stream a page's changes as server-sent events, at most four times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Protocol

import orjson

from drawing.budget_lines import standing_lines
from drawing.source_lines import asked_lines, source_lines
from ground.json_values import Document
from schemas import LambdaUpdated
from watching.dashboard.bins import Bins
from watching.dashboard.fleet import Asked, Fleet
from watching.dashboard.router_view import RouterView
from watching.dashboard.verifiers_view import verifiers_of

EVERY = 0.25
"""Seconds between two updates of a page."""
SORTED_EVERY = 1.0
"""Seconds between two sorts of the table; faster sorting would make it unreadable."""
HEARTBEAT = 10.0
"""Seconds of silence before a heartbeat, so that no proxy takes the stream for dead."""
MOST_STREAMS = 200
"""Most open pages, over all visitors."""
COLUMNS = ("begins", "at", "requests", "lambda", "ratio", "reward")
"""Columns of the charts that every router has."""
JSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
"""Options of orjson: bins are arrays, and some keys are numbers."""


class View(Protocol):
    """A part of a page that is updated while the page is open."""

    def changes(self, *, now: float) -> Document | None:
        """Return what differs from the numbers that were sent before; None: nothing differs."""
        ...


class Table:
    """The rows of the table that one page shows."""

    def __init__(self, fleet: Fleet, asked: Asked) -> None:
        self._fleet = fleet
        self._asked = asked
        self._order: list[str] = []
        self._count = 0
        self._sent: dict[str, Document] = {}
        self._sorted_at = float("-inf")
        self._version = -1
        self._lead: Document | None = None

    def changes(self, *, now: float) -> Document | None:
        """Return the changes since the last update; None without any."""
        fleet, asked = self._fleet, self._asked
        found: Document = {}
        # Rows change four times a second, their order once.
        due = now - self._sorted_at >= SORTED_EVERY and fleet.version != self._version
        if due or self._version < 0:
            first = self._version < 0
            self._sorted_at, self._version = now, fleet.version
            rows, self._count = fleet.page(asked, now=now)
            order = [row["router_id"] for row in rows]
            found["total"] = fleet.total(asked.allows, now=now)
            lead = fleet.lead(asked.allows, now=now)
            if lead is not None:
                shown = fleet.row(lead, now=now) | {
                    "cost_usd": lead.cost_usd,
                    "picture": drawn(lead),
                }
                if shown != self._lead:
                    found["lead"] = self._lead = shown
            if order != self._order or first:
                self._order = order
                found |= {"begin": asked.begin, "count": self._count, "order": order}
        rows = [
            fleet.row(fleet.routers[one], now=now) for one in self._order if one in fleet.routers
        ]
        changed = {row["router_id"]: row for row in rows if self._sent.get(row["router_id"]) != row}
        if changed:
            found["rows"] = list(changed.values())
        self._sent = {row["router_id"]: row for row in rows}
        return found or None


class Single:
    """The page of one router: its numbers, models and charts."""

    def __init__(self, fleet: Fleet, router_id: str) -> None:
        self._fleet = fleet
        self._router_id = router_id
        self._version = -1
        self._bins: Bins | None = None
        self._shown = 0, 0.0

    def changes(self, *, now: float) -> Document | None:
        """Return the router if it has changed; of charts that were sent before, only the last
        bins.
        """
        router = self._fleet.routers.get(self._router_id)
        if router is None:
            was, self._version = self._version, -2
            return None if was == -2 else {"router": None}
        row = self._fleet.row(router, now=now)
        if self._version == router.version and not row["rate"]:
            return None
        self._version = router.version
        return {"router": row | details(router), "series": self._series(router), "now": now}

    def _series(self, router: RouterView) -> Document:
        found = router.charts.series()
        begins: list[float] = found["begins"]
        same = self._bins is router.charts.bins and self._shown[0] == router.charts.bins.layout
        since, self._bins = self._shown[1], router.charts.bins
        self._shown = router.charts.bins.layout, begins[-2] if len(begins) > 1 else 0.0
        # A late bill or label may still change the last two bins.
        keep = next((at for at, time_ in enumerate(begins) if time_ >= since), 0) if same else 0
        shares = {model: values[keep:] for model, values in found["shares"].items()}
        cut = {name: found[name][keep:] for name in COLUMNS}
        return {
            "from": begins[keep] if begins else None,
            "first": begins[0] if begins else None,
            **cut,
            "shares": shares,
        }


def details(router: RouterView) -> Document:
    """Return the fields of a router's page beyond its row of the table."""
    state, shares = router.state, router.charts.shares()
    prices = router.declared.prices if router.declared else {}
    models = [
        router.tally.model(name).shown(name, prices.get(name), shares.get(name, 0.0))
        | {"suspect": router.suspects.get(name), "down": router.down.get(name)}
        for name in dict.fromkeys([*prices, *router.tally.models])
    ]
    return {
        "models": models,
        "picture": drawn(router),
        "news": [one._asdict() for one in router.news],
        "state": state
        and state.model_dump(mode="json", exclude={"applied", "unbooked", "verifiers"}),
        "verifiers": verifiers_of(router),
        # Budgets of a period have a picture.
        "standings": [] if state is None else standing_lines(_without_periods(state)),
        "labelling": _labelling(router),
        "declared_budget_usd": router.declared and router.declared.budget_usd,
        "cost_usd": router.cost_usd,
        "labels": router.tally.labels.n,
        "settled": state and state.settled,
        "rewarded": state and state.rewards_applied,
        "refused": router.refused,
    }


def _labelling(router: RouterView) -> Document:
    """Return the sentences about a router's labels, and what is known of each judge."""
    state = router.state
    asked = () if state is None or state.labels is None else asked_lines(state.labels)
    sources = () if state is None else state.sources or ()
    return {
        "asks": bool(asked),
        "lines": [*asked, *source_lines(tuple(sources))],
        "judges": [
            one.model_dump(mode="json", include={"source", "models"})
            for one in sources
            if not one.gold
        ],
    }


def _without_periods(state: LambdaUpdated) -> LambdaUpdated:
    return state.model_copy(update={"budgets": None})


def drawn(router: RouterView) -> Document:
    """Return the picture for `pareto.js`, and the figures beside it."""
    picture, tally = replace(router.pareto(), tail=router.charts.path()), router.tally
    begins = router.charts.bins.table().first
    return picture.document() | {
        "facts": picture.facts(tally.bills.n),
        "decisions": tally.decisions,
        "bills": tally.bills.n,
        "labels": tally.labels.n,
        "since": float(begins[0]) if len(begins) else None,
    }


async def updates(
    view: View, state: Callable[[], Document], closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield a page's events until the page is closed or the server ends.

    Args:
        state: function that returns the server's own status, which is sent when it changes.
    """
    said: Document | None = None
    heard = time.monotonic()
    yield b"retry: 1000\n\n"
    while not closing.is_set():
        found = view.changes(now=time.time()) or {}
        if (now_state := state()) != said:
            found["state"] = said = now_state
        if found:
            heard = time.monotonic()
            yield b"data: " + orjson.dumps(found, option=JSON) + b"\n\n"
        elif time.monotonic() - heard > HEARTBEAT:
            heard = time.monotonic()
            yield b": \n\n"
        try:
            async with asyncio.timeout(EVERY):
                await closing.wait()
        except TimeoutError:
            continue
