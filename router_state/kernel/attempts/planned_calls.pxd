from router_state.kernel.attempts.plans cimport Looks
from router_state.kernel.choosing.candidates cimport Candidates
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real


cdef Real LOWEST


cdef class Planning:
    cdef Candidates seen
    cdef Looks sure
    cdef Looks hopeful
    cdef object shut
    cdef Real per_dollar
    cdef Real left_usd
    cdef Real most_usd
    cdef object _held
    cdef Floats _numbers
    cdef Real _least
    cdef Index _top
    cdef Index _of[2]
    cdef Floats arm(self, Index k) noexcept
    cdef Flag is_open(self, Index k) noexcept
    cdef Flag may_win(self, Index k) noexcept
    cdef (Index, Index, Index, Flag, Real, Real) choose(self, Index b, Real tried, Chance chance)
    cdef Index first_look(self)
    cdef (Index, Index, Index, Real) _best(self, Index b, Flag hopeful)
    cdef Real _first(self, Index first, Real tried, Index known, Real total)
    cdef Index _other(self, Index b)
    cdef Floats _lines(self, Index b, Flag hopeful) except NULL
    cdef Flag allows(self, Index look)
    cdef Flag _pays(self, Index first, Real fee, Index second) noexcept
    cdef Flag pays_three(self, Index first, Index second, Index third, Real fee) noexcept
    cdef Real _won(self, Index b, Real low, Real high, Index cells)
    cdef Real _clear(self, Index n) noexcept
    cdef Index _rivals(self, Index b, Real low, Real high) noexcept
    cdef Real _below_all(self, Index n, Real z) noexcept
    cdef (Real, Real, Real) _chances(self, Index b, Index first, Real tried, Index cells)
