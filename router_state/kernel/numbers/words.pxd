# C types of the kernel, and views of arrays. A row of numbers is a pointer: lengths are checked
# where an array comes in, and the array that owns the numbers must be kept alive.

from libc.math cimport frexp as c_frexp

ctypedef double Real
ctypedef Py_ssize_t Index
# Processors convert several whole numbers of 32 bits side by side.
ctypedef int Whole
# Computed modulo 2⁶⁴.
ctypedef unsigned long long Word
ctypedef bint Flag
ctypedef double* Floats
ctypedef float* Singles

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline double power_of_two(int k) {
        uint64_t bits = (uint64_t)((int64_t)k + 1023) << 52;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    """
    # 2ᵏ, k from −1022 to 1023.
    Real power_of_two(Whole k) noexcept

cdef Floats known(array, Index n) except? NULL
cdef Floats view(array) except? NULL
cdef scratch(Index n)
cdef block(Index n)
cdef Floats of_block(room) noexcept
cdef Singles singles(array, Index n) except? NULL


cdef inline Floats behind(Floats numbers, Index i) noexcept:
    """Return the numbers from the i-th on."""
    return numbers + i


cdef inline Whole whole(Real value) noexcept:
    """Truncate a float."""
    return <Whole>value


cdef inline (Real, Whole) frexp(Real value) noexcept:
    """Return m in [½, 1) and e with m·2ᵉ = value."""
    cdef Whole exponent = 0
    cdef Real mantissa = c_frexp(value, &exponent)
    return mantissa, exponent
