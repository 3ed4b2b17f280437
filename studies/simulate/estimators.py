"""Estimate what another policy would have earned, from rewards of the models that were called.

A policy chooses π(x) where history chose a with probability p. Three estimates of its mean
outcome over these requests are made, with w = 1{π(x) = a}/p.

The direct one is the mean of r where π(x) = a, and of q(x, π(x)) elsewhere.

That by inverse propensities is Σw·r ÷ Σw (self-normalised: Swaminathan and Joachims 2015).

The doubly robust one is the mean of q(x, π(x)) + w·(r − q(x, a)) (Dudík et al. 2011,
arXiv:1103.4601).

The direct q is fitted on all requests, the robust one on earlier requests only. So the doubly
robust terms are a martingale around the truth, and their spread gives an honest interval, whatever
q is. That of the direct estimate holds where q has the right form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from studies.simulate.direct import DirectModel
from studies.simulate.limits import ENOUGH, OUT_OF_BALANCE, ROUNDING, SUPPORTED, Z95


def reach(squares: float, cubes: float) -> float:
    """Return half of the 95 % interval of a sum of mean 0, from the sums of its terms' squares
    and cubes.

    Few dear terms make a sum skewed, and its deviation looks small where they did not come. The
    quantile is Hall's (1992, "On the removal of skewness by transformation", JRSS B 54), to its
    first order z + γ·(2z² + 1)/6 with the skewness γ of the sum, on both sides.
    """
    # The difference of two near numbers may round to less than 0.
    deviation = math.sqrt(max(squares, 0.0))
    # No sum of cubes is more than this, but rounding is where all terms are alike.
    skewness = min(1.0, abs(cubes) / deviation**3) if deviation**3 > 0.0 else 0.0
    return deviation * (Z95 + skewness * (2.0 * Z95**2 + 1.0) / 6.0)


@dataclass(slots=True)
class Moments:
    """Count, sum, and sums of squares and cubes of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    def add(self, values: Vector) -> None:
        """Take numbers in, shape (n,)."""
        self.n += len(values)
        self.total += values.sum().item()
        self.squares += values.dot(values).item()
        self.cubes += values.dot(values * values).item()

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    @property
    def effective(self) -> float:
        """The number of equal numbers that they count for, (Σw)²/Σw²."""
        return self.total**2 / self.squares if self.squares else 0.0

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean."""
        if self.n < 2:
            return math.nan
        mean, n = self.mean, self.n
        squares = self.squares - n * mean**2
        cubes = self.cubes - 3.0 * mean * self.squares + 2.0 * n * mean**3
        return reach(squares, cubes) / math.sqrt(n * (n - 1))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean outcome and half of its 95 % interval; None: nothing is known of a model in it."""

    value: float
    half_width: float | None = None

    def widened(self, least: float) -> Estimate:
        """Return it with at least this half-width, if it has any."""
        return (
            self
            if self.half_width is None
            else replace(self, half_width=max(self.half_width, least))
        )

    def __str__(self) -> str:
        return (
            f"{self.value:.4g}"
            if self.half_width is None
            else f"{self.value:.4g} ± {self.half_width:.2g}"
        )


@dataclass(slots=True)
class Filled:
    """Sums of outcomes where they are known of the policy's model, and of contexts where they are
    not, by that model.
    """

    n: int = 0
    known: float = 0.0
    guesses: dict[str | None, tuple[float, Vector]] = field(default_factory=dict)

    def add(self, choices: Sequence[str | None], X: Matrix, outcomes: Vector) -> None:
        """Take n cases in: what the policy chose, and what became of it; NaN: not known."""
        self.n += len(outcomes)
        self.known += np.nansum(outcomes).item()
        others: dict[str | None, list[int]] = {}
        for at in np.flatnonzero(np.isnan(outcomes)).tolist():
            others.setdefault(choices[at], []).append(at)
        for model, rows in others.items():
            count, x = self.guesses.get(model, (0, np.zeros(X.shape[1])))
            self.guesses[model] = count + len(rows), x + X[rows].sum(axis=0)

    def estimate(self, q: DirectModel) -> Estimate:
        """Return the mean, with `q` where history called another model."""
        if not self.n:
            return Estimate(math.nan)
        guessed, variance = q.guess(self.guesses)
        off = Z95 * math.sqrt(variance) / self.n
        return Estimate((self.known + guessed) / self.n, off if math.isfinite(off) else None)


def guessed_difference(parts: Sequence[tuple[float, Filled]], q: DirectModel) -> float:
    """Return half of the 95 % interval that guesses leave to Σ share·mean over the same cases;
    infinity where nothing is known of a model.

    Args:
        parts: shares and what they are of, as 1 and −1 of a difference.
    """
    total: dict[str | None, tuple[float, Vector]] = {}
    for share, filled in parts:
        for model, (count, x) in filled.guesses.items():
            # Where two guess the same model, its outcome is off by the same.
            n, sums = total.get(model, (0.0, np.zeros(len(x))))
            total[model] = n + share * count, sums + share * x
    return Z95 * math.sqrt(q.guess(total)[1]) / max(*(filled.n for _, filled in parts), 1)


