from router_state.kernel.attempts.planned_calls cimport Planning
from router_state.kernel.numbers.words cimport Index, Real


cdef class Failures:
    cdef public Index count
    cdef public Real sum
    cpdef Real gap(self, Real reward, Real alike)
    cpdef Failures and_one(self, Real reward, Real given)

cdef Real lost(Index count, Real sum, Real reward, Real alike) noexcept
cdef Real deviation(Real reward, Real given) noexcept
cdef Real given_failed(Real r, Real t, Real fails) noexcept
cdef further(Planning plans, Index first, Index look, Index second)
