"""The words of the kernel's types and decorators, which mean nothing to Python.

Compiled, they are those of Cython: see `build_kernel.py`, which declares the same names in C.
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
Word: TypeAlias = int
"""A natural number below 2⁶⁴, modulo which it is computed."""
Flag: TypeAlias = bool
"""A truth value."""
Floats: TypeAlias = Any
"""Numbers of 64 bits, one behind the other: in C where they begin, so that nothing tells how many
there are, and whose they are must be kept beside them."""
Singles: TypeAlias = Any
"""The same of 32 bits."""
Array: TypeAlias = Any
"""An array of numpy."""
MASK = 0xFFFFFFFFFFFFFFFF
"""Keeps a `Word` below 2⁶⁴."""


def cclass(kind: T) -> T:
    """Make a class's annotated attributes fields of a structure."""
    return kind


def cfunc(function: T) -> T:
    """Make a function one of C, which only the kernel can call."""
    return function


def pure(function: T) -> T:
    """Make a function one of C that raises nothing."""
    return function


def view(array: Array) -> Floats:
    """Return the numbers of an array that the kernel has made, to be read and written."""
    return memoryview(array)


def known(array: Array, n: Index) -> Floats:
    """Return the n numbers of an array that somebody else has made, to be read.

    Raises:
        TypeError, ValueError: it is not a one-dimensional, contiguous array of n 64-bit floats.
    """
    numbers = memoryview(array)
    if numbers.format != "d" or numbers.ndim != 1 or not numbers.c_contiguous:
        raise ValueError(f"no row of 64-bit floats: {numbers.format} of {numbers.ndim} dimensions")
    if len(numbers) != n:
        raise ValueError(f"{len(numbers)} numbers are not {n}")
    return numbers


def behind(numbers: Floats, i: Index) -> Floats:
    """Return numbers from the i-th on."""
    return numbers[i:]


def whole(value: float) -> int:
    """Return a float without its fraction."""
    return int(value)


def frexp(value: float) -> tuple[float, int]:
    """Return m in [½, 1) and e with m·2ᵉ = value."""
    return math.frexp(value)


def singles(array: Array, n: Index) -> Singles:
    """Return the first n numbers of a contiguous array of 32-bit floats.

    Raises:
        TypeError, ValueError: it is none, or has fewer.
    """
    numbers = memoryview(array)
    if numbers.format != "f" or not numbers.c_contiguous:
        raise ValueError(f"no contiguous 32-bit floats: {numbers.format}")
    found = numbers.cast("B").cast("f")
    if len(found) < n:
        raise ValueError(f"{len(found)} numbers are not {n}")
    return found
