"""Keep all routers' numbers from the records of their topics, and the rows of their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ground.json_values import Document
from ground.messages import Record, key_text
from router_state.errors import InvalidConfig
from router_state.pools.pool_config import PoolConfig
from router_state.sessions.ranks import BELOW_OWN
from schemas import EVENTS, REPEATED, MalformedEvent, decode, decode_router
from schemas.costs import CostReported
from schemas.event import Event
from schemas.families import FamilyEstimated, ModelListed, SideListed
from schemas.pools import PoolDeclared, decode_pool
from schemas.rewards import WHOLE, RewardObserved
from schemas.routes import RouteDecided
from watching.dashboard.router_view import RouterView
from watching.joined import Joined, Request

Take = Callable[[RouterView, Any, float, float], None]
"""Function that takes in an event of one topic: its router, the event, when it happened, and
now."""
TOPICS = (
    ("routers", "pools", "families"),
    ("lambda", "routes", "alerts", "refusals"),
    ("rewards", "costs"),
)
"""Topics that are followed, in the order in which their past is read: a published state names the
declaration in force, and labels and bills are of decisions. None of them holds prompts.
"""
MOST_ROUTERS = 100_000
"""Most routers kept: ten times as many as one worker serves (PB_ROUTERS_PER_WORKER)."""

Row = Document
SORTS = (
    "router_id",
    "rate",
    "spend_usd",
    "ratio",
    "quality",
    "saved",
    "saved_mix",
    "lambda_t",
    "in_flight",
    "alarms",
)
"""Columns of the table."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of the table that a visitor has asked for.

    Attributes:
        sort: a column; search: a part of a router's or a model's name; allows: tells which routers
            the visitor may see.
    """

    sort: str = "spend_usd"
    descending: bool = True
    search: str = ""
    begin: int = 0
    count: int = 100
    allows: Callable[[str], bool] = lambda router_id: True


class Fleet:
    """All routers, pools and families of a service, as the dashboard shows them.

    Args:
        rank: the rank of a label's source; a label of higher rank replaces one of lower rank.

    Attributes:
        version, inbox_version: numbers that grow with each event, and with each change of the
            requests that people are asked to label.
    """

    def __init__(self, rank: Callable[[str], int]) -> None:
        self.routers: dict[str, RouterView] = {}
        self.pools: dict[str, PoolDeclared] = {}
        self.families: dict[str, FamilyEstimated] = {}
        self.version = 0
        self.events = 0
        self.inbox_version = 0
        self.unreadable = 0
        self._rank = rank
        self._joined: Joined[tuple[Take, Event, float]] = Joined()
        self._rows: dict[str, tuple[int, Row]] = {}
        self._take: dict[str, Take] = {
            "lambda": lambda router, event, at, now: router.take_state(event, at=at),
            "routes": self._decide,
            "rewards": self._label,
            "costs": self._bill,
            "alerts": lambda router, event, at, now: router.take_alert(event, at=at),
            "refusals": lambda router, event, at, now: router.take_refusal(event, at=at),
        }

    def observe(self, name: str, record: Record, *, now: float) -> None:
        """Apply a record; an unreadable one is only counted.

        Args:
            name: the topic, without its prefix.
            now: in seconds since the epoch; later timestamps count as now.
        """
        self.version += 1
        self.events += 1
        # A producer's clock that is ahead would push all bins into the future.
        at = min(record.timestamp / 1000.0, now)
        try:
            if name == "routers":
                self._declare(record, at)
            elif name == "pools":
                self._declare_pool(record)
            elif name == "families":
                self._estimate(record)
            elif name == "lambda" and record.value is None:
                self._remove(key_text(record))
            else:
                self.take(name, decode(EVENTS[name], record.value), at=at, now=now)
        except (MalformedEvent, InvalidConfig, TooManyRouters):
            self.unreadable += 1

    def take(self, name: str, event: Any, *, at: float, now: float) -> None:
        """Apply an event of a topic that workers or clients write; `at` is the event's time."""
        # Any client may name any router in an event; only workers write decisions and states.
        made = name in ("lambda", "routes") or event.key in self.routers
        router = self.router(event.key) if made else RouterView(event.key)
        self._take[name](router, event, at, now)

    def router(self, router_id: str) -> RouterView:
        """Return a router; a new one is added."""
        found = self.routers.get(router_id)
        if found is None:
            if len(self.routers) >= MOST_ROUTERS:
                raise TooManyRouters
            found = self.routers[router_id] = RouterView(router_id)
        return found

    def request(self, router_id: str, request_id: str) -> Request | None:
        """Return a request with its bill and its label; None if it is not known, or known no
        longer.
        """
        return self._joined.get(router_id, request_id)

    def page(self, asked: Asked, *, now: float) -> tuple[list[Row], int]:
        """Return the rows asked for, and the number of all rows."""
        word = asked.search.casefold()
        rows = [
            self.row(router, now=now)
            for router in self.routers.values()
            if asked.allows(router.router_id) and (not word or _holds(router, word))
        ]
        rows.sort(key=lambda row: row["router_id"])
        if asked.sort != "router_id":
            # Rows without a value come last in either order.
            worst = float("-inf") if asked.descending else float("inf")
            rows.sort(
                key=lambda row: worst if row[asked.sort] is None else row[asked.sort],
                reverse=asked.descending,
            )
        elif asked.descending:
            rows.reverse()
        return rows[asked.begin : asked.begin + asked.count], len(rows)

    def row(self, router: RouterView, *, now: float) -> Row:
        """Return a router's row, computed anew if the router or its rate has changed."""
        version, row = self._rows.get(router.router_id, (-1, {}))
        if version != router.version:
            row = _row(router, now)
            self._rows[router.router_id] = router.version, row
        # A rate falls without any event, so a row with a rate may be stale.
        elif row["rate"] and (rate := round(router.rate(now), 2)) != row["rate"]:
            row = {**row, "rate": rate}
            self._rows[router.router_id] = version, row
        return row

    def total(self, allows: Callable[[str], bool], *, now: float) -> Document:
        """Return the sums over the routers that a visitor may see."""
        rows = [self.row(one, now=now) for one in self.routers.values() if allows(one.router_id)]
        return {
            "routers": len(rows),
            "rate": sum(row["rate"] for row in rows),
            "spend_usd": sum(row["spend_usd"] or 0.0 for row in rows),
            # Only routers with both figures count; others would look as if they saved nothing.
            "alone_usd": sum(row["alone_usd"] or 0.0 for row in rows),
            "saved_usd": sum((row["saved"] or 0.0) * (row["alone_usd"] or 0.0) for row in rows),
            "in_flight": sum(row["in_flight"] or 0 for row in rows),
            "suspected": sum(bool(row["suspects"]) for row in rows),
            "alarms": sum(row["alarms"] for row in rows),
        }

    def lead(self, allows: Callable[[str], bool], *, now: float) -> RouterView | None:
        """Return the router with the highest spend among those that a visitor may see; None: no
        router."""
        seen = (one for one in self.routers.values() if allows(one.router_id))
        return max(seen, key=lambda one: self.row(one, now=now)["spend_usd"] or 0.0, default=None)

    def _declare(self, record: Record, at: float) -> None:
        router_id, declared = decode_router(key=record.key, value=record.value)
        if declared is None and router_id not in self.routers:
            return
        router = self.router(router_id)
        # A router that was never taken up has no tombstone on `pb.lambda` to wait for.
        if declared is None and router.state is None:
            self._remove(router_id)
        else:
            again = REPEATED in dict(record.headers)
            router.take_declaration(record.offset, declared, at=at, again=again)

    def _declare_pool(self, record: Record) -> None:
        pool_id, declared = decode_pool(key=record.key, value=record.value)
        if declared is None:
            self.pools.pop(pool_id, None)
        elif pool_id in self.pools or len(self.pools) < MOST_ROUTERS:
            PoolConfig.read(declared, offset=record.offset)  # what workers refuse is not in force
            self.pools[pool_id] = declared

    def _estimate(self, record: Record) -> None:
        name = key_text(record)
        if record.value is None:
            self.families.pop(name, None)
        elif name in self.families or len(self.families) < MOST_ROUTERS:
            known = decode(FamilyEstimated, record.value)
            models = tuple(_without_sums(one) for one in known.models)
            self.families[name] = known.model_copy(update={"models": models})

    def _remove(self, router_id: str) -> None:
        self.routers.pop(router_id, None)
        self._rows.pop(router_id, None)

    def _decide(self, router: RouterView, event: RouteDecided, at: float, now: float) -> None:
        if event.repeat:
            return
        if event.seq == 1 and router.first_at not in (None, event.decided_at):
            router.begin_anew()
            self._joined.forget(router.router_id)
        if not self._joined.add(event):
            return
        router.take_decision(event, at=at)
        self.inbox_version += router.wanted.add(event)
        for take, early, then in self._joined.waited(router.router_id, event.request_id):
            take(router, early, then, now)

    def _label(self, router: RouterView, event: RewardObserved, at: float, now: float) -> None:
        if event.source is None:
            self._verdict(router, event, at, now)
            return
        if event.request_id is None:
            source, rank = WHOLE + event.source, self._rank(event.source) - BELOW_OWN
            for one in self._joined.session(router.router_id, event.session_id or ""):
                router.take_label(event, one, source=source, rank=rank, at=at)
            return
        self.inbox_version += router.wanted.take(event)
        request = self._joined.get(router.router_id, event.request_id)
        if request is None:
            self._joined.wait(router.router_id, event.request_id, (self._label, event, at))
        else:
            rank = self._rank(event.source)
            router.take_label(event, request, source=event.source, rank=rank, at=at)

    def _verdict(self, router: RouterView, event: RewardObserved, at: float, now: float) -> None:
        request_id = event.request_id or ""  # a verdict is of a request
        request = self._joined.get(router.router_id, request_id)
        if request is None:
            self._joined.wait(router.router_id, request_id, (self._verdict, event, at))
        else:
            router.take_verdict(event, request)

    def _bill(self, router: RouterView, event: CostReported, at: float, now: float) -> None:
        request = self._joined.get(router.router_id, event.request_id)
        if request is None:
            self._joined.wait(router.router_id, event.request_id, (self._bill, event, at))
        else:
            router.take_bill(event, request)


