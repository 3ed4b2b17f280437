from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.words cimport Floats, Index, Real


cdef class Evidence:
    cdef public SharedPrior prior
    cdef public list regressions
    cdef Floats A
    cdef Floats y
    cdef Floats R
    cdef Floats m
    cdef Floats work
    cdef public list arrays
    cdef public Real square
    cdef public Index N
    cdef public Index d
    cdef public Index T
    cdef void take_ridges(self)
    cdef void information(self, Index total, Index column)
    cdef void toward(self, Index said)
    cdef Real spread(self)
