"""Learn from the bills of one model: the regression of ln(bill ÷ list price) on contexts, and its
means.

Expected cost = paid·(tokens·input price·share + list price·factor·exp(θᵀx + ½·level)):

θ are the coefficients of the logarithm of bill ÷ list price, per 1k tokens, so that an announced
price needs no relearning. `level` is the posterior variance of its bias. `factor` is the mean of
bill ÷ exp(prediction) (smearing, Duan 1983), shrunk towards that of a lognormal. `paid` is the
share of calls that cost anything. `share` is the part of the input's list price that is billed.

The input part is 0 until requests say their tokens, see `input_tokens`.
"""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.config import BELIEVED, GUESSED, MEMORY
from router_state.costs.ratio import LEAST_RATIO, MOST_EXPONENT, list_price_of
from router_state.errors import NonFiniteInput
from router_state.kernel.detector import Detector, Shift
from router_state.kernel.elementary import exp, log, power
from router_state.kernel.predictive import (
    MOST_LOG_VARIANCE,
    Z90,
    Predictive,
    relative_variance,
)
from router_state.kernel.regression import Regression
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Flag, Index, Real, cclass, cfunc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.changes import Journal
    from router_state.config import Price, Vector

BILLS_HELD: Real = GUESSED
BILLS_BELIEVED: Real = BELIEVED
BILLS_MEMORY: Real = MEMORY
BILL_LEFT: Real = 1.0 - 1.0 / MEMORY
"""Share of a bill that is left in the regression after the model's next one."""
LARGEST_EXPONENT: Real = MOST_EXPONENT
SMALLEST_RATIO: Real = LEAST_RATIO
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


