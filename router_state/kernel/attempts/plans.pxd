from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real
from router_state.kernel.pacing.dual cimport Options

cdef Real NEVER
cdef Real bounded(Real reward) noexcept


cdef class Looks:
    cdef public Index K
    cdef public Index L
    cdef public object array
    cdef Floats values
    cpdef know(self, Index k, Flag known)
    cdef Flag is_known(self, Index k) noexcept
    cpdef charge(self, Index look, Real usd, Real alike)
    cdef void set(self, Index look, Index k, Real right, Real wrong) noexcept
    cdef Real passes(self, Index look, Index k) noexcept
    cdef Real slips(self, Index look, Index k) noexcept
    cdef Real alike(self, Index look) noexcept
    cdef Real gap(self, Index look, Index k, Real r, Real b) noexcept
    cdef Real fee(self, Index look) noexcept


cdef class PlannedOptions(Options):
    cdef public Looks looks
    cdef Options _rewards
    cdef Real per_dollar
    cdef bint _in_dollars
    cdef object _prices
    cdef Floats own
    cdef object _block
    cdef Floats parts
    cdef Floats part(self, Index k, Index look) noexcept
    cdef void _prepare(self)
