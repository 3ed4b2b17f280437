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
"""Numbers of 64 bits, one behind the other, that may be written."""
Known: TypeAlias = Floats
"""The same, to be read only."""
Singles: TypeAlias = Floats
"""Numbers of 32 bits, one behind the other."""
Array: TypeAlias = Floats
"""An array of numpy."""
MASK = 0xFFFFFFFFFFFFFFFF
"""Keeps a `Word` below 2⁶⁴."""


def cclass(kind: T) -> T:
    """Make a class's annotated attributes fields of a structure."""
    return kind


def cfunc(function: T) -> T:
    """Make a function one of C, which only the kernel can call."""
    return function


def view(array: Array) -> Floats:
    """Return the numbers of an array, to be read and written one at a time."""
    numbers = known(array)
    if numbers.readonly:
        raise ValueError("buffer source array is read-only")
    return numbers


def known(array: Array) -> Known:
    """Return the numbers of an array, to be read one at a time.

    Raises:
        TypeError, ValueError: it is no one-dimensional, contiguous array of 64-bit floats.
    """
    numbers = memoryview(array)
    if numbers.format != "d" or numbers.ndim != 1 or not numbers.c_contiguous:
        raise ValueError(f"no row of 64-bit floats: {numbers.format} of {numbers.ndim} dimensions")
    return numbers


def whole(value: float) -> int:
    """Return a float without its fraction."""
    return int(value)


def frexp(value: float) -> tuple[float, int]:
    """Return m in [½, 1) and e with m·2ᵉ = value."""
    return math.frexp(value)


def singles(array: Array) -> Singles:
    """Return the numbers of a contiguous array of 32-bit floats, one behind the other. Raises
    ValueError."""
    numbers = memoryview(array)
    if numbers.format != "f" or not numbers.c_contiguous:
        raise ValueError(f"no contiguous 32-bit floats: {numbers.format}")
    return numbers.cast("B").cast("f")
