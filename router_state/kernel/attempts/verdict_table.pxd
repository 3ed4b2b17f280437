from router_state.kernel.attempts.plans cimport Looks
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real


cdef class VerdictTable:
    cdef public Flag exact
    cdef public Index J
    cdef public Index K
    cdef public tuple names
    cdef public object array
    cdef Floats values
    cdef public Flag is_stale
    cdef object _held
    cdef Floats _stale
    cdef Floats _comes
    cdef Real _usd
    cpdef renew(self)
    cdef Floats row_of(self, Index k)
    cdef Real chance(self, Floats own, Index j, Real logit, Real deviations)
    cdef void _spread(self, Floats own, Real away, Floats room)
    cdef (Real, Real) _shares(self, Index edge, Index more, Floats room) noexcept
    cdef show(self, Index look, Views views)
    cdef void _write(
        self, Looks looks, Index look, Index k, Index edge, Index more, Real comes, Floats room
    ) noexcept


cdef class Views:
    cdef public Looks sure
    cdef public Looks likely
    cdef public Looks hopeful
    cdef list tables
    cdef Real away
    cdef Real apart
    cpdef refresh(self)
