from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real


cdef class SharedPrior:
    cdef public str name
    cdef public Index d
    cdef public object guess
    cdef public set pieces
    cdef public object mean
    cdef public object center
    cdef public Real ridge
    cdef public Real bias_ridge
    cdef public Real shared_ridge
    cdef public Real noise
    cdef public Real fourth
    cdef public Real noise_count
    cdef public Index seen
    cdef public Index due_at
    cdef Real typical(self)
    cdef Flag is_due(self)
    cdef Flag late(self)
    cpdef void observe(self, Real residual, Real variance)


cdef void rescale(
    SharedPrior prior, Floats known, Floats squares, Floats center, Real shared, Real square
)
