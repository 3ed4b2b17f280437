from router_state.kernel.numbers.words cimport Index


cdef class Window:
    cdef public object journal
    cdef public Index d
    cdef public object contexts
    cdef public dict limited
    cdef public Index size
    cdef public Index next
    cpdef Index push(self, x, limited_to)