@cclass
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

    prior: SharedPrior
    regression: Regression
    detector: Detector
    awaited: Index
    free: Flag
    bills: Real
    ratio: Real
    calibration: Real
    paid: Real
    list_price: Real
    input_usd: Real
    input_share: Real

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
            guess: Real = self.prior.mean.dot(self.prior.center)
            self.ratio = exp(bounded_exponent(guess))

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
        return self._level()

    @cfunc
    def _level(self) -> Real:
        if self.free:
            return 0.0
        one = self.regression
        # The last entry is the bias's: a level is what it multiplies.
        return min(self.prior.noise * one.values[one.at - 1] / one.decay, MOST_LOG_VARIANCE)

    @property
    def factor(self) -> float:
        """The expected ratio of a bill to exp(prediction): the mean of the model's own bills,
        a lognormal's counting for `BELIEVED` of them (conjugate shrinkage)."""
        return self._factor()

    @cfunc
    def _factor(self) -> Real:
        if self.free:
            return self.ratio
        lognormal: Real = BILLS_BELIEVED * exp(0.5 * min(self.prior.noise, MOST_LOG_VARIANCE))
        return (lognormal + self.bills * self.calibration) / (BILLS_BELIEVED + self.bills)

    def predict(self, exponent: Real) -> float:
        """Return the expected ratio of a paid bill for a prompt with θᵀx = exponent, the input
        apart."""
        return self._predict(exponent)

    @cfunc
    def _predict(self, exponent: Real) -> Real:
        return self._factor() * exp(bounded_exponent(exponent + 0.5 * self._level()))

    def expected(self, exponent: Real, tokens: Real) -> float:
        """Return the expected dollars of a call for a prompt with θᵀx = exponent and so many input
        tokens that are counted apart."""
        return self.expect(exponent, tokens)

    @cfunc
    def expect(self, exponent: Real, tokens: Real) -> Real:
        """See `expected`."""
        if self.free:
            return self.ratio * self.list_price
        cost: Real = self._predict(exponent) * self.list_price
        return (cost + tokens * self.input_share * self.input_usd) * self.paid

    def beyond(self, expected_usd: Real) -> float:
        """Return the dollars by which a call that is expected to cost so much may cost more on
        average, in nine of ten cases."""
        return self.more(expected_usd)

    @cfunc
    def more(self, expected_usd: Real) -> Real:
        """See `beyond`."""
        return expected_usd * (exp(Z90 * sqrt(self._level())) - 1.0)

    def predictive(self, expected_usd: Real) -> Predictive:
        """Return the distribution of a call that is expected to cost so many dollars."""
        deviation: Real = self.prior.typical()
        return Predictive(
            expected_usd,
            self._level(),
            relative_variance(deviation * deviation) / max(self.bills, 1.0),
            self.prior.noise,
            self.paid,
        )

    def log_left(self, tokens: Real) -> float:
        """Return the logarithm of the share of a mean bill that is left without so many input
        tokens."""
        known: Real = tokens * self.input_share * self.input_usd / self.list_price
        return log(max(1.0 - known / max(self.ratio, SMALLEST_RATIO), LEAST_PART))

    def hurry(self) -> None:
        """Let the means move fast: what they were of has changed."""
        self.bills = min(self.bills, BILLS_BELIEVED)
        self.regression.changed()

    def follow(self, ratio: Real, predicted: Real) -> None:
        """Take one bill into the mean, as ratio to the list price, and await no other.

        Cut and not left out: a price that has risen a hundredfold is still learned, ten times a
        bill.
        """
        most: Real = MOST_TAUGHT * predicted
        counted: Real = most if 0.0 < most < ratio else ratio
        self.bills = min(self.bills + 1.0, BILLS_MEMORY)
        # The first guess counts for one bill, unless the model is free.
        self.ratio += (counted - self.ratio) / (self.bills if self.free else self.bills + 1.0)
        self.awaited = 0
        self.regression.changed()

    def observe(
        self, ratio: Real, x: Vector | None, *, known: Real, now: Real
    ) -> tuple[Shift, float, float] | None:
        """Learn one bill; return the shift that it gives away where it is the model that changed,
        by which factor a call has become dearer, and by how much, in list prices.

        Args:
            ratio: bill ÷ list price at the decision.
            x: context, shape (d,); without one only the mean learns.
            known: list price of the input tokens, in the same unit; 0 where they are not counted
                apart.
        """
        if x is None or self.free:
            self.follow(ratio, self.ratio)
            return None
        one, found = self.regression, None
        spread: Real = one.see(x)
        exponent: Real = one.mean_seen
        input_ratio: Real = known * self.input_share
        # A bill of nothing (a cached answer, a failed call) is no price: it moves the means only.
        if ratio > 0.0:
            before: Real = exponent
            shift = self._watch(ratio, exponent, spread, input_ratio, now)
            if shift is not None:
                # The expectation moves by a shift: only what is left of the residual is learned.
                exponent += rest_moves(bounded_exponent(shift.size), before, input_ratio)
                found = self._shifted(shift, exponent - before, spread, input_ratio)
            if input_ratio > 0.0:
                down: Real = 1.0 / power(SHARE_STEP, SHARE_ABOVE)
                self._move_share(SHARE_STEP if ratio >= input_ratio else down)
            rest: Real = log(max(ratio - input_ratio, LEAST_PART * ratio)) - exponent
            variance: Real = spread / one.decay
            one.decay *= BILL_LEFT
            one.learn(rest, spread)
            self.prior.observe(rest, variance)
        self._calibrate(ratio, exponent, input_ratio)
        return found

    def _watch(
        self, ratio: Real, exponent: Real, spread: Real, known: Real, now: Real
    ) -> Shift | None:
        """Look for a shift of all that a call costs."""
        one = self.regression
        own: Real = 1.0
        total: Real = exponent
        if known > 0.0:
            own = 1.0 - known / (known + self._predict(exponent))
            total = log(known + exp(bounded_exponent(exponent)))
        residual: Real = (log(ratio) - total) / sqrt(1.0 + spread / one.decay * own * own)
        return self.detector.observe(
            residual,
            deviation=self.prior.typical() * own,
            leverage=spread / one.values[one.at - 1],
            now=now,
        )

    def _shifted(
        self, shift: Shift, rest: Real, spread: Real, known: Real
    ) -> tuple[Shift, float, float] | None:
        """Let expectations follow a shift, see `observe`; `rest` is by how much this prompt's
        logarithm moves."""
        one = self.regression
        one.journal.jumped = True
        if shift.novel:
            # Prompts of a new kind cost something else: only expectations of prompts like these
            # follow. Along Vx the prompts before, to which this one is new, move least.
            one.move_along(rest / spread)
            return None
        factor: Real = exp(bounded_exponent(shift.size))
        size: Real = self.ratio * abs(factor - 1.0)
        if known > 0.0:
            self._move_share(factor)
        self.ratio *= factor
        one.shift(rest)
        self.hurry()
        return shift, factor, size

    @cfunc
    def _calibrate(self, ratio: Real, exponent: Real, known: Real) -> None:
        """Take a bill into the means; its logarithm was expected to be the exponent, and its input
        to be `known`."""
        expected: Real = exp(bounded_exponent(exponent))
        self.follow(ratio, self.calibration * expected + known)
        paid: Real = 1.0 if ratio > 0.0 else 0.0
        if paid == 0.0 or self.paid < 1.0:
            self.paid += (paid - self.paid) / (self.bills + BILLS_HELD)
        if paid > 0.0:
            rest: Real = min((ratio - known) / expected, MOST_TAUGHT)
            self.calibration += (rest - self.calibration) / self.bills
            # A discount of the input makes it smaller than any prediction.
            self.calibration = max(self.calibration, LEAST_PART)

    @cfunc
    def _move_share(self, factor: Real) -> None:
        """Multiply the billed share of the input's list price."""
        self.input_share = min(max(self.input_share * factor, LEAST_PART), 1.0)


