"""The capability of sessions: rewards for all requests of a session, and savings from prompts that
a model has just seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import orjson
from msgspec import structs

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.cache_price import CachePrice
from router_state.capability import Capability, Shared
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Price
from router_state.drawers import Drawers
from router_state.events import Judged
from router_state.kernel import PRICES
from router_state.packing.framing import Json
from router_state.record import PLAIN, Records, RequestRecord
from router_state.sessions import caching
from router_state.sessions.cache_prices import ModelOnWire, cache_of, document
from router_state.sessions.caching import Caching
from router_state.sessions.conversation import Session, saved, warmth
from router_state.sessions.credit import CREDITED, WHOLE, requests_of, shares
from router_state.sessions.turn import ALONE, NAME, Turn, turn_of

PIECE = "\x1fsession"
"""Prefix of the names of pieces that hold sessions."""


class OnWire(Protocol):
    """A router's declaration; each of `models` may have prices of cached input."""

    @property
    def models(self) -> Mapping[str, ModelOnWire]: ...


class Sessions(Capability):
    """The sessions of a router. Requests of any router may name one.

    Attributes:
        prices: prices of cached input, by model that has any.
        known: the remembered sessions.
        caching: how often caches are hit, and savings of the window's requests.
    """

    __slots__ = ("caching", "known", "prices")
    name = NAME
    declaration = dict[str, CachePrice]
    undeclared = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.prices: Mapping[str, CachePrice] = {}
        self.known, self.caching = Drawers(Session, PIECE, journal), Caching(journal)

    @classmethod
    def read(cls, wire: OnWire) -> dict[str, CachePrice] | None:
        """See Capability."""
        found = {name: cache_of(model) for name, model in wire.models.items()}
        return {name: cache for name, cache in found.items() if cache is not None} or None

    @classmethod
    def document_model(cls, declared: Mapping[str, CachePrice], model: str) -> dict[str, object]:
        """See Capability."""
        return document(declared[model]) if model in declared else {}

    def declare(self, declared: Mapping[str, CachePrice] | None, *, now: float) -> None:
        """See Capability."""
        self.prices = declared or {}
        if not self.prices:
            self.caching.clear()

    # A decision.

    def expect(self, choice: Choice) -> None:
        """See Capability: subtracts the savings of warm prefixes from the expected costs."""
        name, tokens, arms = choice.request.session_id, choice.request.input_tokens, self.arms
        if not self.prices or name is None or tokens is None:
            return
        if choice.saves is None:
            choice.warm = warmth(self.known.find(name), self.prices, tokens, now=choice.now)
            choice.saves = saved(arms, self.caching, self.prices, choice.warm, tokens)
        # Savings are known only if input tokens are priced apart.
        if choice.saves and arms.tokens.in_use:
            saves, costs = choice.saves, choice.seen.expected_cost_usd
            choice.seen.expected_cost_usd = [
                max(cost - self._usd(k, saves.get(name, 0.0)), 0.0)
                for k, (name, cost) in enumerate(zip(arms.names, costs, strict=True))
            ]

    def _usd(self, k: int, tokens: float) -> float:
        model = self.arms.costs[k]
        return 0.0 if model.free else model.paid * model.per_input_token * tokens

    @property
    def slots(self) -> Iterable[int]:
        """See Capability."""
        return self.caching.slots

    def placed(self, slot: int, choice: Choice) -> None:
        """See Capability."""
        if choice.saves is not None or self.caching.slots:
            self.caching.place(slot, choice.saves)

    def expect_window(self, costs: Matrix) -> None:
        """See Capability."""
        if not self.arms.tokens.in_use:
            return
        row = self.arms.row
        for slot, saves in self.caching.slots.items():
            for name, tokens in saves.items():
                if (k := row.get(name)) is not None:
                    model = self.arms.costs[k]
                    usd = tokens * model.per_input_token * model.paid * PRICES.item(slot)
                    costs[slot, k] = max(costs[slot, k] - usd, 0.0)

    def begin_window(self) -> None:
        """See Capability."""
        self.caching.begin_window()

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability: stores the request as the last turn of its session, and the price of
        cached input for its bill.
        """
        name, cache, turn = choice.request.session_id, self.prices.get(record.model), ALONE
        if name is not None:
            session = self._turn(name, record)
            turn = Turn(session.last, dict(choice.warm or {}))
            session.last = choice.request.request_id
            record.call = structs.replace(record.call or PLAIN, session_id=name)
        if cache is not None:
            turn = structs.replace(turn, cache=cache)
        if turn != ALONE:
            record.keep(self.name, turn)

    @classmethod
    def published(cls, record: RequestRecord) -> dict[str, object]:
        """See Capability."""
        call = record.call
        return {} if call is None or call.session_id is None else {"session_id": call.session_id}

    def _turn(self, name: str, record: RequestRecord) -> Session:
        at, tokens = record.decided_at, record.input_tokens
        session = self.known.find(name) or Session(0, at, {})
        session.turns, session.at = session.turns + 1, at
        if tokens is not None and record.model in self.prices:
            session.seen(record.model, tokens, at=at)
        self.known.use(name, session)
        return session

    # What follows it.

    def billed(self, billing: Billing) -> None:
        """See Capability: notes which model saw the session's prompt, and learns whether the cache
        was hit.
        """
        if billing.answered:
            return
        call, tokens = billing.record.call, billing.record.input_tokens
        if call is not None and call.session_id is not None and tokens is not None:
            self._learn(billing, call.session_id, tokens)
        if self.arms.tokens.in_use:
            billing.input_tokens = self._counted(billing)

    def _learn(self, billing: Billing, name: str, tokens: int) -> None:
        event, called, at = billing.event, billing.called, billing.record.decided_at
        session = self.known.find(name)
        if billing.unanswered:
            if session is not None and session.unseen(called, at=at):
                self.known.changed(name)
            return
        if session is not None and called != billing.record.model and called in self.prices:
            session.seen(called, tokens, at=at)
            self.known.changed(name)
        warm = turn_of(billing.record).warm.get(called, 0)
        if event.cached is not None and warm > 0:
            self.caching.learn(called, event.cached / warm)

    def _counted(self, billing: Billing) -> float | None:
        """Return the number of tokens at list price that cost as much as the input of a billed
        call; None: as many as the input has.
        """
        record, called, cached = billing.record, billing.called, billing.event.cached
        tokens, call = self.arms.tokens.of(record.input_tokens), record.call
        cache, arm = self._cache_of(record, called), self.arms.find(called)
        if cache is None or (arm is None and called != record.model):
            return None
        if cached is not None:
            hit = min(float(cached), tokens)
        elif call is not None and record.input_tokens is not None:
            warm = turn_of(record).warm.get(called, 0)
            hit = min(warm * self.caching.chance(called), tokens)
        else:
            return None
        price = record.price if arm is None or called == record.model else arm.price
        return _counts(cache, record, price, tokens=tokens, cached=hit)

    def discount_usd(
        self, record: RequestRecord, price: Price, *, called: str, tokens: int, cached: int | None
    ) -> float:
        """See Capability: cached tokens cost less, tokens written to the cache cost more."""
        cache = self._cache_of(record, called)
        if cache is None or cached is None:
            return 0.0
        counts = _counts(cache, record, price, tokens=tokens, cached=min(cached, tokens))
        return (tokens - counts) * price.input_price_per_m / 1e6

    def _cache_of(self, record: RequestRecord, called: str) -> CachePrice | None:
        """Return the price of cached input for a billed call; for the decided model, the price at
        the decision.
        """
        if called != record.model:
            return self.prices.get(called)
        return turn_of(record).cache

    def requests_of(
        self, name: str, records: Records, *, most: int = CREDITED
    ) -> dict[str, RequestRecord]:
        """Return the last requests of a session, see `credit.requests_of`."""
        session = self.known.find(name)
        return requests_of(None if session is None else session.last, name, records, most=most)

    def shared(self, event: Judged, records: Records) -> Shared | None:
        """See Capability."""
        if not event.request_id.startswith(WHOLE):
            return None
        requests = self.requests_of(event.request_id.removeprefix(WHOLE), records)
        return requests, shares(event, requests)

    def start_over(self) -> None:
        """See Capability."""
        self.known.clear()

    # Its state.

    @classmethod
    def head(cls, one: Sessions | None) -> dict[str, Json]:
        """See Capability."""
        return {} if one is None or not one.known.pieces else {"sessions": len(one.known)}

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        own = () if self.caching.values() is None else (caching.PIECE,)
        return (*own, *self.known.pieces)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece == caching.PIECE:
            values = self.caching.values()
            return None if values is None else orjson.dumps(values)
        return self.known.pack(piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(caching.PIECE):
            self.caching.restore(kept)
        if head.get("sessions") or self.prices:
            self.known.restore(piece)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not self.known.are_sound():
            yield "drawers of sessions"
        if not all(one.is_sound for one in self.known):
            yield "sessions"


def _counts(
    cache: CachePrice, record: RequestRecord, price: Price, *, tokens: float, cached: float
) -> float:
    writes = record.call is not None and bool(record.call.session_id)
    return cache.counts_as(tokens, cached, input_per_m=price.input_price_per_m, writes=writes)
