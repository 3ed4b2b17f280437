from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real

# Number of decisions that share one measure of levels and one solution of the dual; from 1 to 16
# it makes no difference (lab/docs/mechanisms.md). Each of the first decisions has its own.
cdef enum:
    EVERY = 8


cdef class PosteriorSample:
    cdef public object journal
    cdef public set pieces
    cdef public Index d
    cdef public Index K
    cdef public Index decided
    cdef public Index left
    cdef public object array
    cdef Floats values
    cpdef Flag serve(self, x)
    cdef Real spread(self, Index k, Real variance, Real noise, Real decay)
