from router_state.kernel.numbers.words cimport Floats, Index, Real

cdef Real exp(Real x) noexcept
cdef void exps "wide_exps"(Floats x, Index n) noexcept
cdef Real log(Real x) noexcept
cdef Real power(Real base, Index n) noexcept
cdef Real below(Real z) noexcept
