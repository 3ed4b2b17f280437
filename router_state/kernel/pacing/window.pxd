from router_state.kernel.numbers.words cimport Index, Singles


cdef class Window:
    cdef public object journal
    cdef readonly Index d
    cdef set written
    cdef readonly object contexts
    cdef Singles held
    cdef Index room
    cdef public dict limited
    cdef public Index size
    cdef public Index next
    cpdef Index push(self, x, limited_to)
    cdef void _hold(self, contexts)
