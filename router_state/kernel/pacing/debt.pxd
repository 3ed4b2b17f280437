from router_state.kernel.numbers.words cimport Flag, Real


cdef class Debt:
    cdef public Real usd
    cdef public Real scatter
    cdef public Real settled
    cpdef Flag charge(self, Real usd, Real budget_usd)
    cpdef void note(self, Real difference_usd, Real budget_usd)
    cpdef Flag settle(self, Real difference_usd, Real budget_usd, Flag first)
    cdef Real _scatter(self, Real budget_usd)
