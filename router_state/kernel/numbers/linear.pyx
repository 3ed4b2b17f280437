"""Arithmetic of vectors and of symmetric matrices.

A matrix is kept as its lower triangle, row after row. Sums are taken in a fixed order, four or
eight side by side, so a processor can compute them together and every machine gets the same digits.
An argument `at`, `i` or `j` is the position where a matrix or a vector begins.
"""

from libc.math cimport sqrt

from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, behind

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static double wide_dot(double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t);
    VECTORED static void wide_add(double, double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t);
    VECTORED static void wide_take_off_four(double*, double*, Py_ssize_t, double*, Py_ssize_t);
    VECTORED static void wide_times(
        double*, Py_ssize_t, double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t
    );
    VECTORED static double wide_quadratic(double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t);
    VECTORED static void wide_products(double*, Py_ssize_t);
    VECTORED static void wide_take_off(
        double, double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t
    );
    VECTORED static void wide_sweep(double*, Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, double);
    VECTORED static int wide_finite(double*, Py_ssize_t, Py_ssize_t);
    VECTORED static double wide_total_of(double*, Py_ssize_t, Py_ssize_t);
    """

EPSILON = 1e-12
"""Largest relative error that counts as rounding: some thousand units of the last place of a
64-bit float.
"""

cdef enum:
    SIDE = 32
"""Number of numbers that a processor checks side by side: four vectors of eight."""


cdef inline Real dot_of(Floats a, Index i, Floats b, Index j, Index n) noexcept:
    """See `dot`; this version is inlined into the functions of this file."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    k: Index = 0
    while k + 8 <= n:
        s0 += a[i + k] * b[j + k]
        s1 += a[i + k + 1] * b[j + k + 1]
        s2 += a[i + k + 2] * b[j + k + 2]
        s3 += a[i + k + 3] * b[j + k + 3]
        s4 += a[i + k + 4] * b[j + k + 4]
        s5 += a[i + k + 5] * b[j + k + 5]
        s6 += a[i + k + 6] * b[j + k + 6]
        s7 += a[i + k + 7] * b[j + k + 7]
        k += 8
    if k + 4 <= n:
        s0 += a[i + k] * b[j + k]
        s1 += a[i + k + 1] * b[j + k + 1]
        s2 += a[i + k + 2] * b[j + k + 2]
        s3 += a[i + k + 3] * b[j + k + 3]
        k += 4
    while k < n:
        s0 += a[i + k] * b[j + k]
        k += 1
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


cdef Real dot "wide_dot"(Floats a, Index i, Floats b, Index j, Index n) noexcept:
    """Return the product of n entries of a from i on with those of b from j on."""
    return dot_of(a, i, b, j, n)


cdef void add "wide_add"(Real c, Floats a, Index i, Floats b, Index j, Index n) noexcept:
    """Add c times n entries of a from i on to those of b from j on."""
    add_of(c, a, i, b, j, n)


cdef void times "wide_times"(
    Floats V, Index at, Floats x, Index i, Floats y, Index j, Index d
) noexcept:
    """Write Vx into y, two rows of V at a time."""
    for row in range(0, d - 1, 2):
        below: Index = at + row + 1
        value = x[i + row]
        other = x[i + row + 1]
        first = dot_of(V, at, x, i, row) + V[at + row] * value
        second = dot_of(V, below, x, i, row + 1) + V[below + row + 1] * other
        add_two(value, behind(V, at), other, behind(V, below), behind(y, j), row)
        y[j + row], y[j + row + 1] = first + other * V[below + row], second
        at = below + row + 2
    if d % 2:
        value = x[i + d - 1]
        y[j + d - 1] = dot_of(V, at, x, i, d - 1) + V[at + d - 1] * value
        add_of(value, V, at, y, j, d - 1)


cdef Real quadratic "wide_quadratic"(Floats V, Index at, Floats x, Index i, Index d) noexcept:
    """Return xᵀVx."""
    total = 0.0
    for row in range(d):
        value = x[i + row]
        total += value * (2.0 * dot_of(V, at, x, i, row) + V[at + row] * value)
        at += row + 1
    return total


cdef void products "wide_products"(Floats x, Index d) noexcept:
    """Write the triangle of xxᵀ behind x, entries off the diagonal twice as large.

    Its dot product with the triangle of V is then xᵀVx.
    """
    place: Index = d
    for row in range(d):
        double: Real = 2.0 * x[row]
        for j in range(row):
            x[place + j] = double * x[j]
        x[place + row] = x[row] * x[row]
        place += row + 1


cdef void take_off "wide_take_off"(Real c, Floats u, Index i, Floats V, Index at, Index d) noexcept:
    """Subtract c·uuᵀ from V."""
    for row in range(d):
        add_of(-c * u[i + row], u, i, V, at, row + 1)
        at += row + 1


