"""What bills say of one model: the regression of ln(bill ÷ list price) on contexts, and its means.

Expected cost = paid·(tokens·input price·share + list price·factor·exp(θᵀx + ½·level)):

- θ: coefficients of the logarithm of bill ÷ list price, per 1k tokens, so that an announced price
  needs no relearning; `level` is the posterior variance of its bias;
- factor: mean of bill ÷ exp(prediction) (smearing, Duan 1983), shrunk towards that of a lognormal;
- paid: share of calls that cost anything; share: part of the input's list price that is billed.

The input part is 0 until requests say their tokens, see `input_tokens`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from router_state.change.detector import Detector
from router_state.change.novelty import Novelty
from router_state.config import Matrix, Price, Vector
from router_state.costs.predictive import Predictive
from router_state.costs.ratio import (
    LEAST_RATIO,
    MOST_EXPONENT,
    bounded,
    list_price_of,
)
from router_state.journal import Journal
from router_state.learning.linalg import symmetric_inverse
from router_state.learning.regression import Regression
from router_state.learning.shared_prior import SharedPrior

MEMORY = 2000.0
"""Bills over which means are taken."""
MEMORY_AFTER_SHIFT = 20.0
"""Bills that a mean stands for once it was multiplied: what follows corrects it fast."""
GAMMA = 0.9995
"""Share of a bill that is left in the regression after the model's next one."""
HELD = 16.0
"""Bills that a lognormal's factor counts for: one dear bill counts in the coefficients already,
and would else rule a model out by chance."""
FIRST = 3.0
"""Bills that the first calibration, and the first share of paid calls, count for."""
MOST_TAUGHT = 10.0
"""Largest multiple of its expectation that a bill counts for in a mean: one of a heavy tail is not
the mean of the next hundred."""
EXPECTED_COUNTS = 20.0
"""Bills that a declared mean cost counts for."""
FIRST_SIGMA = 0.7
"""Deviation of the logarithm of a bill before there is one: a factor of two either way."""
MOST_HALF = 1.0
"""Largest half variance of a level, or of the noise, that an expectation includes."""
LEAST_OWN = 0.02
"""Least share of a bill that is not for its input: a cached prompt may cost less than it was
counted, and the rest needs a logarithm."""
LEAST_LEFT = 0.1
"""Least share of a mean bill that is left when its input is taken off."""
LEAST_CALIBRATION = 0.01
"""Least calibration where input is counted apart: a discount makes it smaller than any
prediction."""
SHARE_UP, SHARE_DOWN = 1.01, 0.92
"""Factors by which a bill moves `input_share`: down where the bill is below its input's cost. The
share settles where one bill in nine is."""
LEAST_SHARE = 0.01
"""Least share of the input's list price that is assumed to be billed."""


