"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state out."""

from __future__ import annotations

import math
from collections.abc import Collection, MutableMapping
from enum import StrEnum
from itertools import islice

from router_state import learning, portfolio, scoring
from router_state.config import RouterConfig, Vector
from router_state.errors import (
    ContextLost,
    CostOutOfRange,
    EmptyPortfolio,
    NoAffordableModel,
    NoAllowedModel,
    NonFiniteInput,
    RewardOutOfRange,
    UnknownRequest,
)
from router_state.pacing import price_ceiling
from router_state.record import Bill, Candidates, Label, RequestRecord
from router_state.state import RouterState

MAX_COST_USD = 1000.0
TIE = 1e-12
KEEP_LAST = 128

Records = MutableMapping[str, RequestRecord]


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
        """Return an engine for a router that was just declared."""
        engine = cls(RouterState.start(config), {} if records is None else records)
        engine.configure(config, now=0.0)
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
        scoring.check_context(x, d=self.state.arms.d)
        return self._decide(request_id, x, scoring.project(self.state.arms, x), now, offset, allowed_models, max_price_per_1k)

    def _decide(
        self,
        request_id: str,
        x: Vector,
        projected: tuple[list[float], list[float], list[float]],
        now: float,
        offset: int,
        allowed_models: Collection[str] | None,
        max_price_per_1k: float | None,
    ) -> RequestRecord:
        state = self.state
        arms, knobs = state.arms, state.config.knobs
        mean, variance, ratio = projected
        bonus = scoring.bonuses(arms, variance, t=state.t, alpha=knobs.alpha, gamma=knobs.gamma, v_max=knobs.v_max)
        expected = [r * c for r, c in zip(ratio, arms.per_1k, strict=True)]
        lambda_t = state.lambda_t
        weight = knobs.lambda_c + lambda_t
        penalty = [weight * c for c in arms.log_price]
        excluded, relaxed = self._exclude(allowed_models, max_price_per_1k, lambda_t)
        candidates = Candidates(arms.names, mean, bonus, penalty, expected, excluded)
        k, reason, propensity = self._choose(candidates)
        if relaxed and reason == "ucb":
            reason = "ceiling_relaxed"
        record = RequestRecord(
            seq=state.seq + 1,
            model=arms.names[k],
            reason=reason,
            propensity=propensity,
            expected_reward=mean[k],
            expected_cost_usd=expected[k],
            lambda_t=lambda_t,
            config_offset=state.config.offset,
            decided_at=now,
            offset=offset,
            price=arms.price[k],
            x=x,
            candidates=candidates,
        )
        self._commit(request_id, record, k)
        return record

    def _exclude(
        self, allowed_models: Collection[str] | None, max_price_per_1k: float | None, lambda_t: float
    ) -> tuple[list[str | None], bool]:
        """Return per arm why it may not be called, and whether the price ceiling had to be given up."""
        arms = self.state.arms
        excluded: list[str | None] = [None if at is None else "retired" for at in arms.retired_at]
        if None not in excluded:
            raise EmptyPortfolio("the router has no model that takes traffic")
        if allowed_models is not None:
            excluded = [
                why or (None if m in allowed_models else "not_allowed") for why, m in zip(excluded, arms.names, strict=True)
            ]
            if None not in excluded:
                raise NoAllowedModel("none of allowed_models is in the portfolio")
        if max_price_per_1k is not None:
            excluded = [
                why or (None if c <= max_price_per_1k else "over_max_price") for why, c in zip(excluded, arms.per_1k, strict=True)
            ]
            if None not in excluded:
                raise NoAffordableModel(f"no eligible model has a list price up to ${max_price_per_1k} per 1k tokens")
        if lambda_t > 0.0 and not self.state.config.knobs.dollar_dual:
            highest = max(c for c, at in zip(arms.per_1k, arms.retired_at, strict=True) if at is None)
            ceiling = price_ceiling(highest, lambda_t=lambda_t)
            under = [why or (None if c <= ceiling else "ceiling") for why, c in zip(excluded, arms.per_1k, strict=True)]
            if None not in under:
                return excluded, True
            excluded = under
        return excluded, False

    def _choose(self, candidates: Candidates) -> tuple[int, str, float]:
        """Return the arm to call, the reason, and the probability with which it was drawn."""
        state, excluded = self.state, candidates.excluded
        for k, left in enumerate(state.arms.pulls_left):
            if left > 0 and excluded[k] in (None, "ceiling"):
                return k, "onboarding", 1.0
        eligible = [k for k, why in enumerate(excluded) if why is None]
        scores = [candidates.score(k) for k in eligible]
        best = max(scores)
        if not math.isfinite(best):
            raise NonFiniteInput("a score is not finite")
        tied = [k for k, score in zip(eligible, scores, strict=True) if best - score < TIE]
        k = tied[0] if len(tied) == 1 else tied[int(state.rng.integers(len(tied)))]
        epsilon = state.config.knobs.epsilon
        if epsilon <= 0.0:
            return k, "ucb", 1.0 / len(tied)
        reason = "ucb"
        if state.rng.random() < epsilon:
            k, reason = eligible[int(state.rng.integers(len(eligible)))], "probe"
        greedy = (1.0 - epsilon) / len(tied) if k in tied else 0.0
        return k, reason, greedy + epsilon / len(eligible)

    def _commit(self, request_id: str, record: RequestRecord, k: int) -> None:
        state, arms = self.state, self.state.arms
        state.seq = record.seq
        if not state.config.knobs.feedback_clock:
            state.t += 1
        arms.last_played[k] = state.t
        if record.reason == "onboarding":
            arms.pulls_left[k] -= 1
        state.open_commitments[request_id] = record.decided_at
        state.committed_usd += record.expected_cost_usd
        self.records[request_id] = record

    def settle(
        self,
        request_id: str,
        *,
        cost_usd: float | None = None,
        tokens: tuple[int, int] | None = None,
        revision: int = 0,
    ) -> Outcome:
        """Book the bill of a request: the first one settles the commitment, a higher revision replaces it by the difference.

        Args:
            cost_usd: dollars; or
            tokens: input and output tokens, priced as at the decision.

        Raises:
            UnknownRequest: no decision carries this request_id.
            NonFiniteInput, CostOutOfRange: not a cost. Nothing has changed.
        """
        record = self.records.get(request_id)
        if record is None:
            raise UnknownRequest(f"no decision for request {request_id!r}")
        if cost_usd is None:
            if tokens is None:
                raise CostOutOfRange("a bill needs cost_usd or token counts")
            cost_usd = record.price.cost_usd(input_tokens=tokens[0], output_tokens=tokens[1])
        if not math.isfinite(cost_usd):
            raise NonFiniteInput("a cost is not finite")
        if not 0.0 <= cost_usd <= MAX_COST_USD:
            raise CostOutOfRange(f"a cost must be between 0 and {MAX_COST_USD:g} dollars")
        bill = record.bill
        if bill is not None and revision <= bill.revision:
            return Outcome.DUPLICATE
        state = self.state
        cost_usd = float(cost_usd)
        before = 0.0 if bill is None else bill.cost_usd
        state.spend_usd += cost_usd - before
        if bill is None:
            state.settled += 1
            self._close(request_id, record)
            if state.pacer is not None and state.config.budget_usd_per_request is not None:
                state.pacer.observe(cost_usd, budget_usd_per_request=state.config.budget_usd_per_request)
        record.bill = Bill(cost_usd, revision)
        record.candidates = None
        self.records[request_id] = record
        return Outcome.APPLIED if bill is None else Outcome.REVISED

    def _close(self, request_id: str, record: RequestRecord) -> None:
        """Take a commitment off the books, if it is still there."""
        state = self.state
        if state.open_commitments.pop(request_id, None) is not None:
            state.committed_usd -= record.expected_cost_usd
            if not state.open_commitments:
                state.committed_usd = 0.0

    def learn(
        self,
        request_id: str,
        *,
        reward: float,
        source: str = "judge",
        rank: int = 0,
        revision: int = 0,
        x: Vector | None = None,
    ) -> Outcome:
        """Learn a reward; one of higher rank, or of higher revision from the same source, revises an earlier one.

        Args:
            reward: quality in [0, 1].
            rank: of the source; higher ones win.
            x: the context, where the record does not hold it.

        Raises:
            UnknownRequest: no decision carries this request_id.
            ContextLost: neither the record nor the caller has the context.
            NonFiniteInput, RewardOutOfRange: not a reward. Nothing has changed.
        """
        record = self.records.get(request_id)
        if record is None:
            raise UnknownRequest(f"no decision for request {request_id!r}")
        if not math.isfinite(reward):
            raise NonFiniteInput("a reward is not finite")
        if not 0.0 <= reward <= 1.0:
            raise RewardOutOfRange("a reward must be between 0 and 1")
        label = record.label
        if label is not None and not (rank > label.rank or (source == label.source and revision > label.revision)):
            return Outcome.DUPLICATE
        context = record.x if record.x is not None else x
        if context is None:
            raise ContextLost(f"the context of request {request_id!r} is in no store")
        forgotten = self._absorb(record.model, context, reward, label)
        record.label = Label(float(reward), source, rank, revision, forgotten)
        self.records[request_id] = record
        if label is None:
            self.state.rewards_applied += 1
        return Outcome.APPLIED if label is None else Outcome.REVISED

    def _absorb(self, model: str, x: Vector, reward: float, label: Label | None) -> float:
        """Move the arm's statistics; return how much it had forgotten when the observation entered."""
        state = self.state
        arms, knobs = state.arms, state.config.knobs
        if model not in arms.names:  # its arm was dropped: nothing is left to learn for
            return 0.0
        k = arms.index(model)
        state.touched.add(model)
        if label is not None:
            discount = math.exp(label.forgotten - arms.forgotten[k])
            learning.revise_reward(arms, k, x, difference=reward - label.reward, discount=discount)
            return label.forgotten
        if knobs.feedback_clock:
            state.t += 1
        learning.forget(arms, k, t=state.t, gamma=knobs.gamma, ridge=knobs.ridge)
        learning.observe_reward(arms, k, x, reward=reward)
        return arms.forgotten[k]

    def expire(self, *, now: float) -> int:
        """Stop waiting for bills older than the commitment's time limit; they stay charged at their expectation.

        Returns:
            How many commitments expired.
        """
        limit = now - self.state.config.knobs.commitment_ttl_seconds
        due = []
        for request_id, decided_at in self.state.open_commitments.items():
            if decided_at > limit:
                break
            due.append(request_id)
        for request_id in due:
            record = self.records[request_id]
            self._close(request_id, record)
            record.expired = True
            self.records[request_id] = record
        self.state.expired += len(due)
        return len(due)

    def book_unmatched(self, cost_usd: float) -> None:
        """Count a bill whose request never got a decision: money all the same, apart from `spend_usd`."""
        self.state.unmatched_cost_usd += cost_usd

    def forget(self, *, before: float) -> int:
        """Forget requests decided before this time (seconds since the epoch), but never the last `KEEP_LAST`.

        Their repeats become new requests, their late bills and rewards orphans. Arms that retired before then are dropped.

        Returns:
            How many requests were forgotten.
        """
        due = []
        for request_id in islice(self.records, max(0, len(self.records) - KEEP_LAST)):
            if self.records[request_id].decided_at >= before:
                break
            due.append(request_id)
        for request_id in due:
            self._close(request_id, self.records[request_id])
            del self.records[request_id]
        self.state.touched.update(portfolio.drop_retired(self.state, before=before))
        return len(due)
