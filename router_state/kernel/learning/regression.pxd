from router_state.kernel.learning.gaussian cimport Gaussian
from router_state.kernel.numbers.words cimport Floats, Index, Real

# Most steps of the clock by which one gap decays (ParetoBandit Eq. 7–8).
cdef enum:
    MAX_DECAY_STEPS = 1000

cdef Real RIDGE_FLOOR

cdef class Regression(Gaussian):
    cpdef void forget(self, Index t, Real gamma, ridge=*)
    cpdef Real left_at(self, Index t, Real gamma)
    cpdef void shift(self, Real offset)
    cdef void _restore_ridge(self, Real decay, Real ridge)
    cdef (Real, Real) see(self, x, Floats u)
    cdef Real _product(self, Floats x, Floats u)
    cdef void learn(self, Floats u, Real residual, Real spread)
    cdef void move_along(self, Floats u, Real step)


cdef room_of_products(Index d)
cdef void multiply(Floats x, Index d) noexcept
cdef Real spread_at(Regression one, Floats x) noexcept
