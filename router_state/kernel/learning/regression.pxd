from router_state.kernel.learning.gaussian cimport Gaussian
from router_state.kernel.numbers.words cimport Floats, Index, Real

# Steps of the clock that one gap may decay by (ParetoBandit Eq. 7–8).
cdef enum:
    MAX_DECAY_STEPS = 1000

cdef Real RIDGE_FLOOR

cdef class Regression(Gaussian):
    cpdef void forget(self, Index t, Real gamma, ridge=*)
    cpdef Real left_at(self, Index t, Real gamma)
    cpdef void shift(self, Real offset)
    cdef void _restore_ridge(self, Real decay, Real ridge)
    cdef Real see(self, x)
    cdef Real _product(self, Floats x, Index u)
    cpdef void learn(self, Real residual, Real spread)
    cpdef void move_along(self, Real step)


cdef Floats room_of_products(Index d)
cdef void multiply(Floats x, Index d) noexcept
cdef Real spread_at(Regression one, Floats x) noexcept
