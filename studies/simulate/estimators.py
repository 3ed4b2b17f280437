"""Estimate what another policy would have earned, from rewards of the models that were called.

A policy chooses π(x) where history chose a with probability p. Three estimates of its mean
outcome over these requests are made, with w = 1{π(x) = a}/p.

The direct one is the mean of r where π(x) = a, and of q(x, π(x)) elsewhere.

That by inverse propensities is Σw·r ÷ Σw (self-normalised: Swaminathan and Joachims 2015).

The doubly robust one is the mean of q(x, π(x)) + w·(r − q(x, a)) (Dudík et al. 2011,
arXiv:1103.4601).

The direct q is fitted on all requests, the robust one on earlier requests only. So the doubly
robust terms are a martingale around the truth, and their spread gives an honest interval, whatever
q is. `Residuals` widens it where few dear outcomes may have been missed. Where history supports
the doubly robust interval, every other interval is widened to contain it. Elsewhere there is only
the direct estimate. Its interval is valid if q has the right form; there is no interval if history
chose by what q can't follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from studies.simulate.direct import DirectModel
from studies.simulate.limits import (
    ENOUGH,
    NO_LINES,
    OUT_OF_BALANCE,
    ROUNDING,
    SUPPORTED,
    Z95,
)
from studies.simulate.moments import Moments
from studies.simulate.residuals import Residuals


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean outcome and half of its 95 % interval; None: no interval can be given."""

    value: float
    half_width: float | None = None

    def holding(self, other: Estimate) -> Estimate:
        """Return this estimate with an interval that contains all of another's."""
        least = abs(self.value - other.value) + (other.half_width or 0.0)
        return replace(self, half_width=max(self.half_width or 0.0, least))

    def __str__(self) -> str:
        return (
            f"{self.value:.4g}"
            if self.half_width is None
            else f"{self.value:.4g} ± {self.half_width:.2g}"
        )


@dataclass(slots=True)
class Filled:
    """Sums of the outcomes of a policy's models where they are known, and sums of contexts by
    model where they are not.
    """

    n: int = 0
    known: float = 0.0
    guesses: dict[str | None, tuple[float, Vector]] = field(default_factory=dict)

    def add(self, choices: Sequence[str | None], X: Matrix, outcomes: Vector) -> None:
        """Add n cases: the policy's choices and their outcomes; NaN: not known."""
        self.n += len(outcomes)
        self.known += np.nansum(outcomes).item()
        others: dict[str | None, list[int]] = {}
        for at in np.flatnonzero(np.isnan(outcomes)).tolist():
            others.setdefault(choices[at], []).append(at)
        for model, rows in others.items():
            count, x = self.guesses.get(model, (0, np.zeros(X.shape[1])))
            self.guesses[model] = count + len(rows), x + X[rows].sum(axis=0)

    def estimate(self, q: DirectModel) -> Estimate:
        """Return the mean outcome, with the estimate `q` for cases in which history called another
        model.
        """
        if not self.n:
            return Estimate(math.nan)
        guessed, variance = q.guess(self.guesses)
        off = Z95 * math.sqrt(variance) / self.n
        return Estimate((self.known + guessed) / self.n, off if math.isfinite(off) else None)


def guessed_difference(parts: Sequence[tuple[float, Filled]], q: DirectModel) -> float:
    """Return half of the 95 % interval of Σ share·mean over the same cases, as far as the error of
    guessed outcomes determines it. Infinity: nothing is known of a model, or history chose by
    products of features.

    Args:
        parts: shares with their sums, such as 1 and −1 for a difference.
    """
    total: dict[str | None, tuple[float, Vector]] = {}
    for share, filled in parts:
        for model, (count, x) in filled.guesses.items():
            # Where two policies guess the same model, both guesses have the same error.
            n, sums = total.get(model, (0.0, np.zeros(len(x))))
            total[model] = n + share * count, sums + share * x
    return Z95 * math.sqrt(q.guess(total)[1]) / max(*(filled.n for _, filled in parts), 1)


def agreement(choices: Sequence[str | None], called: Sequence[str]) -> Vector:
    """Return 1.0 where the policy's model is history's, else 0.0, shape (n,)."""
    same = [choice == model for choice, model in zip(choices, called, strict=True)]
    return np.array(same, dtype=np.float64)


