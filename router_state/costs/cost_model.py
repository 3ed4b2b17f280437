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

import numpy as np

from router_state.change.detector import Detector
from router_state.config import BELIEVED, GUESSED, MEMORY, Price
from router_state.costs.predictive import (
    MOST_LOG_VARIANCE,
    Z90,
    Predictive,
    lognormal_mean,
    relative_variance,
)
from router_state.costs.ratio import LEAST_RATIO, bounded, list_price_of
from router_state.journal import Journal
from router_state.kernel import Regression, SharedPrior

GAMMA = 1.0 - 1.0 / MEMORY
"""Share of a bill that is left in the regression after the model's next one."""
MOST_TAUGHT = 10.0
"""Largest multiple of its expectation that a bill counts for in a mean: one of a heavy tail is not
the mean of the next hundred."""
LEAST_PART = 0.02
"""Least share of a bill that is its input, or that is not: each needs a logarithm."""
SHARE_STEP, SHARE_ABOVE = 1.01, 8
"""Factor by which a bill raises `input_share`, and such steps by which one below its input's cost
lowers it. The share settles where one bill in nine is below."""


def cost_piece(model: str) -> str:
    """Return the name of the piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


class CostModel:
    """The bills of one model. Of a model with a list price of 0 only the mean is learned.

    Attributes:
        regression: of ln(bill ÷ list price), its shared prior being `prior`.
        bills: how many bills the means are of.
        ratio: mean ratio of a bill to the list price; the first guess counts for one.
        calibration: mean of bill ÷ exp(prediction).
        awaited: calls since the last bill.
        list_price: dollars per 1k tokens that ratios refer to; free: whether the declared one is 0.
        paid: share of bills that were not zero.
        input_usd: list price of an input token, in dollars; input_share: its billed share.
        detector: looks for a silent change of price or of tokens.
    """

    __slots__ = (
        "awaited",
        "bills",
        "calibration",
        "detector",
        "free",
        "input_share",
        "input_usd",
        "list_price",
        "paid",
        "prior",
        "ratio",
        "regression",
    )

    def __init__(self, model: str, prior: SharedPrior, price: Price, journal: Journal) -> None:
        self.prior = prior
        self.regression = Regression(cost_piece(model), prior.d, journal)
        self.awaited = 0
        self.set_price(price)
        self._forget_means()

    def start_over(self, price: Price) -> None:
        """Forget all bills, as those of a free model say nothing of its tokens."""
        self.set_price(price)
        self._forget_means()
        self.begin()

    def _forget_means(self) -> None:
        self.detector = Detector()
        self.input_share = self.paid = self.calibration = 1.0
        self.ratio = self.bills = 0.0
        if not self.free:
            self.ratio = math.exp(bounded(float(self.prior.mean.dot(self.prior.center))))

    def begin(self) -> None:
        """Start the regression from what all models share."""
        prior = self.prior
        mean = np.zeros(prior.d) if self.free else prior.mean
        self.regression.know_only(prior.ridge, prior.bias_ridge, mean)

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
        variance = self.prior.noise * self.regression.bias_variance / self.regression.decay
        return variance if variance < MOST_LOG_VARIANCE else MOST_LOG_VARIANCE

    @property
    def factor(self) -> float:
        """The expected ratio of a bill to exp(prediction): the mean of the model's own bills,
        a lognormal's counting for `BELIEVED` of them (conjugate shrinkage)."""
        if self.free:
            return self.ratio
        lognormal = BELIEVED * lognormal_mean(self.prior.noise)
        return (lognormal + self.bills * self.calibration) / (BELIEVED + self.bills)

    def predict(self, exponent: float) -> float:
        """Return the expected ratio of a paid bill for a prompt with θᵀx = exponent, the input
        apart."""
        return self.factor * math.exp(bounded(exponent + 0.5 * self.level))

    def expected(self, exponent: float, tokens: float) -> float:
        """Return the expected dollars of a call for a prompt with θᵀx = exponent and so many input
        tokens that are counted apart."""
        if self.free:
            return self.mean_usd
        cost = self.predict(exponent) * self.list_price + tokens * self.per_input_token
        return cost * self.paid

    def beyond(self, expected_usd: float) -> float:
        """Return the dollars by which a call that is expected to cost so much may cost more on
        average, in nine of ten cases."""
        return expected_usd * math.expm1(Z90 * math.sqrt(self.level))

    def predictive(self, expected_usd: float) -> Predictive:
        """Return the distribution of a call that is expected to cost so many dollars."""
        return Predictive(
            expected_usd,
            self.level,
            relative_variance(self.prior.deviation**2) / max(self.bills, 1.0),
            self.prior.noise,
            self.paid,
        )

    def log_left(self, tokens: float) -> float:
        """Return the logarithm of the share of a mean bill that is left without so many input
        tokens."""
        known = tokens * self.per_input_token / self.list_price
        return math.log(max(1.0 - known / max(self.ratio, LEAST_RATIO), LEAST_PART))

    def hurry(self) -> None:
        """Let the means move fast: what they were of has changed."""
        self.bills = min(self.bills, BELIEVED)
        self.regression.changed()

    def follow(self, ratio: float, predicted: float) -> None:
        """Take one bill into the mean, as ratio to the list price, and await no other.

        Cut and not left out: a price that has risen a hundredfold is still learned, ten times a
        bill.
        """
        most = MOST_TAUGHT * predicted
        counted = most if 0.0 < most < ratio else ratio
        self.bills = bills = self.bills + 1.0 if self.bills < MEMORY else MEMORY
        # The first guess counts for one bill, unless the model is free.
        self.ratio += (counted - self.ratio) / (bills if self.free else bills + 1.0)
        self.awaited = 0
        self.regression.changed()

    def calibrate(self, ratio: float, exponent: float, known: float) -> None:
        """Take a bill into the means; its logarithm was expected to be the exponent.

        Args:
            known: ratio that was expected for its input.
        """
        expected = math.exp(bounded(exponent))
        self.follow(ratio, self.calibration * expected + known)
        paid = ratio > 0.0
        if not paid or self.paid < 1.0:
            self.paid += (float(paid) - self.paid) / (self.bills + GUESSED)
        if paid:
            rest = min((ratio - known) / expected, MOST_TAUGHT)
            self.calibration += (rest - self.calibration) / self.bills
            # A discount of the input makes it smaller than any prediction.
            self.calibration = max(self.calibration, LEAST_PART)

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
        self.input_share = min(max(self.input_share * factor, LEAST_PART), 1.0)

    def rescale(self, factor: float, moved: float) -> None:
        """Multiply every expectation, and let the means move fast.

        Args:
            moved: what the logarithm of the part beside the input moves by.
        """
        self.ratio *= factor
        self.regression.shift(moved)
        self.hurry()
