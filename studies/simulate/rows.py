"""Turn rows of judged prompts into a history: each row is a request, billed and judged at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import fmean

import orjson

from ground.json_values import Document
from schemas.event import decode
from schemas.quick import Bill, Request, Reward
from schemas.routers import RouterDeclared
from studies.history.happened import Billed, Decided, Declared, Happened, Rewarded
from studies.history.reading import Decision
from studies.warm_start.judgements import JudgedPrompt

TOKENS = 1000
"""Tokens of the call whose list price is a model's mean bill; rows hold no prices."""
SOURCE = "row"
"""Source of a row's reward."""


class UnplayableRows(ValueError):
    """The rows cannot be replayed; the message says what they lack."""

    reason = "unplayable_rows"
    retriable = False


class Rows:
    """A history of rows.

    A prompt that has a score and a cost of every model is one request, with all outcomes known. Of
    other prompts each row is a request.

    Args:
        budget_usd: per request; None: what the rows cost on average.
        started: further fields of the declaration, and `models` with those of each model: priors,
            and the projection that they belong to.

    Raises:
        UnplayableRows: there is no score, or a model without a cost.
    """

    def __init__(
        self,
        judged: Sequence[JudgedPrompt],
        *,
        router_id: str,
        budget_usd: float | None,
        started: Document | None = None,
    ) -> None:
        self._started = dict(started or {})
        self._judged = judged
        self._router_id = router_id
        costs: dict[str, list[float]] = {}
        for row in judged:
            for model, cost in row.costs.items():
                costs.setdefault(model, []).append(cost)
        models = dict.fromkeys(model for row in judged for model in (*row.rewards, *row.costs))
        without = [model for model in models if model not in costs]
        if without:
            raise UnplayableRows(
                f"no row says what {', '.join(without)} cost: a replay needs a cost in dollars"
            )
        if not any(row.rewards for row in judged):
            raise UnplayableRows("no row has a score: a replay needs one")
        self.mean_cost_usd = {model: fmean(costs[model]) for model in models}
        self.budget_usd = budget_usd or fmean(cost for some in costs.values() for cost in some)

    @property
    def models(self) -> list[str]:
        """Return the models, the cheapest first."""
        return sorted(self.mean_cost_usd, key=self.mean_cost_usd.__getitem__)

    def __iter__(self) -> Iterator[Happened]:
        """Yield the events, with one second per request."""
        yield Declared(self._router_id, 0, 0.0, self._declared())
        at = 0
        for row in self._judged:
            known = [model for model in row.costs if model in row.rewards]
            complete = len(known) == len(self.mean_cost_usd)
            answered = dict.fromkeys((*row.rewards, *row.costs))
            outcomes = {
                model: {"reward": row.rewards[model], "cost_usd": row.costs[model]}
                for model in known
            }
            for model in known[:1] if complete else answered:
                at += 1
                yield from self._request(row, model, at, outcomes if complete else None)

    def _declared(self) -> RouterDeclared:
        price, begins = 1e6 / TOKENS, self._started.get("models", {})
        models = {
            model: {
                "input_price_per_m": price * mean,
                "output_price_per_m": price * mean,
                **begins.get(model, {}),
            }
            for model, mean in self.mean_cost_usd.items()
        }
        # No budget if all rows are free.
        budget = self.budget_usd or None
        declared = {"router_id": self._router_id, "budget_usd_per_request": budget}
        document = {**self._started, **declared, "models": models}
        return decode(RouterDeclared, orjson.dumps(document))

    def _request(
        self, row: JudgedPrompt, model: str, at: int, outcomes: dict[str, dict[str, float]] | None
    ) -> Iterator[Happened]:
        router_id, request_id, seconds = self._router_id, f"row-{at}", float(at)
        request = Request(
            router_id=router_id,
            request_id=request_id,
            prompt=row.prompt,
            metadata=None if outcomes is None else {"outcomes": outcomes},
        )
        decision = Decision(
            router_id,
            request_id,
            model,
            seq=at,
            reason="ucb",
            propensity=1.0,
            expected_reward=0.0,
            expected_cost_usd=0.0,
            lambda_t=0.0,
            config_offset=0,
            decided_at=datetime.fromtimestamp(at, UTC),
            repeat=False,
        )
        yield Decided(router_id, at, request, decision, seconds)
        if model in row.costs:
            bill = Bill(router_id=router_id, request_id=request_id, cost_usd=row.costs[model])
            yield Billed(router_id, at, seconds, bill)
        if model in row.rewards:
            reward = Reward(
                router_id=router_id,
                request_id=request_id,
                reward=row.rewards[model],
                source=SOURCE,
            )
            yield Rewarded(router_id, at, seconds, reward)
