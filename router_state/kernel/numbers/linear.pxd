from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real

cdef Real EPSILON
cdef Real dot "wide_dot"(Floats a, Index i, Floats b, Index j, Index n) noexcept
cdef void add "wide_add"(Real c, Floats a, Index i, Floats b, Index j, Index n) noexcept
cdef void times "wide_times"(
    Floats V, Index at, Floats x, Index i, Floats y, Index j, Index d
) noexcept
cdef Real quadratic "wide_quadratic"(Floats V, Index at, Floats x, Index i, Index d) noexcept
cdef void products "wide_products"(Floats x, Index d) noexcept
cdef void take_off "wide_take_off"(Real c, Floats u, Index i, Floats V, Index at, Index d) noexcept
cdef void take_off_rows(Floats rows, Index count, Floats V, Index d) noexcept
cdef void invert(Floats V, Index at, Index d, Floats column)
cdef void factor(Floats V, Index at, Index d) noexcept
cdef void product(Floats L, Index at, Index d) noexcept
cdef Real total_of "wide_total_of"(Floats a, Index i, Index n) noexcept
cdef Flag finite(Floats a, Index i, Index n) noexcept
