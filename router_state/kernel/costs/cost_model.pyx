"""Learn from the bills of one model: a regression of ln(bill ÷ list price) on contexts, and
means."""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.costs.cost_means cimport (
    CostMeans, LEAST_CALIBRATION, LEAST_PART, bounded_exponent,
)
from router_state.kernel.learning.counts cimport GUESSED, MEMORY
from router_state.kernel.numbers.elementary cimport exp, log, power
from router_state.kernel.numbers.words cimport Floats, Real, of_block, scratch

cdef Real BILL_LEFT = 1.0 - 1.0 / MEMORY
"""Share of a bill that is left in the regression after the model's next one."""
cdef Real BILL_FADES = -log(BILL_LEFT)
"""What a regression of bills forgets with each, see `Gaussian`; it is not kept."""
cdef Real MOST_TAUGHT = 10.0
"""Largest multiple of its expectation with which a bill enters a mean. A bill from a heavy tail
says little of the next hundred.
"""
cdef Real LEAST_RATIO = 1e-300
"""Least ratio of a bill to the list price, to which smaller ratios are raised. Parts of a smaller
one would underflow to 0, which has no logarithm.
"""
cdef Real HURRIED = 20.0
"""Largest number of bills that the means count for after a change, so that they follow quickly."""
cdef Real LEAST_SHARE = 0.02
"""Least billed share of the input's list price: no cache gives a larger discount."""
cdef Real SHARE_STEP = 1.01
cdef enum:
    SHARE_ABOVE = 8
"""Factor by which a bill raises `input_share`, and the number of such steps by which a bill below
its input's cost lowers it. So `input_share` settles where one bill in nine lies below its input's
cost.
"""


cdef class CostModel(CostMeans):
    """The bills of one model."""

    def start_over(self, price):
        """Forget all bills: bills of a free model do not tell its tokens."""
        self.set_price(price)
        self._forget_means()
        self.begin()

    def begin(self):
        """Start the regression from the shared prior."""
        prior = self.prior
        mean = np.zeros(prior.d) if self.free else prior.mean
        self.regression.know_only(prior.ridge, prior.bias_ridge, mean)

    cpdef void hurry(self):
        """Reduce the weight of the means after a change."""
        self.bills = min(self.bills, HURRIED)
        self.regression.changed()

    cpdef void follow(self, Real ratio, Real predicted):
        """Add one bill to the mean, as ratio to the list price, and reset the count of awaited
        calls.

        A large ratio is clipped, not skipped: a price that has risen a hundredfold is still
        learned, tenfold with each bill.
        """
        most: Real = MOST_TAUGHT * predicted
        counted: Real = most if 0.0 < most < ratio else ratio
        self.bills = min(self.bills + 1.0, MEMORY)
        # The first guess counts for one bill, unless the model is free.
        self.ratio += (counted - self.ratio) / (self.bills if self.free else self.bills + 1.0)
        self.awaited = 0
        self.regression.changed()

    cpdef tuple observe(self, Real ratio, x, Real known, Real now):
        """Learn one bill. Return the shift that the bill reveals if the model changed, the factor
        by which a call has become dearer, and the difference in list prices.

        Args:
            ratio: bill ÷ list price at the decision.
            x: context, shape (d,); without a context only the means learn.
            known: cost of the input tokens at list price ÷ list price per 1k tokens; 0 where they
                are not priced apart.
        """
        if x is None or self.free:
            self.follow(ratio, self.ratio)
            return None
        one, found = self.regression, None
        held = scratch(one.d)
        u: Floats = of_block(held)
        exponent, spread = one.see(x, u)
        input_ratio: Real = known * self.input_share
        # A bill of zero (a cached answer, a failed call) tells no price: only the means learn it.
        if ratio > 0.0:
            before: Real = exponent
            shift = self._watch(ratio, exponent, spread, input_ratio, now)
            if shift is not None:
                # The expectation has moved by the shift, so only the rest of the residual is
                # learned.
                exponent += rest_moves(bounded_exponent(shift.size), before, input_ratio)
                found = self._shifted(shift, exponent - before, u, spread, input_ratio)
            if input_ratio > 0.0:
                down: Real = 1.0 / power(SHARE_STEP, SHARE_ABOVE)
                self._move_share(SHARE_STEP if ratio >= input_ratio else down)
            rest: Real = log(max(ratio - input_ratio, LEAST_PART * ratio, LEAST_RATIO)) - exponent
            variance: Real = spread / one.decay
            one.decay *= BILL_LEFT
            one.forgotten += BILL_FADES
            one.learn(u, rest, spread)
            if not self.detector.doubts():
                self.prior.observe(rest, variance)
        self._calibrate(ratio, exponent, input_ratio)
        return found

    cdef _watch(self, Real ratio, Real exponent, Real spread, Real known, Real now):
        """Let the detector look for a shift of the whole cost of a call."""
        one = self.regression
        own: Real = 1.0
        total: Real = exponent
        if known > 0.0:
            own = 1.0 - known / (known + self._predict(exponent))
            total = log(known + exp(bounded_exponent(exponent)))
        residual: Real = (log(ratio) - total) / sqrt(1.0 + spread / one.decay * own * own)
        return self.detector.observe(residual, self.prior.typical() * own, spread / one.decay, now)

    cdef tuple _shifted(self, shift, Real rest, Floats u, Real spread, Real known):
        """Let expectations follow a shift, see `observe`; `rest` is the change of this prompt's
        predicted logarithm.
        """
        one = self.regression
        one.journal.jumped = True
        if shift.novel:
            # Prompts of a new kind cost differently, so only expectations of similar prompts
            # follow: moving along Vx changes earlier prompts least.
            one.move_along(u, rest / spread)
            return None
        factor: Real = exp(bounded_exponent(shift.size))
        size: Real = self.ratio * abs(factor - 1.0)
        if known > 0.0:
            self._move_share(factor)
        self.ratio *= factor
        one.shift(rest)
        self.hurry()
        return shift, factor, size

    cdef void _calibrate(self, Real ratio, Real exponent, Real known):
        """Add a bill to the means; `exponent` is its predicted logarithm, `known` the predicted
        cost of its input.
        """
        expected: Real = exp(bounded_exponent(exponent))
        self.follow(ratio, self.calibration * expected + known)
        paid: Real = 1.0 if ratio > 0.0 else 0.0
        if paid == 0.0 or self.paid < 1.0:
            self.paid += (paid - self.paid) / (self.bills + GUESSED)
        if paid > 0.0:
            rest: Real = min((ratio - known) / expected, MOST_TAUGHT)
            self.calibration += (rest - self.calibration) / self.bills
            self.calibration = max(self.calibration, LEAST_CALIBRATION)

    cdef void _move_share(self, Real factor):
        """Multiply the billed share of the input's list price."""
        self.input_share = min(max(self.input_share * factor, LEAST_SHARE), 1.0)


cdef Real rest_moves(Real moved, Real exponent, Real known):
    """Return the change of the rest's logarithm where the total's logarithm changes by `moved`.

    A rise is all in the rest, since the input is billed at its list price.
    """
    if known <= 0.0 or moved < 0.0:
        return moved
    rest: Real = exp(moved) * (known + exp(bounded_exponent(exponent))) - known
    return bounded_exponent(log(rest) - bounded_exponent(exponent))


# For Python, which does not see numbers of C.
globals().update(MOST_TAUGHT=MOST_TAUGHT)