cdef void take_off_four "wide_take_off_four"(
    Floats c, Floats rows, Index d, Floats y, Index n
) noexcept:
    """Subtract c times the first n entries of each of four rows of d entries from those of y; the
    four factors c stand d apart. Four calls of `add` do the same, but read and write y four
    times.
    """
    c0, c1, c2, c3 = c[0], c[d], c[2 * d], c[3 * d]
    second: Floats = behind(rows, d)
    third: Floats = behind(rows, 2 * d)
    fourth: Floats = behind(rows, 3 * d)
    for k in range(n):
        y[k] = (((y[k] - c0 * rows[k]) - c1 * second[k]) - c2 * third[k]) - c3 * fourth[k]


cdef void take_off_rows(Floats rows, Index count, Floats V, Index d) noexcept:
    """Subtract vvᵀ from V for each of `count` rows v."""
    place: Index = 0
    for i in range(d):
        done: Index = 0
        while done + 4 <= count:
            v: Floats = behind(rows, done * d)
            take_off_four(behind(v, i), v, d, behind(V, place), i + 1)
            done += 4
        for row in range(done, count):
            add(-rows[row * d + i], rows, row * d, V, place, i + 1)
        place += i + 1


cdef void invert(Floats V, Index at, Index d, Floats column):
    """Invert V in place, by sweeping one pivot after the other (Goodnight 1979); `column` has room
    for d numbers.

    Raises:
        ZeroDivisionError: V is singular.
    """
    for k in range(d):
        sweep(V, at, d, column, k, 1.0 / V[at + k * (k + 1) // 2 + k])
    for n in range(at, at + d * (d + 1) // 2):
        V[n] = -V[n]


cdef void sweep "wide_sweep"(
    Floats V, Index at, Index d, Floats column, Index k, Real scale
) noexcept:
    """Sweep the k-th pivot of V, which is 1 ÷ `scale`."""
    first: Index = at + k * (k + 1) // 2
    for j in range(k):
        column[j] = V[first + j]
    column[k] = 0.0
    place: Index = first + k + 1
    for i in range(k + 1, d):
        column[i] = V[place + k]
        place += i + 1
    place = at
    for i in range(d):
        share: Real = -column[i] * scale
        for j in range(i + 1):
            V[place + j] += share * column[j]
        place += i + 1
    for j in range(k):
        V[first + j] = column[j] * scale
    V[first + k] = -scale
    place = first + k + 1
    for i in range(k + 1, d):
        V[place + k] = column[i] * scale
        place += i + 1


cdef void factor(Floats V, Index at, Index d) noexcept:
    """Replace V by L with LLᵀ = V (Cholesky).

    If rounding has left less than the share `EPSILON` of a pivot, the pivot is set to that share.
    """
    row = at
    for i in range(d):
        other = at
        for j in range(i):
            pivot: Real = V[other + j]
            rest: Real = V[row + j] - dot(V, row, V, other, j)
            V[row + j] = rest / pivot if pivot > 0.0 else 0.0
            other += j + 1
        least: Real = EPSILON * V[row + i]
        square: Real = V[row + i] - dot(V, row, V, row, i)
        square = square if square > least else least
        V[row + i] = sqrt(square) if square > 0.0 else 0.0
        row += i + 1


cdef void product(Floats L, Index at, Index d) noexcept:
    """Replace L by LLᵀ, see `factor`."""
    row = at + d * (d + 1) // 2
    for i in range(d - 1, -1, -1):
        row -= i + 1
        for j in range(i, -1, -1):
            L[row + j] = dot(L, row, L, at + j * (j + 1) // 2, j + 1)


cdef Real total_of "wide_total_of"(Floats a, Index i, Index n) noexcept:
    """Return the sum of n entries of a from i on."""
    s0 = s1 = s2 = s3 = 0.0
    k: Index = i
    while k + 4 <= i + n:
        s0 += a[k]
        s1 += a[k + 1]
        s2 += a[k + 2]
        s3 += a[k + 3]
        k += 4
    while k < i + n:
        s0 += a[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


cdef Flag finite "wide_finite"(Floats a, Index i, Index n) noexcept:
    """Tell whether n entries of a from i on are all finite."""
    cdef Real[SIDE] sums
    for k in range(SIDE):
        sums[k] = 0.0
    last: Index = i + n
    # The difference is 0 for a finite number, and NaN for all others.
    while i + SIDE <= last:
        for k in range(SIDE):
            sums[k] += a[i + k] - a[i + k]
        i += SIDE
    total: Real = 0.0
    while i < last:
        total += a[i] - a[i]
        i += 1
    for k in range(SIDE):
        total += sums[k]
    return total == 0.0


# For Python, which does not see numbers of C.
globals().update(EPSILON=EPSILON)
