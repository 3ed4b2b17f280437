from router_state.kernel.numbers.words cimport Real

cdef Real MEMORY, GUESSED, BELIEVED

