"""exp, log and the normal distribution function, computed by additions and products alone.

Platforms' own functions differ in the last digit, which may change a decision. These are equal to
the bit on every IEEE 754 machine.
"""

import numpy as np

from router_state.kernel.numbers.words cimport (
    Floats, Index, Real, Whole, frexp, known, power_of_two, view, whole,
)

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static void wide_exps(double*, Py_ssize_t);
    """

cdef Real LOG2_E = 1.4426950408889634
cdef Real LN2_HIGH = 0.6931471803691238
cdef Real LN2_LOW = 1.9082149292705877e-10
"""ln 2 in two parts; products of the first part with a small whole number are exact."""
cdef Real LEAST = -745.2
cdef Real MOST = 709.79
"""Bounds of exp: it is 0 below the first bound, and infinite above the second."""
cdef Real ROOT_TAU = 2.5066282746310002
"""√(2π)."""
cdef Real INFINITE = float("inf")


cdef Real exp(Real x) noexcept:
    """Return eˣ, within a unit of the last digit."""
    if not x > LEAST:
        return 0.0 if x <= LEAST else x
    if x > MOST:
        return INFINITE
    return bounded_exp(x)


cdef inline Real bounded_exp(Real x) noexcept:
    """Return eˣ for x between `LEAST` and `MOST`: 2ᵏ times a series in |r| ≤ ½·ln 2."""
    k: Whole = whole(x * LOG2_E + (0.5 if x >= 0.0 else -0.5))
    n: Real = k
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    # Pairs of terms, so that few products wait for one another.
    low = (1.0 + r) + r2 * (0.5 + r * 0.16666666666666666)
    middle = (0.041666666666666664 + r * 0.008333333333333333) + r2 * (
        0.001388888888888889 + r * 0.0001984126984126984
    )
    high = (2.48015873015873e-05 + r * 2.7557319223985893e-06) + r2 * (
        2.755731922398589e-07 + r * 2.505210838544172e-08
    )
    top = 2.08767569878681e-09 + r * 1.6059043836821613e-10
    total = low + r4 * (middle + r4 * (high + r4 * top))
    # Multiplied in two steps, as 2ᵏ itself may be too large or too small for a float.
    half: Whole = k >> 1
    return total * power_of_two(half) * power_of_two(k - half)


cdef void exps "wide_exps"(Floats x, Index n) noexcept:
    """Put eˣ in the place of each of n numbers x between `LEAST` and `MOST`."""
    for i in range(n):
        x[i] = bounded_exp(x[i])


cdef Real log(Real x) noexcept:
    """Return ln x: −∞ for 0, and NaN for a negative number."""
    if not 0.0 < x < INFINITE:
        return -INFINITE if x == 0.0 else x if x > 0.0 else INFINITE - INFINITE
    m, e = frexp(x)
    if m * m < 0.5:
        m *= 2.0
        e -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 0.047619047619047616
    series = series * z + 0.05263157894736842
    series = series * z + 0.058823529411764705
    series = series * z + 0.06666666666666667
    series = series * z + 0.07692307692307693
    series = series * z + 0.09090909090909091
    series = series * z + 0.1111111111111111
    series = series * z + 0.14285714285714285
    series = series * z + 0.2
    series = series * z + 0.3333333333333333
    return e * LN2_HIGH + (2.0 * s + (2.0 * s * z * series + e * LN2_LOW))


cdef Real power(Real base, Index n) noexcept:
    """Return baseⁿ, n ≥ 0."""
    total = 1.0
    while n > 0:
        if n % 2 == 1:
            total *= base
        base *= base
        n //= 2
    return total


cdef Real below(Real z) noexcept:
    """Return P(Z < z) of a standard normal Z, at most 8e-8 off (Abramowitz and Stegun 26.2.17)."""
    size = z if z >= 0.0 else -z
    t = 1.0 / (1.0 + 0.2316419 * size)
    series = t * (
        0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    )
    above = exp(-0.5 * size * size) / ROOT_TAU * series
    return 1.0 - above if z >= 0.0 else above


def exp_of(Real x):
    """Return eˣ, see `exp`, for decisions outside of the kernel."""
    return exp(x)


def log_of(Real x):
    """Return ln x, see `log`, for decisions outside of the kernel."""
    return log(x)


def tabulated(str name, values):
    """Return exp, log or the normal distribution function of each value, for tests."""
    given: Floats = known(values, len(values))
    found = np.empty(len(values))
    numbers: Floats = view(found)
    for i in range(len(values)):
        x: Real = given[i]
        numbers[i] = exp(x) if name == "exp" else log(x) if name == "log" else below(x)
    return found
