"""Play prompts to a policy, with bills and rewards delayed by so many decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from router_state.changes import Alert
from router_state.config import LIVE, ModelConfig, Price, Prior, RouterConfig

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
DelayKind = Literal["fixed", "exponential", "heavy"]
NEVER = float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """n requests in order, with each of K models' rewards and costs, and the delays of feedback.

    Args:
        models: K names, in the columns' order.
        contexts: shape (n, d).
        rewards, costs: shape (n, K); costs in dollars as billed.
        declared: what is in force from a request on: {0: …, later: …}.
        bill_delay, reward_delay: shape (n,), how many more requests are decided first; infinity:
            never.
        phases: what is measured, by name.
        twice: shape (n,), whose bills are sent twice.
        input_tokens: shape (n,), what is known of a prompt's length before the call.
    """

    models: Sequence[str]
    contexts: Array
    rewards: Array
    costs: Array
    declared: Mapping[int, RouterConfig]
    bill_delay: Array
    reward_delay: Array
    phases: Mapping[str, slice]
    twice: npt.NDArray[np.bool_] | None = None
    input_tokens: Array | None = None

    def __len__(self) -> int:
        return len(self.contexts)


def declared(
    prices: Mapping[str, Price],
    budget: float | None,
    dimensions: int,
    priors: Mapping[str, Prior] | None = None,
) -> RouterConfig:
    """Return a declaration of models at these list prices under `live`, as shipped."""
    known = priors or {}
    models = {
        name: ModelConfig(
            price, known.get(name), cost_prior=known[name].costs if name in known else None
        )
        for name, price in prices.items()
    }
    return RouterConfig(models, budget, dimensions, "live", LIVE)


class Policy(Protocol):
    """A policy that decides."""

    def declare(self, config: RouterConfig, *, at: int) -> None:
        """Put a declaration in force."""

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        """Return the model for request i, λ_t and the reason."""

    def settle(self, i: int, cost_usd: float) -> None:
        """Take a bill in."""

    def learn(self, i: int, reward: float) -> None:
        """Take a reward in."""

    def take_alerts(self) -> list[Alert]:
        """Return what was raised since the last call."""

    def copy(self) -> Policy:
        """Return another one in the same state."""


@runtime_checkable
class Listener(Protocol):
    """A policy that is told the prompts' lengths."""

    def tell(self, input_tokens: Array | None) -> None:
        """Take the input tokens of every request, shape (n,)."""


@dataclass(slots=True, eq=False)
class Trace:
    """The record of a policy: model (column), reward, cost in dollars, λ_t and reason per request;
    alerts with their request.
    """

    chosen: npt.NDArray[np.int64]
    reward: Array
    cost: Array
    budget: Array
    lambda_t: Array
    reason: list[str]
    alerts: list[tuple[int, Alert]] = field(default_factory=list)

    @classmethod
    def start(cls, n: int) -> Trace:
        """Return the trace of n requests before the first one."""
        return cls(np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), [])

    def copy(self) -> Trace:
        """Return another one with the same content."""
        return Trace(
            self.chosen.copy(),
            self.reward.copy(),
            self.cost.copy(),
            self.budget.copy(),
            self.lambda_t.copy(),
            list(self.reason),
            list(self.alerts),
        )

    def share(self, column: int, phase: slice) -> float:
        """Return the share of requests that a model got."""
        return float((self.chosen[phase] == column).mean())


def delays(n: int, mean: float, kind: DelayKind, rng: np.random.Generator) -> Array:
    """Return n delays in requests, `mean` of them in flight on average: all alike, exponential, or
    Pareto with tail index 1.5.
    """
    if kind == "fixed" or mean == 0:
        return np.full(n, float(mean))
    if kind == "exponential":
        return rng.exponential(mean, n)
    return mean / 2.0 * rng.pareto(1.5, n)


def play(
    policy: Policy, episode: Episode, *, begun: Trace | None = None, until: int | None = None
) -> Trace:
    """Return the trace of a policy over an episode. It sees the rewards of its chosen models only.

    Args:
        begun: what it did so far, if it has begun; it goes on from there.
        until: how many requests are decided; None: all.
    """
    column = {name: k for k, name in enumerate(episode.models)}
    trace = Trace.start(len(episode)) if begun is None else begun
    if isinstance(policy, Listener):
        policy.tell(episode.input_tokens)
    bills, rewards = _arrivals(episode.bill_delay), _arrivals(episode.reward_delay)
    start = len(trace.reason)
    billed, judged = (sum(due < start for due, _ in arrivals) for arrivals in (bills, rewards))
    budget = float(trace.budget[start - 1]) if start else NEVER
    for i in range(start, len(episode) if until is None else until):
        while billed < len(bills) and bills[billed][0] <= i:
            due = bills[billed][1]
            policy.settle(due, float(trace.cost[due]))
            if episode.twice is not None and episode.twice[due]:
                policy.settle(due, float(trace.cost[due]))
            billed += 1
        while judged < len(rewards) and rewards[judged][0] <= i:
            due = rewards[judged][1]
            policy.learn(due, float(trace.reward[due]))
            judged += 1
        if i in episode.declared:
            policy.declare(episode.declared[i], at=i)
            budget = episode.declared[i].budget_usd_per_request or NEVER
        model, trace.lambda_t[i], reason = policy.decide(i, episode.contexts[i])
        k = trace.chosen[i] = column[model]
        trace.reward[i], trace.cost[i], trace.budget[i] = (
            episode.rewards[i, k],
            episode.costs[i, k],
            budget,
        )
        trace.reason.append(reason)
        trace.alerts += [(i, alert) for alert in policy.take_alerts()]
    return trace


def play_each(policy: Policy, episodes: Sequence[Episode], *, alike: int) -> list[Trace]:
    """Return what the policy did with each of several episodes; their first `alike` requests, the
    same in all, are played once.
    """
    begun = play(policy, episodes[0], until=alike)
    return [play(policy.copy(), episode, begun=begun.copy()) for episode in episodes]


def _arrivals(delay: Array) -> list[tuple[float, int]]:
    """Return (before which request, of which request) in order of arrival, without what never
    comes.
    """
    due = np.arange(len(delay)) + 1.0 + delay
    order = np.argsort(due, kind="stable")
    return [(float(due[i]), int(i)) for i in order if due[i] < NEVER]