def cost_piece(model: str) -> str:
    """Return the name of the piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


class CostModel:
    """The bills of one model. Of a model with a list price of 0 only the mean is learned.

    Attributes:
        regression: of ln(bill ÷ list price), its shared prior being `prior`.
        ratio, bills: mean ratio of a bill to the list price, and how many bills it stands for; the
            first guess counts for one.
        calibration, calibrated: mean of bill ÷ exp(prediction), and how many bills it stands for.
        awaited: calls since the last bill.
        list_price: dollars per 1k tokens that ratios refer to; free: whether the declared one is 0.
        paid: share of bills that were not zero.
        input_usd: list price of an input token, in dollars; input_share: its billed share.
        detector: looks for a silent change of price or of tokens.
        novelty: whether its prompts of late are of a new kind: a shift then says something of
            them, and nothing of the price.
    """

    __slots__ = (
        "awaited",
        "bills",
        "calibrated",
        "calibration",
        "detector",
        "free",
        "input_share",
        "input_usd",
        "list_price",
        "novelty",
        "paid",
        "prior",
        "ratio",
        "regression",
    )

    def __init__(self, model: str, prior: SharedPrior, price: Price, journal: Journal) -> None:
        self.prior = prior
        self.regression = Regression(cost_piece(model), prior.d, journal, leads=True)
        self.awaited = 0
        self.set_price(price)
        self._forget_means()

    def start_over(self, price: Price) -> None:
        """Forget all bills, as those of a free model say nothing of its tokens."""
        self.set_price(price)
        self._forget_means()
        self.begin()

    def _forget_means(self) -> None:
        self.input_share = self.paid = 1.0
        self.detector, self.novelty = Detector(sigma=FIRST_SIGMA), Novelty()
        self.calibration, self.calibrated = 1.0, FIRST
        self.ratio, self.bills = 0.0, 0.0
        if not self.free:
            guess = float(self.prior.mean.dot(self.prior.center))
            self.ratio, self.bills = math.exp(bounded(guess)), 1.0

    def begin(self) -> None:
        """Start the regression from what all models share; its arrays are bound."""
        mean = np.zeros(self.prior.d) if self.free else self.prior.mean
        self.regression.conclude(np.diag(1.0 / self.prior.ridges), mean)

    def set_price(self, price: Price) -> None:
        """Put a list price in force; what bills say of the tokens per request stays."""
        self.list_price, self.free = list_price_of(price), price.per_1k <= 0.0
        self.input_usd = price.input_price_per_m / 1e6

    @property
    def mean_usd(self) -> float:
        """Dollars that a request costs on average."""
        return self.ratio * self.list_price

    @property
    def per_input_token(self) -> float:
        """Dollars that an input token is expected to cost."""
        return self.input_share * self.input_usd

    @property
    def level(self) -> float:
        """The posterior variance of the level's logarithm."""
        if self.free:
            return 0.0
        # The last entry is the bias's: a level is what it multiplies.
        variance = self.prior.noise * self.regression.inverse.item(-1) / self.regression.decay
        return min(variance, 2.0 * MOST_HALF)

    @property
    def factor(self) -> float:
        """The expected ratio of a bill to exp(prediction).

        Conjugate shrinkage: a lognormal's factor counts as `HELD` bills, the mean of the model's
        own as those it is of.
        """
        if self.free:
            return self.ratio
        own = self.calibrated - FIRST
        return (HELD * self._lognormal + own * self.calibration) / (HELD + own)

    @property
    def _lognormal(self) -> float:
        return math.exp(min(0.5 * self.prior.noise, MOST_HALF))

    def predict(self, exponent: float) -> float:
        """Return the expected ratio of a paid bill for a prompt with θᵀx = exponent, the input
        apart."""
        return self.factor * math.exp(bounded(exponent + 0.5 * self.level))

    def predictive(self, expected_usd: float) -> Predictive:
        """Return the distribution of a call that is expected to cost so many dollars."""
        deviation = self.prior.relative_deviation
        return Predictive(
            expected_usd,
            self.level,
            deviation * deviation / max(self.bills, 1.0),
            self.prior.noise,
            self.paid,
        )

    def log_left(self, tokens: float) -> float:
        """Return the logarithm of the share of a mean bill that is left without so many input
        tokens."""
        known = tokens * self.per_input_token / self.list_price
        return math.log(max(1.0 - known / max(self.ratio, LEAST_RATIO), LEAST_LEFT))

    def split(self) -> None:
        """Let the calibration move fast: input tokens are counted apart from now on."""
        self.calibrated = min(self.calibrated, MEMORY_AFTER_SHIFT)
        self.regression.changed()

    def expect(self, cost_usd: float, *, tokens: float = 0.0) -> None:
        """Start from a declared mean cost; it counts for 20 bills."""
        at, bills = self.prior.center, EXPECTED_COUNTS
        mean = math.log(max(cost_usd / self.list_price, LEAST_RATIO))
        A, b = bills * np.outer(at, at), bills * mean * at
        self.believe(A, b, mean_usd=cost_usd, bills=bills, tokens=tokens)

    def believe(
        self, A: Matrix, b: Vector, *, mean_usd: float, bills: float, tokens: float = 0.0
    ) -> None:
        """Start from earlier bills.

        Args:
            A, b: Σ xxᵀ and Σ ln(bill ÷ list price)·x over them, shape (d, d) and (d,).
            mean_usd: their mean; bills: how many they count for.
            tokens: input tokens of each that are counted apart.
        """
        ridges, left = self.prior.ridges, 0.0
        self.bills, self.ratio = bills, mean_usd / self.list_price
        if tokens:
            left = self.log_left(tokens)
            b = b + left * A[-1]
        inverse = symmetric_inverse(A + np.diag(ridges))
        theta = inverse @ (b + ridges * self.prior.mean)
        self.regression.conclude(inverse, theta)
        # The last feature is 1: the last row of A is Σx, and its corner counts the bills.
        means = A[-1] / A[-1, -1]
        spread = float(theta @ (A / A[-1, -1] - np.outer(means, means)) @ theta)
        # The mean of a lognormal is above the exponential of its logarithm's mean, by half the
        # variance between prompts.
        half = 0.5 * (max(spread, 0.0) + self.level)
        expected = math.exp(bounded(float(theta @ means) + half))
        # So that `factor`, which is shrunk, makes the mean the one that is declared.
        factor = self.ratio * math.exp(left) / expected
        own = max(bills, HELD)
        calibration = factor + (factor - self._lognormal) * HELD / own
        self.calibration = min(max(calibration, LEAST_CALIBRATION), MOST_TAUGHT)
        self.calibrated = FIRST + own

    def follow(self, ratio: float) -> None:
        """Let the mean follow one bill, as ratio to the list price."""
        self.step(cut(ratio, self.ratio))
        self.regression.changed()

    def step(self, ratio: float) -> None:
        """Take a ratio into the mean; no call awaits its bill any more."""
        self.bills = self.bills + 1.0 if self.bills < MEMORY else MEMORY
        self.ratio += (ratio - self.ratio) / self.bills
        self.awaited = 0

    def count_paid(self, paid: bool) -> None:
        """Take into `paid` whether a bill was above zero."""
        if not paid or self.paid < 1.0:
            self.paid += (float(paid) - self.paid) / (self.bills + FIRST)

    def calibrate(self, ratio: float, exponent: float, known: float | None) -> None:
        """Take a bill into the means; its logarithm was expected to be the exponent.

        Args:
            known: ratio that was expected for its input, None where that is not counted apart.
        """
        expected = math.exp(bounded(exponent))
        self.step(cut(ratio, self.calibration * expected + (known or 0.0)))
        if ratio <= 0.0:  # a call that cost nothing counts in `paid`
            return
        rest = min((ratio - (known or 0.0)) / expected, MOST_TAUGHT)
        self.calibrated = count = min(self.calibrated + 1.0, MEMORY)
        self.calibration += (rest - self.calibration) / count
        if known:
            self.calibration = max(self.calibration, LEAST_CALIBRATION)

    def learn(self, value: float, spread: float, exponent: float) -> None:
        """Learn the logarithm of one bill; the regression has looked at its context.

        Args:
            value: ln(bill ÷ list price), the input taken off; exponent: its prediction.
            spread: xᵀVx.
        """
        regression, residual = self.regression, value - exponent
        variance = spread / regression.decay
        regression.decay *= GAMMA
        regression.learn(residual, spread)
        self.prior.observe(residual, variance)

    def move_share(self, factor: float) -> None:
        """Multiply the billed share of the input's list price."""
        self.input_share = min(max(self.input_share * factor, LEAST_SHARE), 1.0)

    def rescale(self, factor: float, moved: float) -> None:
        """Multiply every expectation, and let the means move fast.

        Args:
            moved: what the logarithm of the part beside the input moves by.
        """
        self.ratio *= factor
        self.regression.theta[-1] += moved
        self.bills = min(self.bills, MEMORY_AFTER_SHIFT)
        self.calibrated = min(self.calibrated, MEMORY_AFTER_SHIFT)

    def ignore_prompts(self) -> None:
        """Expect the mean cost for every prompt."""
        theta = self.regression.theta
        theta[:-1] = 0.0
        theta[-1] = math.log(max(self.ratio / self.factor, LEAST_RATIO)) - 0.5 * self.level
        self.regression.changed()


