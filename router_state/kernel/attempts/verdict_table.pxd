from router_state.kernel.attempts.plans cimport Looks
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real


cdef class VerdictTable:
    cdef public Flag exact
    cdef public Index J
    cdef public Index K
    cdef public tuple names
    cdef public object array
    cdef Floats values
    cdef Flag _is_stale
    cdef object _held
    cdef Floats _stale
    cpdef renew(self)
    cdef Floats row_of(self, Index k)
    cdef Real chance(self, Floats own, Index j, Real logit, Real deviations)
    cdef (Real, Real) shares(self, Floats own, Index edge, Real deviations)
    cdef _show(self, Index edge, Index number, Real usd, Looks looks, Real deviations, Real comes)
