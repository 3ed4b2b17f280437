from router_state.kernel.numbers.words cimport Real


cdef class Total:
    cdef public Real usd
    cdef public Real rest
    cpdef void add(self, Real usd)
