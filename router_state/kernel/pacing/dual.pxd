from router_state.kernel.numbers.words cimport Floats, Index, Real


cdef class Options:
    cdef public object array
    cdef Floats values
    cdef public Index n
    cdef public Index K
    cdef public Real total
    cdef public Real dollars
    cdef void choose(self, Real price)
    cdef void compete(self, Real price)
