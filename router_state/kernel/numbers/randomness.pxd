from router_state.kernel.numbers.words cimport Floats, Index, Real, Word


cdef class Chance:
    cdef public Word state
    cdef Real next(self)
    cdef void normals(self, Floats found, Index at, Index n)
