from router_state.kernel.numbers.words cimport Floats, Index, Real

cdef Real largest(Index k, Floats scores, Index n) noexcept
