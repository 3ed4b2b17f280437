"""The expected cost of a call of one model, with its uncertainty.

Expected cost = paid·(tokens·input price·share + list price·factor·exp(θᵀx + ½·level)):

θ are the coefficients of ln(bill ÷ list price per 1k tokens), so that an announced price needs no
relearning. `level` is the posterior variance of the bias in θ. `factor` is the mean of bill ÷
exp(prediction) (smearing, Duan 1983), shrunk towards that of a lognormal. `paid` is the share of
calls that cost anything. `share` is the part of the input's list price that is billed.

The input part is 0 until requests state their tokens, see `input_tokens`.
"""

from libc.math cimport sqrt

from router_state.kernel.costs.predictive cimport MOST_LOG_VARIANCE, Z90
from router_state.kernel.costs.predictive import Predictive, relative_variance
from router_state.kernel.costs.ratio import list_price_of
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.elementary cimport exp, log
from router_state.kernel.numbers.linear cimport dot
from router_state.kernel.numbers.words cimport Index, Real, known

LEAST_PART = 0.02
"""Least share of a bill that is not its input. A share of 0 would have no logarithm."""
LEAST_CALIBRATION = 0.02
"""Least mean of bill ÷ exp(prediction). A discount of the input may leave a rest far below every
prediction.
"""
LOGNORMAL_BILLS = 20.0
"""Number of bills that the lognormal's mean counts for in `factor`, beside the model's own
bills.
"""


def cost_piece(str model):
    """Return the name of the piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


cdef class CostMeans:
    """The costs of one model, learned from its bills. For a free model only the mean is learned.

    Attributes:
        regression: regression of ln(bill ÷ list price), with the shared prior `prior`.
        bills: number of bills behind the means.
        ratio: mean ratio of a bill to the list price; the first guess counts for one bill.
        calibration: mean of bill ÷ exp(prediction).
        awaited: calls since the last bill.
        list_price: dollars per 1k tokens that ratios refer to; free: whether the declared list
            price is 0.
        paid: share of bills that were not zero.
        input_usd: list price of an input token, in dollars; input_share: the share of it that is
            billed.
        detector: detects a silent change of price or of tokens.
    """

    def __init__(self, str model, SharedPrior prior, price, journal):
        self.prior = prior
        self.regression = Regression(cost_piece(model), prior.d, journal)
        self.awaited = 0
        self.set_price(price)
        self._forget_means()

    def _forget_means(self):
        self.detector = Detector()
        self.input_share = self.paid = self.calibration = 1.0
        self.ratio = self.bills = 0.0
        if not self.free:
            d: Index = self.prior.d
            guess: Real = dot(known(self.prior.mean, d), 0, known(self.prior.center, d), 0, d)
            self.ratio = exp(bounded_exponent(guess))

    def set_price(self, price):
        """Put a list price in force; the learned ratio of bills to the list price stays."""
        self.list_price, self.free = list_price_of(price), price.per_1k <= 0.0
        self.input_usd = price.input_price_per_m / 1e6

    cpdef void wait(self):
        """Count a call whose bill is awaited, beside those that are chosen first."""
        self.awaited += 1
        self.regression.changed()

    @property
    def mean_usd(self):
        """Mean dollars of a call."""
        return self.ratio * self.list_price

    @property
    def per_input_token(self):
        """Expected dollars of an input token."""
        return self.input_share * self.input_usd

    @property
    def level(self):
        """The posterior variance of the bias: of the logarithm of the level."""
        return self.variance()

    cdef Real variance(self):
        """See `level`."""
        if self.free:
            return 0.0
        one = self.regression
        # The last entry of V belongs to the bias.
        return min(self.prior.noise * one.values[one.at - 1] / one.decay, MOST_LOG_VARIANCE)

    @property
    def factor(self):
        """The expected ratio of a bill to exp(prediction): the mean over the model's own bills,
        shrunk to a lognormal's mean, which counts for `LOGNORMAL_BILLS` bills.
        """
        return self.multiple()

    cdef Real multiple(self):
        """See `factor`."""
        if self.free:
            return self.ratio
        lognormal: Real = LOGNORMAL_BILLS * exp(0.5 * min(self.prior.noise, MOST_LOG_VARIANCE))
        return (lognormal + self.bills * self.calibration) / (LOGNORMAL_BILLS + self.bills)

    def predict(self, Real exponent):
        """Return the expected ratio of a paid bill, without its input part, to the list price for
        a prompt with θᵀx = exponent.
        """
        return self._predict(exponent)

    cdef Real _predict(self, Real exponent):
        return self.multiple() * exp(bounded_exponent(exponent + 0.5 * self.variance()))

    def expected(self, Real exponent, Real tokens):
        """Return the expected dollars of a call for a prompt with θᵀx = exponent and `tokens`
        input tokens that are priced apart.
        """
        return self.expect(exponent, tokens)

    cdef Real expect(self, Real exponent, Real tokens):
        """See `expected`."""
        if self.free:
            return self.ratio * self.list_price
        cost: Real = self._predict(exponent) * self.list_price
        return (cost + tokens * self.input_share * self.input_usd) * self.paid

    def beyond(self, Real expected_usd):
        """Return the most dollars, in nine of ten cases, by which the true mean cost of a call
        exceeds `expected_usd`.
        """
        return self.more(expected_usd)

    cdef Real more(self, Real expected_usd):
        """See `beyond`."""
        return expected_usd * (exp(Z90 * sqrt(self.variance())) - 1.0)

    cdef Real dear(self, Real expected_usd):
        """Return the dollars that a call of expected cost `expected_usd` stays below in nine of
        ten cases.
        """
        # The mean of a lognormal is above its median by half its variance.
        variance: Real = self.variance() + self.prior.noise
        return expected_usd * exp(Z90 * sqrt(variance) - 0.5 * variance)

    def predictive(self, Real expected_usd):
        """Return the predictive distribution of a call of expected cost `expected_usd`."""
        deviation: Real = self.prior.typical()
        return Predictive(
            expected_usd,
            self.variance(),
            relative_variance(deviation * deviation) / max(self.bills, 1.0),
            self.prior.noise,
            self.paid,
        )

    def log_left(self, Real tokens):
        """Return the logarithm of the share of a mean bill that is left without its `tokens` input
        tokens.
        """
        known: Real = tokens * self.input_share * self.input_usd / self.list_price
        share: Real = known / self.ratio if known < self.ratio else 1.0
        return log(max(1.0 - share, LEAST_PART))


# For Python, which does not see numbers of C.
globals().update(
    LEAST_PART=LEAST_PART, LEAST_CALIBRATION=LEAST_CALIBRATION, LOGNORMAL_BILLS=LOGNORMAL_BILLS
)
