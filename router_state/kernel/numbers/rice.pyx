"""Rice codes: whole numbers, most of them small, as few bits (Rice and Plaunt 1971)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memset

import numpy as np

from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, known, view, whole

ctypedef unsigned char Byte

cdef enum:
    MOST_BITS = 5
"""Most bits of a number beside those in unary."""


def encode(numbers):
    """Return n whole numbers, which are small enough for 32 bits, as bytes: k, the last k bits of
    each number, and the others in unary."""
    n: Index = len(numbers)
    values: Floats = known(numbers, n)
    best = k = 0
    size: Index = -1
    for bits in range(MOST_BITS + 1):
        total: Index = bits * n
        for i in range(n):
            total += folded(values[i]) >> bits
        if size < 0 or total < size:
            size, k = total, bits
    found = PyBytes_FromStringAndSize(NULL, 1 + (size + n + 7) // 8)
    code = <Byte*>PyBytes_AS_STRING(found)
    memset(code, 0, len(found))
    code[0] = k
    at: Index = 8
    for i in range(n):
        low = folded(values[i])
        for bit in range(k):
            put(code, at + bit, (low >> bit) & 1)
        at += k
    for i in range(n):
        at += folded(values[i]) >> k
        put(code, at, True)
        at += 1
    return found


def decode(bytes data, Index n):
    """Invert `encode`, for n numbers; bits behind them are 0. Raises ValueError."""
    size: Index = 8 * len(data)
    code = <Byte*>PyBytes_AS_STRING(data)
    k: Index = code[0] if size else MOST_BITS + 1
    if k > MOST_BITS or size < 8 + n * (k + 1):
        raise ValueError(f"{len(data)} bytes are no code of {n} numbers")
    found = np.empty(n)
    values: Floats = view(found)
    at: Index = 8 + n * k
    for i in range(n):
        high: Index = 0
        while at < size and not bit_of(code, at):
            at += 1
            high += 1
        if at == size:
            raise ValueError(f"the code ends after {i} of {n} numbers")
        at += 1
        low: Index = 0
        for bit in range(k):
            low |= <Index>bit_of(code, 8 + i * k + bit) << bit
        low |= high << k
        values[i] = -((low + 1) // 2) if low & 1 else low // 2
    while at < size:
        if bit_of(code, at):
            raise ValueError(f"the code is of more than {n} numbers")
        at += 1
    return found


cdef inline Index folded(Real value) noexcept:
    """Return 2v, or −2v − 1 where v is below 0."""
    number: Index = whole(value)
    return -2 * number - 1 if number < 0 else 2 * number


cdef inline Flag bit_of(Byte* code, Index at) noexcept:
    return (code[at >> 3] >> (7 - (at & 7))) & 1


cdef inline void put(Byte* code, Index at, Flag bit) noexcept:
    """Set a bit that is 0, if `bit`."""
    code[at >> 3] |= bit << (7 - (at & 7))
