"""Learn from the bills of one model: a regression of ln(bill ÷ list price) on contexts, and
means."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.config import GUESSED, LIVE, MEMORY
from router_state.kernel.costs.cost_means import (
    BILLS_BELIEVED,
    LEAST_PART,
    CostMeans,
    bounded_exponent,
)
from router_state.kernel.learning.detector import Shift
from router_state.kernel.numbers.elementary import exp, log, power
from router_state.kernel.numbers.words import Real, ccall, cclass, cfunc

if TYPE_CHECKING:
    from router_state.config import Price, Vector

BILLS_HELD: Real = GUESSED
BILLS_MEMORY: Real = MEMORY
BILL_LEFT: Real = LIVE.gamma
"""Share of a bill that is left in the regression after the model's next one."""
MOST_TAUGHT = 10.0
"""Largest multiple of its expectation that a bill counts for in a mean: one of a heavy tail is not
the mean of the next hundred."""
LEAST_RATIO = 1e-300
"""Ratio of a bill to the list price that a smaller one counts as: parts of it would underflow to 0,
which has no logarithm."""
SHARE_STEP, SHARE_ABOVE = 1.01, 8
"""Factor by which a bill raises `input_share`, and such steps by which one below its input's cost
lowers it. The share settles where one bill in nine is below."""


@cclass
class CostModel(CostMeans):
    """The bills of one model."""

    def start_over(self, price: Price) -> None:
        """Forget all bills, because bills of a free model do not tell its tokens."""
        self.set_price(price)
        self._forget_means()
        self.begin()

    def begin(self) -> None:
        """Start the regression from the shared prior."""
        prior = self.prior
        mean = np.zeros(prior.d) if self.free else prior.mean
        self.regression.know_only(prior.ridge, prior.bias_ridge, mean)

    @ccall
    def hurry(self) -> None:
        """Reduce the weight of the means after a change, so that they follow quickly."""
        self.bills = min(self.bills, BILLS_BELIEVED)
        self.regression.changed()

    @ccall
    def follow(self, ratio: Real, predicted: Real) -> None:
        """Take one bill into the mean, as ratio to the list price, and await no other.

        Clipped, not skipped: a price that has risen a hundredfold is still learned, tenfold a bill.
        """
        most: Real = MOST_TAUGHT * predicted
        counted: Real = most if 0.0 < most < ratio else ratio
        self.bills = min(self.bills + 1.0, BILLS_MEMORY)
        # The first guess counts for one bill, unless the model is free.
        self.ratio += (counted - self.ratio) / (self.bills if self.free else self.bills + 1.0)
        self.awaited = 0
        self.regression.changed()

    @ccall
    def observe(
        self, ratio: Real, x: Vector | None, known: Real, now: Real
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
                # The expectation has moved by the shift, so only the rest of the residual is
                # learned.
                exponent += rest_moves(bounded_exponent(shift.size), before, input_ratio)
                found = self._shifted(shift, exponent - before, spread, input_ratio)
            if input_ratio > 0.0:
                down: Real = 1.0 / power(SHARE_STEP, SHARE_ABOVE)
                self._move_share(SHARE_STEP if ratio >= input_ratio else down)
            rest: Real = log(max(ratio - input_ratio, LEAST_PART * ratio, LEAST_RATIO)) - exponent
            variance: Real = spread / one.decay
            one.decay *= BILL_LEFT
            one.learn(rest, spread)
            if not self.detector.doubts():
                self.prior.observe(rest, variance)
        self._calibrate(ratio, exponent, input_ratio)
        return found

    @cfunc
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
        return self.detector.observe(residual, self.prior.typical() * own, spread / one.decay, now)

    @cfunc
    def _shifted(
        self, shift: Shift, rest: Real, spread: Real, known: Real
    ) -> tuple[Shift, float, float] | None:
        """Let expectations follow a shift, see `observe`; `rest` is by how much this prompt's
        logarithm moves."""
        one = self.regression
        one.journal.jumped = True
        if shift.novel:
            # Prompts of a new kind cost differently, so only expectations of similar prompts
            # follow: moving along Vx changes earlier prompts least.
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
def rest_moves(moved: Real, exponent: Real, known: Real) -> Real:
    """Return by how much the logarithm of the rest moves where that of the total moves by `moved`.

    What a rise adds is all in the rest, since the input is billed at its list price.
    """
    if known <= 0.0 or moved < 0.0:
        return moved
    rest: Real = exp(moved) * (known + exp(bounded_exponent(exponent))) - known
    return bounded_exponent(log(rest) - bounded_exponent(exponent))
