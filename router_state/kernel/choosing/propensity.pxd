from router_state.kernel.numbers.words cimport Floats, Index, Real

cdef Real largest(Index k, Floats scores, Index n) noexcept
cdef Real nearly_below(Real z) noexcept