@dataclass(slots=True)
class OffPolicy:
    """Estimates of one policy's mean outcome.

    Attributes:
        direct: the direct estimate, once all cases are read; filled: the sums behind it.
        weighted: sums of w·r; robust: sums of the doubly robust terms.
        missed: half-width of the robust interval, computed from the residuals of all calls once
            all cases are read.
        weight: sums of w; agreed: number of cases in which history chose as the policy does;
            possible: number of cases in which it could have.
        by_products: whether history chose by products of features: a linear estimate is then wrong.
    """

    filled: Filled = field(default_factory=Filled)
    direct: Estimate = Estimate(math.nan)
    weighted: Moments = field(default_factory=Moments)
    robust: Moments = field(default_factory=Moments)
    residuals: Residuals = field(default_factory=Residuals)
    missed: float = 0.0
    by_products: bool = False
    weight: Moments = field(default_factory=Moments)
    agreed: int = 0
    possible: int = 0

    def observe(
        self,
        choices: Sequence[str | None],
        called: Sequence[str],
        propensities: Vector,
        outcomes: Vector,
        q_policy: Vector,
        q_logged: Vector,
        *,
        chance: npt.NDArray[np.bool_],
    ) -> None:
        """Add n cases; every argument has shape (n,).

        Args:
            choices, called: the policy's models and history's.
            propensities, outcomes: propensities and outcomes of history's models.
            q_policy, q_logged: expected outcomes of the policy's models and of history's.
            chance: whether history could have called the policy's models. A model that history had
                ruled out has no weight, however random the choice among the others was.
        """
        agrees = agreement(choices, called)
        # Where history could not have chosen so the weight is 0; `support` and `balanced` reveal
        # this.
        weights = np.divide(
            agrees, propensities, out=np.zeros_like(agrees), where=propensities > 0.0
        )
        off = outcomes - q_logged
        self.agreed += int(agrees.sum())
        self.possible += int(np.count_nonzero(chance))
        self.weighted.add(weights * outcomes)
        self.robust.add(q_policy + weights * off)
        self.residuals.add(choices, called, weights, off)
        self.weight.add(weights)

    def conclude(self, q: DirectModel) -> None:
        """Compute the estimates that need a model of all outcomes, once all cases are added."""
        self.direct = self.filled.estimate(q)
        self.missed = self.residuals.half_width(q.units)
        self.by_products = q.by_products

    @property
    def effective(self) -> float:
        """Return the effective sample size: the smaller one of (Σw)²/Σw² and (Σwr)²/Σ(wr)², as a
        few dear bills may be most of a cost.
        """
        return min(self.weight.effective, self.weighted.effective or math.inf)

    @property
    def support(self) -> float:
        """Return the share of cases in which history gave the policy's choice a chance."""
        return self.possible / self.weight.n if self.weight.n else 0.0

    @property
    def balanced(self) -> bool:
        """Tell whether the weights average 1, as they do if history could have made every choice of
        the policy with the probability that it logged.
        """
        # E[w] = 1 if the logged propensities are true: a test of the log that needs no outcome.
        return abs(self.weight.mean - 1.0) <= OUT_OF_BALANCE * max(self.weight.half_width, ROUNDING)

    @property
    def happened(self) -> bool:
        """Tell whether the policy made history's own choices."""
        return self.weight.n > 0 and self.agreed == self.weight.n

    @property
    def supported(self) -> bool:
        """Tell whether history supports the weighted estimates."""
        return self.support >= SUPPORTED and self.effective >= ENOUGH and self.balanced

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name. History itself has none, and the weighted estimates are
        left out where history does not support them.
        """
        if self.happened:
            return {}
        if not self.supported:
            return {"direct": self.direct}
        half_width = max(self.robust.half_width, self.missed)
        robust = Estimate(self.robust.mean, half_width)
        ips = Estimate(self.weighted.total / self.weight.total, 0.0)
        # The robust interval is valid however history chose. The others are widened to contain it.
        return {
            "direct": self.direct.holding(robust),
            "inverse propensity": ips.holding(robust),
            "doubly robust": robust,
        }

    def verdict(self) -> str:
        """Return a sentence about how far the estimates can be trusted."""
        if self.happened:
            return "no estimate: history made these choices, and this is what happened"
        if self.supported:
            return f"supported: effective sample size {self.effective:,.0f} of {self.weight.n:,}"
        return f"{self._unsupported()}; {NO_LINES}" if self.by_products else self._unsupported()

    def _unsupported(self) -> str:
        if self.support < SUPPORTED:
            return (
                f"not supported: for {1 - self.support:.0%} of the requests history gave this "
                "policy's choice no chance "
                "(its routing was deterministic there, or had ruled that model out: see `excluded` "
                "in `explain`); only the direct model speaks, and its bias is unknown. "
                "Declare an epsilon, and a budget that has a place for the model, so that the next "
                "history can answer"
            )
        if self.effective < ENOUGH:
            return f"not supported: the effective sample size is {self.effective:,.0f}"
        return (
            f"not supported: the weights average {self.weight.mean:.2f} instead of 1, so history "
            "gave part of this policy's "
            "choices another chance than it says, or none"
        )
