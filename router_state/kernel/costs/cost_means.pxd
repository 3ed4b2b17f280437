from router_state.kernel.costs.ratio cimport MOST_EXPONENT
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.words cimport Flag, Index, Real

cdef Real LEAST_PART, LEAST_CALIBRATION, LOGNORMAL_BILLS

cdef class CostMeans:
    cdef public SharedPrior prior
    cdef public Regression regression
    cdef public Detector detector
    cdef public Index awaited
    cdef public Flag free
    cdef public Real bills
    cdef public Real ratio
    cdef public Real calibration
    cdef public Real paid
    cdef public Real list_price
    cdef public Real input_usd
    cdef public Real input_share
    cpdef void wait(self)
    cdef Real variance(self)
    cdef Real multiple(self)
    cdef Real _predict(self, Real exponent)
    cdef Real expect(self, Real exponent, Real tokens)
    cdef Real more(self, Real expected_usd)
    cdef Real dear(self, Real expected_usd)


cdef inline Real bounded_exponent(Real exponent) noexcept:
    """Clip the logarithm of a ratio; NaN stays NaN."""
    return min(max(exponent, -MOST_EXPONENT), MOST_EXPONENT)
