"""One arm of a router: a model, its price, and the knowledge of its rewards and bills."""

from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.elementary cimport log
from router_state.kernel.numbers.words cimport Real

def log_price(Real per_1k):
    """Place a list price ($ per 1k tokens) on the paper's logarithmic scale: 0 at 1e-4, 1 at 0.1,
    clipped (ParetoBandit Eq. 6)."""
    floor: Real = log(1e-4)
    return min(1.0, max(0.0, (log(max(per_1k, 1e-4)) - floor) / (log(0.1) - floor)))


cdef class Arm:
    """One model: its price, its regressions of rewards and bills, and its suspicion of a drift.

    Attributes:
        price: list price in force; per_1k, log_price: derived from it.
        rewards: regression of its rewards; costs: cost model learned from its bills.
        detector: detects drifts of its rewards; suspicion: the offset assumed since a drift, or
            None.
        last_played: the router's clock when it was last chosen.
        pulls_left: onboarding pulls still to make.
        retired_at: time since which it takes no new traffic (bills and rewards in flight still
            settle), or None.
    """

    def __init__(self, str name, SharedPrior bills, price, journal, *, now_t=0, pulls=0):
        self.name = name
        self.rewards = Regression(name, bills.d, journal, now_t=now_t)
        self.costs = CostModel(name, bills, price, journal)
        self.detector, self.suspicion, self.retired_at = Detector(), None, None
        self.last_played, self.pulls_left = now_t, pulls
        self.set_price(price)

    def set_price(self, price):
        """Set the list price and the values derived from it."""
        self.price, self.per_1k, self.log_price = price, price.per_1k, log_price(price.per_1k)

    @property
    def offset(self):
        """The offset of the arm's expected reward while the arm is under suspicion, else 0."""
        return 0.0 if self.suspicion is None else self.suspicion.offset
