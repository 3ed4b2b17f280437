from router_state.kernel.choosing.arm cimport Arm
from router_state.kernel.choosing.candidates cimport Candidates
from router_state.kernel.choosing.sample cimport PosteriorSample
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport Flag, Index, Real


cdef class Portfolio:
    cdef public Index d
    cdef public list all
    cdef public tuple names
    cdef public dict row
    cdef public SharedPrior rewards
    cdef public SharedPrior bills
    cdef public PosteriorSample sample
    cdef public list regressions
    cdef public list billed
    cdef public list priced
    cdef public list costs
    cdef public list open
    cdef public Real highest_per_1k
    cdef public Flag onboarding
    cdef public Flag suspect
    cdef public Flag unproven
    cpdef Arm find(self, str name)
    cpdef void played(self, Index k, Index t, Flag pulled)
    cpdef Flag due(self)
    cpdef void serve(self, x, Flag free)
    cpdef void estimate_rewards(self, Index t, Real gamma)
    cpdef learn(self, Arm arm, x, Real reward, Index t, Real gamma, Real now)
    cpdef Candidates look(self, x, Real tokens)
    cpdef Candidates look_at_means(self, x)
    cdef Candidates _predict(self, x)
    cdef Index _require_all(self, Candidates seen)
    cpdef void draw(self, Candidates seen, Real per_dollar, Chance chance)
    cpdef void hope(
        self, Candidates seen, Real per_log_price, Index t, Real alpha, Real gamma, Real least
    )