class TooManyRouters(Exception):
    """More routers than the dashboard keeps."""


def _holds(router: RouterView, word: str) -> bool:
    return word in router.router_id.casefold() or any(
        word in model.casefold() for model in (router.declared.prices if router.declared else ())
    )


def _without_sums(model: ModelListed) -> ModelListed:
    """Leave out sums, which are kilobytes that no page shows."""

    def shown(side: SideListed | None) -> SideListed | None:
        return side and side.model_copy(update={"knows": ""})

    return model.model_copy(update={"rewards": shown(model.rewards), "bills": shown(model.bills)})


def _row(router: RouterView, now: float) -> Row:
    state = router.state
    picture = router.pareto()
    best, saved_mix = picture.best, picture.saved_mix
    return {
        "router_id": router.router_id,
        "rate": round(router.rate(now), 2),
        "decided": state and state.decided,
        "spend_usd": state and state.spend_usd,
        "budget_usd": state and state.budget_usd_per_request,
        "ratio": router.spend_per_budget,
        "quality": router.tally.labels.value,
        "saved": picture.saved,
        # Cost of the same calls at the best model.
        "alone_usd": None
        if picture.saved is None or best is None
        else best.cost_usd * router.tally.bills.n,
        "saved_mix": saved_mix,
        "beyond_mix": saved_mix == float("inf"),
        "lambda_t": state and state.lambda_t,
        "in_flight": state and state.in_flight,
        "alarms": router.alarms,
        "suspects": [f"{model}" for model in router.suspects],
        "declaration": router.declaration_status,
        "news": router.news[-1].text if router.news else None,
    }
