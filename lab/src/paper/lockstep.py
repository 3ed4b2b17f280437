"""Many runs of the paper's policy at once, over the same prompts in the same order: for the search
over hyperparameters.

The same algorithm as the engine's paper profile, stacked over R runs that differ in α, γ, n_eff,
budget or λ_c; a test holds it to the engine, choice for choice. Nothing but searches uses it: what
is reported of a setting is measured with the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.data import Benchmark
from benchmarks.played import Played
from router_state.config import PAPER, ModelConfig, Price, Prior, RouterConfig
from router_state.kernel import EPSILON
from router_state.kernel import MAX_DECAY_STEPS as MAX_STALE_STEPS
from router_state.pacing.ema_pacer import EMA_STEP, LAMBDA_MAX
from streams.priors.fitted_priors import Priors

RESTORE_UNDER = 0.1
SHARED = ("per_1k", "log_price", "every")


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: `budget` None is unpaced; `n_eff` None starts cold."""

    alpha: float
    gamma: float
    n_eff: float | None
    budget: float | None
    lambda_c: float = 0.0
    seed: int = 0


class Lockstep:
    """R runs over a benchmark's K models; arrays have R rows."""

    def __init__(self, data: Benchmark, settings: Sequence[Setting], priors: Priors) -> None:
        count, K, d = len(settings), len(data.models), data.contexts.shape[1]
        self.alpha, self.gamma, self.lambda_c = (
            np.array([getattr(one, name) for one in settings])
            for name in ("alpha", "gamma", "lambda_c")
        )
        self.budget = np.array([np.inf if one.budget is None else one.budget for one in settings])
        self.paced = np.isfinite(self.budget)
        self.ema, self.lambda_t = self.budget.copy(), np.zeros(count)
        self.A_hat_inv, self.theta = np.empty((count, K, d, d)), np.empty((count, K, d))
        known: dict[float | None, tuple[np.ndarray, np.ndarray]] = {}
        for run, one in enumerate(settings):
            if one.n_eff not in known:
                known[one.n_eff] = _believed(data, one.n_eff, priors)
            self.A_hat_inv[run], self.theta[run] = known[one.n_eff]
        self.decay = np.ones((count, K))
        self.updated, self.played = (
            np.zeros((count, K), dtype=np.int64),
            np.zeros((count, K), dtype=np.int64),
        )
        self.t, self.every = 0, np.arange(count)
        self.rngs = [np.random.default_rng(one.seed) for one in settings]
        self.declare(data.prices)

    def declare(self, prices: Sequence[Price]) -> None:
        """Put list prices in force."""
        self.per_1k = np.array([price.per_1k for price in prices])
        scale = np.log(np.clip(self.per_1k, 1e-4, 0.1) / 1e-4)
        self.log_price = scale / np.log(0.1 / 1e-4)

    def repeat(self, times: int) -> Lockstep:
        """Return copies of every run, side by side, that go on from here."""
        other = Lockstep.__new__(Lockstep)
        for name, value in vars(self).items():
            stacked = isinstance(value, np.ndarray) and name not in SHARED
            setattr(other, name, np.repeat(value, times, axis=0) if stacked else value)
        other.every = np.arange(len(other.theta))
        other.rngs = [copy.deepcopy(rng) for rng in self.rngs for _ in range(times)]
        return other

    def run(
        self, contexts: np.ndarray, rewards: np.ndarray, costs: np.ndarray, order: Iterable[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Route the rows in this order; return what each run earned and paid, shape (R, n) each."""
        rows = list(order)
        earned, paid = (
            np.empty((len(self.every), len(rows))),
            np.empty((len(self.every), len(rows))),
        )
        for at, i in enumerate(rows):
            chosen = self._step(contexts[i], rewards[i])
            earned[:, at], paid[:, at] = rewards[i, chosen], costs[i, chosen]
            self._pace(paid[:, at])
        return earned, paid

    def _step(self, x: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """Choose an arm in every run, and learn its reward."""
        count, K, d = self.theta.shape
        u = (self.A_hat_inv.reshape(-1, d) @ x).reshape(count, K, d)
        mean, q = self.theta @ x, u @ x
        stale = np.minimum(self.t - np.maximum(self.updated, self.played), MAX_STALE_STEPS)
        left = np.maximum(self.gamma[:, None] ** stale, 1.0 / PAPER.v_max)
        variance = np.maximum(q / self.decay / left, EPSILON)
        score = (
            mean
            + self.alpha[:, None] * np.sqrt(variance)
            - (self.lambda_t + self.lambda_c)[:, None] * self.log_price
        )
        ceiling = np.where(self.lambda_t > 0.0, self.per_1k.max() / (1.0 + self.lambda_t), np.inf)
        score[self.per_1k > ceiling[:, None]] = -np.inf
        chosen = self._best(score)
        self._learn(
            x,
            chosen,
            rewards[chosen],
            u[self.every, chosen],
            q[self.every, chosen],
            mean[self.every, chosen],
        )
        return chosen

    def _best(self, score: np.ndarray) -> np.ndarray:
        chosen: np.ndarray = score.argmax(axis=1)
        tied = score > score.max(axis=1, keepdims=True) - EPSILON
        for run in np.flatnonzero(tied.sum(axis=1) > 1):
            equal = np.flatnonzero(tied[run])
            chosen[run] = equal[self.rngs[run].integers(len(equal))]
        return chosen

    def _learn(
        self,
        x: np.ndarray,
        k: np.ndarray,
        reward: np.ndarray,
        u: np.ndarray,
        q: np.ndarray,
        mean: np.ndarray,
    ) -> None:
        every = self.every
        self.t += 1
        steps = np.minimum(self.t - self.updated[every, k], MAX_STALE_STEPS)
        decay = self.decay[every, k] * self.gamma**steps
        self.played[every, k] = self.updated[every, k] = self.t
        for run in np.flatnonzero(decay < RESTORE_UNDER):
            self._restore(int(run), int(k[run]), float(decay[run]))
            decay[run] = 1.0
            u[run] = self.A_hat_inv[run, k[run]] @ x
            q[run], mean[run] = u[run] @ x, self.theta[run, k[run]] @ x
        self.decay[every, k] = decay
        total = decay + q
        kept = self.A_hat_inv[every, k]
        kept -= u[:, :, None] * (u / total[:, None])[:, None, :]
        self.A_hat_inv[every, k] = kept
        self.theta[every, k] += u * ((reward - mean) / total)[:, None]

    def _restore(self, run: int, k: int, decay: float) -> None:
        """Make an arm's ridge whole again: A = decay·A_hat + (1 − decay)·I; b keeps its decayed
        value.
        """
        A_hat = np.linalg.inv(self.A_hat_inv[run, k])
        b = decay * (A_hat @ self.theta[run, k])
        self.A_hat_inv[run, k] = np.linalg.inv(decay * A_hat + (1.0 - decay) * np.eye(len(b)))
        self.theta[run, k] = self.A_hat_inv[run, k] @ b

    def _pace(self, costs: np.ndarray) -> None:
        paced = self.paced
        self.ema[paced] += EMA_STEP * (costs[paced] - self.ema[paced])
        moved = self.lambda_t[paced] + EMA_STEP * (self.ema[paced] / self.budget[paced] - 1.0)
        self.lambda_t[paced] = np.clip(moved, 0.0, LAMBDA_MAX)


def _believed(
    data: Benchmark, n_eff: float | None, priors: Priors
) -> tuple[np.ndarray, np.ndarray]:
    """Return A⁻¹ (K, d, d) and θ (K, d) as the engine starts with them."""
    knobs = PAPER if n_eff is None else replace(PAPER, n_eff=n_eff)
    models = {
        model: ModelConfig(price, None if n_eff is None else Prior(A=priors.A[k], b=priors.b[k]), 0)
        for k, (model, price) in enumerate(zip(data.models, data.prices, strict=True))
    }
    arms = Played.start(
        RouterConfig(models, None, dimensions=data.contexts.shape[1], profile="paper", knobs=knobs)
    ).state.arms
    return np.stack([arms[k].rewards.A_inv() for k in range(len(arms))]), np.stack(
        [belief.theta for belief in arms.regressions]
    )