@dataclass(slots=True)
class OffPolicy:
    """Estimates of one policy's mean outcome.

    Attributes:
        direct: the direct estimate, once all is read; filled: what it is made from.
        weighted: sums of w·r; mixed: Σw²·r, Σw³·r and Σw³·r²; robust: of the doubly robust terms.
        weight: sums of w; agreed: how often history chose as the policy does; possible: how often
            it could have.
    """

    filled: Filled = field(default_factory=Filled)
    direct: Estimate = Estimate(math.nan)
    weighted: Moments = field(default_factory=Moments)
    mixed: Vector = field(default_factory=lambda: np.zeros(3))
    robust: Moments = field(default_factory=Moments)
    weight: Moments = field(default_factory=Moments)
    agreed: int = 0
    possible: int = 0

    def observe(
        self,
        agrees: Vector,
        propensities: Vector,
        outcomes: Vector,
        q_policy: Vector,
        q_logged: Vector,
        *,
        chance: npt.NDArray[np.bool_],
    ) -> None:
        """Take n cases in, every argument of shape (n,).

        Args:
            agrees: 1.0 where the policy's model is history's, else 0.0.
            propensities: of history's models.
            outcomes: of history's models.
            q_policy, q_logged: what was expected of the policy's models and of history's.
            chance: whether history could have called the policy's models. One that it had ruled
                out has no weight, however random its choice was among the others.
        """
        # Where history could not have chosen so the weight is 0; `support` and `balanced` reveal
        # this.
        weights = np.divide(
            agrees, propensities, out=np.zeros_like(agrees), where=propensities > 0.0
        )
        self.agreed += int(agrees.sum())
        self.possible += int(np.count_nonzero(chance))
        self.weighted.add(weights * outcomes)
        of_outcomes = weights * outcomes
        rows = of_outcomes, weights * of_outcomes, of_outcomes * of_outcomes
        self.mixed += np.array(rows) @ weights
        self.robust.add(q_policy + weights * (outcomes - q_logged))
        self.weight.add(weights)

    @property
    def effective(self) -> float:
        """Return the effective sample size, (Σw)²/Σw²; or that of the outcomes, where it is less: a
        few dear bills may be most of a cost.
        """
        return min(self.weight.effective, self.weighted.effective or math.inf)

    @property
    def support(self) -> float:
        """Return the share of cases in which history gave the policy's choice a chance."""
        return self.possible / self.weight.n if self.weight.n else 0.0

    @property
    def balanced(self) -> bool:
        """Tell whether the weights average 1, as they do if history gave every choice of the policy
        its logged chance.
        """
        # E[w] = 1 if the logged propensities are true: a test of the log that needs no outcome.
        return abs(self.weight.mean - 1.0) <= OUT_OF_BALANCE * max(self.weight.half_width, ROUNDING)

    @property
    def happened(self) -> bool:
        """Tell whether the policy made history's own choices."""
        return self.weight.n > 0 and self.agreed == self.weight.n

    @property
    def supported(self) -> bool:
        """Tell whether the weighted estimates mean anything."""
        return self.support >= SUPPORTED and self.effective >= ENOUGH and self.balanced

    @property
    def ips(self) -> Estimate:
        """Return the estimate by inverse propensities."""
        mean, w = self.weighted.total / self.weight.total, self.weight
        wwr, wwwr, wwwrr = self.mixed.tolist()
        squares = self.weighted.squares - 2.0 * mean * wwr + mean**2 * w.squares
        cubes = self.weighted.cubes - 3.0 * mean * wwwrr
        cubes += 3.0 * mean**2 * wwwr - mean**3 * w.cubes
        return Estimate(mean, reach(squares, cubes) / w.total)

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name: none of what happened, and the weighted ones only where
        history supports them.
        """
        if self.happened:
            return {}
        if not self.supported:
            return {"direct": self.direct}
        found = {
            "direct": self.direct,
            "inverse propensity": self.ips,
            "doubly robust": Estimate(self.robust.mean, self.robust.half_width),
        }
        # The more the estimates of one mean differ, the less any of them is worth.
        values = [one.value for one in found.values()]
        found = {
            name: one.widened(max(abs(one.value - value) for value in values))
            for name, one in found.items()
        }
        # Its few dear outcomes vary more than they show: it holds all that the robust one holds.
        robust, ips = found["doubly robust"], found["inverse propensity"]
        far = abs(ips.value - robust.value) + (robust.half_width or 0.0)
        return found | {"inverse propensity": ips.widened(far)}

    def verdict(self) -> str:
        """Return a sentence on how far the estimates can be trusted."""
        if self.happened:
            return "no estimate: history made these choices, and this is what happened"
        if self.supported:
            return f"supported: effective sample size {self.effective:,.0f} of {self.weight.n:,}"
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
