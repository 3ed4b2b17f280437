from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real

# Number of dimensions from which on corrections of V are collected; benchmarks.core times 26 and
# 385.
cdef enum:
    WIDE = 64

# Most corrections collected. Subtracting all in one pass costs hardly more than subtracting one,
# but each decision reads the pending corrections.
cdef enum:
    TAILS = 16


cdef class Gaussian:
    cdef public str piece
    cdef public object journal
    cdef public set pieces
    cdef public Index d
    cdef public Real decay
    cdef public Real forgotten
    cdef public Index last_update
    cdef public Index pending
    cdef public Index at
    cdef public Flag shared
    cdef public object array
    cdef Floats values
    cpdef void own(self)
    cdef void share(self)
    cpdef void changed(self)
    cdef void _repair(self)
    cpdef void flush(self)