@cfunc
def bounded_exponent(exponent: Real) -> Real:
    """Return the logarithm of a ratio within what a call may cost."""
    return min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT)


@cfunc
def rest_moves(moved: Real, exponent: Real, known: Real) -> Real:
    """Return by how much the logarithm of the rest moves where that of the total moves by `moved`.

    What a rise adds is all in the rest, since the input is billed at its list price.
    """
    if known <= 0.0 or moved < 0.0:
        return moved
    rest: Real = exp(moved) * (known + exp(bounded_exponent(exponent))) - known
    return bounded_exponent(log(rest) - bounded_exponent(exponent))


@cfunc
def require_each(models: Sequence[CostModel], numbers: Sequence[float]) -> Index:
    """Return how many models there are. Raises ValueError where numbers are of more or fewer."""
    if len(numbers) != len(models):
        raise ValueError(f"{len(numbers)} numbers are not of {len(models)} models")
    return len(models)


def expected_costs(
    models: Sequence[CostModel], exponents: Sequence[float], tokens: Real
) -> list[float]:
    """Return the expected dollars of a call of each model, see `CostModel.expected`.

    Raises:
        NonFiniteInput: a cost is not finite.
    """
    one: CostModel
    found: list[float] = []
    total: Real = 0.0
    for k in range(require_each(models, exponents)):
        one = models[k]
        cost: Real = one.expect(exponents[k], tokens)
        total += cost
        found.append(cost)
    if not isfinite(total):
        raise NonFiniteInput("what an arm has learned of its costs is not finite")
    return found


def risks(models: Sequence[CostModel], costs: Sequence[float]) -> tuple[list[float], int, float]:
    """Return by how much a call of each model may cost more than is expected, how many calls await
    their bills, and the sum of squares of what those may cost beyond their expectations."""
    one: CostModel
    beyond = []
    in_flight: Index = 0
    total: Real = 0.0
    for k in range(require_each(models, costs)):
        one = models[k]
        more: Real = one.more(costs[k])
        beyond.append(more)
        in_flight += one.awaited
        total += (one.awaited * more) * (one.awaited * more)
    return beyond, in_flight, total
