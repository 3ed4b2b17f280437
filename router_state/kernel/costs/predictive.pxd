from router_state.kernel.numbers.words cimport Real

cdef Real MOST_LOG_VARIANCE, Z90

