"""Names of the kernel's C types and decorators; in Python they do nothing.

In the compiled kernel they are Cython's: `build_kernel.py` declares the same names in C.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

COMPILED = False
"""True in the compiled kernel."""
Real: TypeAlias = float
"""A `double`."""
Index: TypeAlias = int
"""A whole number of 64 bits."""
Whole: TypeAlias = int
"""A whole number of 32 bits: processors convert several side by side."""
Word: TypeAlias = int
"""An unsigned number of 64 bits, computed modulo 2⁶⁴."""
Flag: TypeAlias = bool
"""A truth value."""
Floats: TypeAlias = Any
"""A row of 64-bit floats. In C it is a pointer, so lengths are checked elsewhere, and the array
that owns the numbers must be kept alive."""
Singles: TypeAlias = Any
"""A row of 32-bit floats; else as `Floats`."""
Array: TypeAlias = Any
"""An array of numpy."""
MASK = 0xFFFFFFFFFFFFFFFF
"""Mask that keeps a `Word` below 2⁶⁴."""


def cclass(kind: T) -> T:
    """Make a class's annotated attributes fields of a structure."""
    return kind


def uncollected(kind: T) -> T:
    """Leave a class's objects to counts of references: they are in no cycle."""
    return kind


def cfunc(function: T) -> T:
    """Make a function one of C, which only the kernel can call."""
    return function


def ccall(function: T) -> T:
    """Make a method one of C, which Python can call, too."""
    return function


def pure(function: T) -> T:
    """Make a function one of C that raises nothing."""
    return function


def vectored(function: T) -> T:
    """Compile a function for processors with wide vectors, too: the one that runs it chooses.

    No sum changes its order, so the numbers are equal to the bit.
    """
    return function


def view(array: Array) -> Floats:
    """Return the numbers of the kernel's own array, for reading and writing, without a check."""
    return memoryview(array)


def known(array: Array, n: Index) -> Floats:
    """Check an array from outside, and return its n numbers for reading.

    Raises:
        TypeError, ValueError: it is not a one-dimensional, contiguous array of n 64-bit floats.
    """
    numbers = memoryview(array)
    if numbers.format != "d" or numbers.ndim != 1 or not numbers.c_contiguous:
        raise ValueError(f"no row of 64-bit floats: {numbers.format} of {numbers.ndim} dimensions")
    if len(numbers) != n:
        raise ValueError(f"{len(numbers)} numbers are not {n}")
    return numbers


def block(n: Index) -> Array:
    """Return room for n numbers, all 0."""
    return bytearray(8 * n)


def of_block(room: Array) -> Floats:
    """Return the numbers of a `block`, for reading and writing."""
    return memoryview(room).cast("d")


def behind(numbers: Floats, i: Index) -> Floats:
    """Return the numbers from the i-th on, as pointer arithmetic does."""
    return numbers[i:]


def whole(value: float) -> int:
    """Truncate a float to a whole number of 32 bits."""
    return int(value)


def power_of_two(k: int) -> float:
    """Return 2ᵏ, k from −1022 to 1023."""
    return math.ldexp(1.0, k)


def frexp(value: float) -> tuple[float, int]:
    """Return m in [½, 1) and e with m·2ᵉ = value."""
    return math.frexp(value)


def singles(array: Array, n: Index) -> Singles:
    """Return the first n numbers of a contiguous array of 32-bit floats.

    Raises:
        TypeError, ValueError: it is not one, or has fewer.
    """
    numbers = memoryview(array)
    if numbers.format != "f" or not numbers.c_contiguous:
        raise ValueError(f"no contiguous 32-bit floats: {numbers.format}")
    found = numbers.cast("B").cast("f")
    if len(found) < n:
        raise ValueError(f"{len(found)} numbers are not {n}")
    return found
