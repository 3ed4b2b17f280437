"""The numbers of arrays, as C reads them."""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT
from cpython.buffer cimport PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memset

from numpy import ndarray

cdef extern from *:
    """
    #define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
    #define NO_IMPORT_ARRAY
    #include <numpy/arrayobject.h>
    static inline void* row_of(PyObject* array, int type, Py_ssize_t n) {
        PyArrayObject* row = (PyArrayObject*)array;
        int fits = PyArray_TYPE(row) == type && PyArray_NDIM(row) == 1;
        fits = fits && PyArray_ISCARRAY_RO(row) && PyArray_DIM(row, 0) == n;
        return fits ? PyArray_DATA(row) : NULL;
    }
    """
    int NPY_DOUBLE
    void* row_of(object array, int type, Py_ssize_t n) noexcept


cdef Floats known(array, Index n) except? NULL:
    """Check an array from outside, and return its n numbers for reading.

    Raises:
        TypeError, ValueError: it is not a one-dimensional, contiguous array of n 64-bit floats.
    """
    if type(array) is ndarray:
        # A faster check than the one below, which would make Python describe the buffer.
        row = row_of(array, NPY_DOUBLE, n)
        if row != NULL:
            return <Floats>row
    cdef Py_buffer found
    PyObject_GetBuffer(array, &found, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    fits = found.ndim == 1 and found.format[0] == c"d" and found.format[1] == 0
    fits = fits and found.shape[0] == n
    numbers = <Floats>found.buf
    PyBuffer_Release(&found)
    if not fits:
        raise ValueError(f"no {n} 64-bit floats, one behind the other")
    return numbers


cdef Floats view(array) except? NULL:
    """Return the numbers of the kernel's own array, for reading and writing."""
    return known(array, len(array))


cdef enum:
    LINE = 64
"""Bytes of a line of the processor's cache, at whose beginning rows start."""


cdef scratch(Index n):
    """Return room for n numbers that are not set, for as long as the caller holds it."""
    return PyBytes_FromStringAndSize(NULL, 8 * n + LINE)


cdef block(Index n):
    """Return room for n numbers, all 0."""
    made = scratch(n)
    memset(of_block(made), 0, 8 * n)
    return made


cdef Floats of_block(room) noexcept:
    """Return the numbers of a `block` or a `scratch`, for reading and writing."""
    address = <size_t>PyBytes_AS_STRING(room)
    return <Floats>(address + LINE - address % LINE)


cdef Singles singles(array, Index n) except? NULL:
    """Return the first n numbers of a contiguous array of 32-bit floats.

    Raises:
        TypeError, ValueError: the array is not of this kind, or has fewer numbers.
    """
    cdef Py_buffer found
    PyObject_GetBuffer(array, &found, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    fits = found.format[0] == c"f" and found.format[1] == 0 and found.len >= 4 * n
    numbers = <Singles>found.buf
    PyBuffer_Release(&found)
    if not fits:
        raise ValueError(f"no {n} 32-bit floats, one behind the other")
    return numbers