def cut(ratio: float, predicted: float) -> float:
    """Return a ratio as it counts in a mean where another one was predicted.

    Cut and not left out: a price that has risen a hundredfold is still learned, ten times a bill.
    """
    most = MOST_TAUGHT * predicted
    return most if 0.0 < most < ratio else ratio


def expectations(
    models: Sequence[CostModel], noise: float, exponents: Iterable[float], tokens: float
) -> list[float]:
    """Return the expected cost of a call of each model in dollars, see the module.

    Args:
        noise: the shared prior's; exponents: θᵀx of each model.
        tokens: input tokens that are counted apart.
    """
    costs: list[float] = []
    half = 0.5 * noise
    lognormal = math.exp(min(half, MOST_HALF))
    for model, exponent in zip(models, exponents, strict=True):
        # `CostModel.factor` and `level` for all models at once: calls would take longer than this.
        if model.free:
            cost = model.ratio * model.list_price
        else:
            level = half * model.regression.inverse.item(-1) / model.regression.decay
            exponent += level if level < MOST_HALF else MOST_HALF
            own = model.calibrated - FIRST
            factor = (HELD * lognormal + own * model.calibration) / (HELD + own)
            if not -MOST_EXPONENT <= exponent <= MOST_EXPONENT:
                exponent = bounded(exponent)
            cost = factor * math.exp(exponent) * model.list_price
            if tokens:
                cost += tokens * model.input_share * model.input_usd
            cost *= model.paid
        costs.append(cost)
    return costs
