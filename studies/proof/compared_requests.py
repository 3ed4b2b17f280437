"""Collect the requests that compare a router with its incumbent, with their costs and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from router_state.cache_price import CachePrice, usd_of
from router_state.config import Price
from router_state.long_inputs.declared_prices import price_of
from router_state.sessions.cache_prices import cache_of
from schemas.quick import Bill, Reward
from studies.history.happened import Billed, Decided, Declared, Happened, Rewarded

KIND = "kind"
"""Field of a request's metadata that names its kind of prompt."""
MOST_KINDS = 50
"""Most kinds that are told apart; requests of further kinds count as having none."""


class Compared(Struct):
    """A request that either side might have answered.

    Attributes:
        at: time of the decision, in seconds since the epoch.
        share: probability with which the router answered it; routed: whether it did.
        unit: the session for which the side was drawn; None: it was drawn for this request alone.
        named: the session that it names.
        bills: dollars and revision of each bill, by the call or the verdict that it is of.
        reward: the reward of its answer, with the rank of the source and the revision; None: no
            reward has come.
    """

    at: float
    model: str
    share: float
    routed: bool
    unit: str | None
    named: str | None
    kind: str | None
    bills: dict[str, tuple[float, int]] = {}
    reward: tuple[float, int, int] | None = None

    @property
    def cost_usd(self) -> float | None:
        """Return the dollars of the request's bills; None: no bill has come."""
        return math.fsum(usd for usd, _ in self.bills.values()) if self.bills else None

    @property
    def week(self) -> str:
        """Return the Monday of the request's week, in UTC."""
        day = datetime.fromtimestamp(self.at, UTC).date()
        return str(day - timedelta(days=day.weekday()))


class Requests:
    """The compared requests of a router, by name, in the order of their decisions.

    Every bill and every reward counts once: a later revision, or a reward of higher rank, replaces
    the one before.

    Args:
        rank_of: returns the rank of a source of rewards.

    Attributes:
        others: number of requests that allow no comparison, as all requests of their kind were
            routed or none was.
    """

    def __init__(self, rank_of: Callable[[str], int]) -> None:
        self.found: dict[str, Compared] = {}
        self.others = 0
        self._rank_of = rank_of
        self._by_session, self._kinds = False, set[str]()
        self._fees: dict[str, float] = {}
        self._prices: dict[str, tuple[Price, CachePrice | None]] = {}

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.found.values())

    def read(self, happened: Iterable[Happened]) -> None:
        """Take in the events of a history."""
        for event in happened:
            match event:
                case Declared():
                    self._declare(event)
                case Decided():
                    self._decide(event)
                case Billed():
                    self._bill(event.bill)
                case Rewarded():
                    self._reward(event)

    def _declare(self, event: Declared) -> None:
        if event.router is not None:
            self._by_session = event.router.by == "session"
            verifiers = event.router.verifiers or {}
            self._fees = {name: one.usd for name, one in verifiers.items()}
            self._prices = {
                name: (price_of(one), cache_of(one)) for name, one in event.router.models.items()
            }

    def _decide(self, event: Decided) -> None:
        decision, request = event.decision, event.request
        share = decision.routed_share
        if share is None or not 0.0 < share < 1.0:
            self.others += 1
            return
        session = request.session_id
        self.found[decision.request_id] = Compared(
            event.at,
            decision.model,
            share,
            decision.routed_by == "router",
            session if self._by_session else None,
            session,
            self._kind((request.metadata or {}).get(KIND)),
        )

    def _kind(self, kind: object) -> str | None:
        if not isinstance(kind, str):
            return None
        if len(self._kinds) < MOST_KINDS:
            self._kinds.add(kind)
        return kind if kind in self._kinds else None

    def _bill(self, bill: Bill) -> None:
        one = self.found.get(bill.request_id)
        if one is None:
            return
        attempt = f"call {bill.attempt or 0}"
        before = one.bills.get(attempt)
        usd = self._usd(one, bill)
        if usd is not None and (before is None or bill.revision > before[1]):
            one.bills[attempt] = usd, bill.revision

    def _usd(self, one: Compared, bill: Bill) -> float | None:
        if bill.cost_usd is not None:
            return bill.cost_usd
        priced = self._prices.get(bill.model or one.model)
        if priced is None or bill.tokens is None:
            return None
        into, out = bill.tokens
        return usd_of(
            priced[0],
            input_tokens=into,
            output_tokens=out,
            cached=bill.cached_input_tokens,
            cache=priced[1],
            writes=one.named is not None,
        )

    def _reward(self, event: Rewarded) -> None:
        label = event.reward
        if label.reward is None or label.source is None:
            self._verdict(label)
            return
        rank, session = self._rank_of(label.source), label.session_id
        if label.request_id is None:
            # A session's reward is that of its requests which have none.
            for one in self.found.values():
                if one.named == session and one.reward is None:
                    one.reward = label.reward, rank, label.revision
            return
        judged = self.found.get(label.request_id)
        if judged is None:
            return
        before = judged.reward
        if before is None or (rank, label.revision) > before[1:]:
            judged.reward = label.reward, rank, label.revision

    def _verdict(self, label: Reward) -> None:
        """Book what a verdict costs, once."""
        one, usd = self.found.get(label.request_id or ""), self._fees.get(label.verifier or "")
        if one is not None and usd is not None:
            one.bills.setdefault(f"{label.verifier} of call {label.attempt or 0}", (usd, 0))
