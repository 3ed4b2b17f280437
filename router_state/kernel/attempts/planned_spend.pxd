from router_state.kernel.numbers.words cimport Index, Real


cdef class PlannedSpend:
    cdef public Real charged
    cdef public Real expected
    cdef public Real mean
    cdef public Real debt
    cdef public Index slot
    cpdef Real share(self)
    cpdef void count(self, Real debt, Index slot)
    cpdef void solved(self, Real mean, Real debt, Index slot)
