from router_state.kernel.numbers.words cimport Flag, Index, Real


cdef class Side:
    cdef public Real evidence
    cdef public Index count
    cdef public Real total
    cdef public Real since
    cdef public Real leverage
    cdef Flag take(self, Real z, Real sigma, Real residual, Real leverage, Real now)


cdef class Detector:
    cdef public Real count
    cdef public Real sigma
    cdef public Real leverage
    cdef public Real spread
    cdef public Side up
    cdef public Side down
    cpdef observe(self, Real residual, Real deviation, Real leverage, Real now)
    cdef Flag doubts(self)
    cdef _found(self, Side run)
    cdef void _note(self, Real residual, Real sigma, Real leverage)
