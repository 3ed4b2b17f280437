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
cdef Flag finite "wide_finite"(Floats a, Index i, Index n) noexcept


cdef inline void add_of(Real c, Floats a, Index i, Floats b, Index j, Index n) noexcept:
    """See `add`; this version is inlined into the function that calls it."""
    for k in range(n):
        b[j + k] += c * a[i + k]


cdef inline void add_two(
    Real c, Floats a, Real other, Floats b, Floats y, Index n
) noexcept:
    """Add c times n entries of a, then `other` times n entries of b, to n entries of y. Two calls
    of `add` do the same, but read and write y twice.
    """
    for k in range(n):
        y[k] = (y[k] + c * a[k]) + other * b[k]
