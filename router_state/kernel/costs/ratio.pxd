from router_state.kernel.numbers.words cimport Real

# Largest logarithm of an expected ratio: no call costs five hundred million times its list price.
cdef enum:
    MOST_EXPONENT = 20
