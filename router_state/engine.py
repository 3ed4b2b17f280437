"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state out."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence
from dataclasses import replace
from enum import StrEnum

from router_state import accounts, batches, deciding, export, housekeeping, learning, portfolio, suspecting
from router_state.config import RouterConfig, Vector
from router_state.errors import ContextLost, CostOutOfRange, UnknownRequest, UnpricedModel
from router_state.record import Bill, Label, RequestRecord
from router_state.state import RouterState

Records = MutableMapping[str, RequestRecord]
AT_ONCE = 10_000


class Outcome(StrEnum):
    """What a bill or a reward did to the state."""

    APPLIED = "applied"
    REVISED = "revised"
    DUPLICATE = "duplicate"


class Engine:
    """Moves the state of one router. Every event may be given again: what is contained already changes nothing.

    Args:
        state: the router's state, moved in place.
        records: the router's requests by request_id; the engine assigns each changed record back.
    """

    __slots__ = ("records", "state")

    def __init__(self, state: RouterState, records: Records) -> None:
        self.state = state
        self.records = records

    @classmethod
    def start(cls, config: RouterConfig, records: Records | None = None) -> Engine:
        """Return an engine for a router that was just declared; with a snapshot it goes on from that.

        Raises:
            InvalidConfig: the declaration contradicts itself, or its snapshot.
            CorruptSnapshot: the snapshot can't be read.
        """
        state, now = RouterState.start(config), 0.0
        if config.snapshot is not None:
            state = export.start(config.snapshot, config)
            now, config = state.latest, replace(config, snapshot=None)
        engine = cls(state, {} if records is None else records)
        engine.configure(config, now=now)
        return engine

    def configure(self, config: RouterConfig, *, now: float) -> None:
        """Put a declaration in force: models join, retire or change price, the budget changes; learned state stays.

        Raises:
            InvalidConfig: another number of dimensions, or a prior that does not fit; nothing has changed.
        """
        portfolio.declare(self.state, config, now=now)

    def decide(
        self,
        request_id: str,
        x: Vector,
        *,
        now: float,
        offset: int = -1,
        allowed_models: Collection[str] | None = None,
        max_price_per_1k: float | None = None,
    ) -> RequestRecord:
        """Choose a model for a request and commit its expected cost; a request that has its decision gets that again.

        Args:
            x: context, shape (d,), last entry 1.0.
            now: seconds since the epoch.
            offset: where in `pb.requests` the request was read.
            allowed_models: only these, whatever they cost.
            max_price_per_1k: only models with a list price up to this, in dollars per 1k tokens.

        Raises:
            WrongContext, NonFiniteInput: the context does not fit.
            EmptyPortfolio, NoAllowedModel, NoAffordableModel, CapReached: no model may be called. Nothing has changed.
        """
        known = self.records.get(request_id)
        if known is not None:
            return known
        record = deciding.decide(
            self.state, request_id, x, now=now, offset=offset, allowed_models=allowed_models, max_price_per_1k=max_price_per_1k
        )
        self.records[request_id] = record
        return record

    def decide_many(
        self, request_ids: Sequence[str], contexts: Sequence[Vector], *, now: float, offsets: Sequence[int] | None = None
    ) -> list[RequestRecord]:
        """Choose a model for each of n unrestricted requests; what `decide` would do for one after the other, up to rounding.

        The paper's policy does it in one go, several times as fast.

        Args:
            contexts: n of shape (d,).

        Raises:
            WrongContext, NonFiniteInput, EmptyPortfolio, CapReached: as `decide`; the requests before that one are decided.
        """
        offsets = [-1] * len(request_ids) if offsets is None else offsets
        decided = batches.decide(self.state, self.records, request_ids, contexts, now=now, offsets=offsets)
        if decided is None:
            each = zip(request_ids, contexts, offsets, strict=True)
            return [self.decide(request_id, x, now=now, offset=offset) for request_id, x, offset in each]
        return decided

    def settle(
        self,
        request_id: str,
        *,
        cost_usd: float | None = None,
        tokens: tuple[int, int] | None = None,
        model: str | None = None,
        revision: int = 0,
        x: Vector | None = None,
    ) -> Outcome:
        """Book the bill of a request: the first one settles the commitment, a higher revision replaces it by the difference.

        Args:
            cost_usd: dollars; or
            tokens: input and output tokens, priced as at the decision.
            model: which one was called, where that is known: another one than was decided if the caller could not wait.
            x: the context, where the record does not hold it; without one the bill teaches nothing about prompts.

        Raises:
            UnknownRequest: no decision carries this request_id.
            NonFiniteInput, CostOutOfRange: not a cost. Nothing has changed.
            UnpricedModel: tokens of a model that is not in the portfolio. Nothing has changed.
        """
        record = self.records.get(request_id)
        if record is None:
            raise UnknownRequest(f"no decision for request {request_id!r}")
        state, bill, called = self.state, record.bill, model or record.called
        price = accounts.price_of(state, record, called)
        if cost_usd is None:
            if tokens is None:
                raise CostOutOfRange("a bill needs cost_usd or token counts")
            if price is None:
                raise UnpricedModel("tokens of a model that is not in the portfolio have no price: report dollars")
            cost_usd = price.cost_usd(input_tokens=tokens[0], output_tokens=tokens[1])
        cost_usd = accounts.checked_cost(cost_usd)
        if bill is not None and revision <= bill.revision:
            return Outcome.DUPLICATE
        accounts.charge(state, record, cost_usd)
        if bill is None:
            state.settled += 1
            accounts.close(state, request_id, record)
            if price is not None:
                accounts.learn_cost(state, called, price, cost_usd, x if record.x is None else record.x)
                record.price = price
            if record.label is None:
                record.answered_by = None if called == record.model else called
        record.bill = Bill(cost_usd, revision)
        record.candidates = None
        self.records[request_id] = record
        return Outcome.APPLIED if bill is None else Outcome.REVISED

    def learn(
        self,
        request_id: str,
        *,
        reward: float,
        source: str = "judge",
        rank: int = 0,
        model: str | None = None,
        revision: int = 0,
        x: Vector | None = None,
    ) -> Outcome:
        """Learn a reward; one of higher rank, or of higher revision from the same source, revises an earlier one.

        Args:
            reward: quality in [0, 1].
            rank: of the source; higher ones win.
            model: which one was called, where that is known; the first reward learns it of that one.
            x: the context, where the record does not hold it.

        Raises:
            UnknownRequest: no decision carries this request_id.
            ContextLost: neither the record nor the caller has the context.
            NonFiniteInput, RewardOutOfRange: not a reward. Nothing has changed.
        """
        record = self.records.get(request_id)
        if record is None:
            raise UnknownRequest(f"no decision for request {request_id!r}")
        reward = learning.checked_reward(reward)
        label = record.label
        if label is not None and not (rank > label.rank or (source == label.source and revision > label.revision)):
            return Outcome.DUPLICATE
        context = x if record.x is None else record.x
        if context is None:
            raise ContextLost(f"the context of request {request_id!r} is in no store")
        if label is None:
            if model is not None:
                record.answered_by = None if model == record.model else model
            forgotten = suspecting.absorb(self.state, record, context, reward)
        else:
            forgotten = suspecting.revise(self.state, record.called, context, reward, label)
        record.label = Label(reward, source, rank, revision, forgotten)
        self.records[request_id] = record
        if label is None:
            self.state.rewards_applied += 1
        return Outcome.APPLIED if label is None else Outcome.REVISED

    def learn_many(
        self, rewards: Sequence[tuple[str, float]], *, source: str = "judge", rank: int = 0, revision: int = 0
    ) -> list[Outcome]:
        """Learn (request_id, reward) pairs; what `learn` would do for one after the other, up to rounding.

        The paper's policy takes first rewards in blocks, about twice as fast.

        Raises:
            UnknownRequest, ContextLost, NonFiniteInput, RewardOutOfRange: as `learn`; the rewards before that one are learned.
        """
        if batches.learn(self.state, self.records, rewards, source=source, rank=rank, revision=revision):
            return [Outcome.APPLIED] * len(rewards)
        return [self.learn(request_id, reward=r, source=source, rank=rank, revision=revision) for request_id, r in rewards]

    def expire(self, *, now: float, limit: int = AT_ONCE) -> int:
        """Stop waiting for bills older than the commitment's time limit; they stay charged at their expectation.

        The oldest first, at most `limit` of them: so how many have expired tells which.

        Returns:
            How many commitments expired.
        """
        return housekeeping.expire(self.state, self.records, now=now, limit=limit)

    def book_unmatched(self, cost_usd: float) -> None:
        """Count a bill whose request never got a decision: money all the same, apart from `spend_usd`."""
        self.state.unmatched_cost_usd += cost_usd

    def forget(self, *, before: float, limit: int = AT_ONCE) -> int:
        """Forget requests decided before this time (seconds since the epoch), at most `limit`, in the order of their decisions.

        Their repeats become new requests, their late bills and rewards orphans. Arms that retired before then are dropped.

        Returns:
            How many requests were forgotten.
        """
        gone = housekeeping.forget(self.state, self.records, before=before, limit=limit)
        portfolio.drop_retired(self.state, before=before)
        return gone

    def forget_early(self, *, keep: int, limit: int = AT_ONCE) -> int:
        """Forget what is remembered beyond `keep` requests, at most `limit` of them.

        Of the oldest ones those that have bill and reward, then the others; never one whose bill is awaited.

        Returns:
            How many requests were forgotten.
        """
        return housekeeping.forget_early(self.state, self.records, keep=keep, limit=limit)
