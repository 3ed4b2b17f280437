"""Plans of two calls: a model answers, a verifier looks at the answer, another model answers if it
did not pass.

With t and f the shares of right and of wrong answers that pass, a plan (a, look, b) is worth

    t·r_a + (1 − P)·r_b − gap,    P = t·r_a + f·(1 − r_a),    gap = ρ·(t − f)·√(r_a(1 − r_a)·r_b(1 − r_b)),

at a cost of c_a + fee + (1 − P)·c_b. The gap is the reward that b loses where a has failed: a
prompt that is hard for one model is hard for others, too. With ρ = 1 a failed verdict tells only
that the prompt is hard.

Whatever a and the look are, the best b is taken to be the other model whose call alone is best. So of all
K·L·(K − 1) plans K·L have to be compared. A model of which little is known is not called second: it
would hardly ever be called, and never known.
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, known, of_block, scratch, view,
)
from router_state.kernel.pacing.dual cimport Options
from router_state.kernel.pacing.dual import FAR as _FAR
from router_state.kernel.pacing.window import CLOSED, PRICES

cdef Real LEAST_RIGHT = 0.02
"""Least probability that an answer is right, and one less the largest: rewards are estimates beyond
0 and 1, too."""
cdef Real OPEN = -0.5 * CLOSED
"""Score below which an arm is closed."""
cdef Real NEVER = -float("inf")
"""Reward of a look that can't be taken."""
cdef Real FAR = _FAR
cdef enum:
    WIDTH = 128
    WON = 0
    MULTIPLE = 1
    SCORE = 2
    USD = 3
    SPREAD = 4
    OTHER_VALUE = 5
    OTHER_SCORE = 6
    OTHER_USD = 7
    OTHER_SPREAD = 8
    BEST_VALUE = 9
    BEST_SCORE = 10
    BEST_USD = 11
    VALUE = 12
    ROWS = 13
"""Numbers from one row to the next, at least as many as contexts. Rows: of each context the best arm
that may be called second, and the context's multiple of the price; that arm's score, cost and
deviation of its outcome; the value and the same of the second-best such arm; of the best option; and
the value of the best such arm.
"""

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static void wide_second_best(
        double*, double*, double*, double*, double, double, double, Py_ssize_t
    );
    VECTORED static void wide_plan_rows(
        double*, double*, double*, double, double, double, Py_ssize_t
    );
    VECTORED static void wide_deviations(double*, double*, Py_ssize_t);
    VECTORED static void wide_plan_parts(
        double*, double*, double*, double*, double, double, double, double, Py_ssize_t
    );
    VECTORED static void wide_begin_rows(double*, double*, Py_ssize_t);
    """


cdef class Looks:
    """The looks that can be taken at an answer: each is a verifier and the bin from which it
    passes.

    Attributes:
        L, K: numbers of looks and of models.
        array: the dollars and the ρ of each look (2L); then by look and model the share of right
            answers that pass (LK), and the share of wrong answers that pass (LK); and for each
            model whether enough is known of it to be called second (K).
    """

    def __init__(self, Index L, Index K):
        self.L, self.K, self.array = L, K, np.zeros(2 * L + 2 * L * K + K)
        self.values = view(self.array)

    def put(self, Index look, Index k, Real right, Real wrong):
        """Set which shares of the k-th model's right and wrong answers a look passes."""
        if not (0 <= look < self.L and 0 <= k < self.K):
            raise IndexError(f"there is no look {look} at model {k}")
        self.set(look, k, right, wrong)

    cdef void set(self, Index look, Index k, Real right, Real wrong) noexcept:
        """See `put`; the look and the model are known to be there."""
        self.values[2 * self.L + look * self.K + k] = right
        self.values[2 * self.L + (self.L + look) * self.K + k] = wrong

    cpdef know(self, Index k, Flag known):
        """Set whether enough is known of the k-th model to call it only if another one's answer
        does not pass.
        """
        if not 0 <= k < self.K:
            raise IndexError(f"there is no model {k}")
        self.values[2 * self.L * (1 + self.K) + k] = known

    cdef Flag is_known(self, Index k) noexcept:
        return self.values[2 * self.L * (1 + self.K) + k] > 0.0

    cpdef charge(self, Index look, Real usd, Real alike):
        """Set the dollars of a look, and its ρ."""
        if not 0 <= look < self.L:
            raise IndexError(f"there is no look {look}")
        self.values[look], self.values[self.L + look] = usd, alike

    cdef Real passes(self, Index look, Index k) noexcept:
        return self.values[2 * self.L + look * self.K + k]

    cdef Real slips(self, Index look, Index k) noexcept:
        return self.values[2 * self.L + (self.L + look) * self.K + k]

    cdef Real alike(self, Index look) noexcept:
        return self.values[self.L + look]

    cdef Real gap(self, Index look, Index k, Real r, Real b) noexcept:
        """Return the reward that a second answer is expected to lose because the k-th model's
        answer did not pass, times the probability that it does not pass; r, b: the expected
        rewards of the first and of the second answer.
        """
        tells: Real = self.passes(look, k) - self.slips(look, k)
        return self.alike(look) * max(tells, 0.0) * sqrt(r * (1.0 - r) * b * (1.0 - b))

    cdef Real fee(self, Index look) noexcept:
        return self.values[look]


cdef class PlannedOptions(Options):
    """The options of a window's contexts where each may also choose a plan.

    Args:
        single: scores and costs of the arms alone.
        looks: looks at the arms' answers.
        shut: by row, the numbers of the looks that the row's request can't have.
        rewards: options whose scores are the expected rewards; None: those of `single`. Where they
            are given, costs are other than dollars, and scores have the dollars in them.
        per_dollar: what a dollar of a look costs in reward, beside `rewards`.
    """

    def __init__(
        self, Options single, Looks looks, dict shut, Options rewards=None, Real per_dollar=0.0
    ):
        n, K, L = single.n, single.K, looks.L
        if looks.K != K or n > len(PRICES) or n > WIDTH:
            raise ValueError(f"looks at {looks.K} models are none at {K}")
        self.n, self.K, self.total, self.dollars = n, K, 0.0, 0.0
        self.array, self.values, self.looks = single.array, single.values, looks
        self._rewards = single if rewards is None else rewards
        if self._rewards.K != K or self._rewards.n != n:
            raise ValueError(f"rewards of {self._rewards.K} models are none of {K}")
        self.per_dollar, self._in_dollars = per_dollar, rewards is None
        self._prices = PRICES
        self.own = known(PRICES, len(PRICES))
        self._block = scratch(WIDTH * (K + 3 * K * L + ROWS))
        self.parts = of_block(self._block)
        self._prepare()
        for row, numbers in shut.items():
            for look in numbers:
                if row < n and 0 <= look < L:
                    for k in range(K):
                        self.part(k, look)[row] = NEVER

    cdef Floats part(self, Index k, Index look) noexcept:
        """Return the three rows of calls of the k-th arm with a look, see `_prepare`."""
        return behind(self.parts, (self.K + (k * self.looks.L + look) * 3) * WIDTH)

    cdef void _prepare(self):
        """Write the numbers that do not depend on the price. Of each answer, the deviation of its
        outcome. Of each call with a look: 0. its own reward, 1. the probability that another call
        follows, and 2. the loss of the second answer per unit of that answer's deviation.
        """
        n, K, looks = self.n, self.K, self.looks
        for k in range(K):
            scores: Floats = behind(self.values, k * n)
            rewards: Floats = behind(self._rewards.values, k * n)
            spreads: Floats = behind(self.parts, k * WIDTH)
            deviations(rewards, spreads, n)
            for look in range(looks.L):
                t: Real = looks.passes(look, k)
                f: Real = looks.slips(look, k)
                alike: Real = looks.alike(look) * max(t - f, 0.0)
                fee: Real = self.per_dollar * looks.fee(look)
                plan_parts(scores, rewards, spreads, self.part(k, look), t, f, alike, fee, n)

    cdef void choose(self, Real price):
        """See Options."""
        if price >= FAR:
            Options.choose(self, price)
            return
        n, K, looks = self.n, self.K, self.looks
        scores: Floats = self.values
        costs: Floats = behind(scores, K * n)
        room: Floats = behind(self.parts, (K + 3 * K * looks.L) * WIDTH)
        begin_rows(room, self.own, n)
        for k in range(K):
            own: Floats = behind(self.parts, k * WIDTH)
            score: Floats = behind(scores, k * n)
            least: Real = OPEN if looks.is_known(k) else -NEVER
            two_best(score, behind(costs, k * n), own, room, k, least, price, n)
        for k in range(K):
            for look in range(looks.L):
                fee: Real = looks.fee(look) if self._in_dollars else 0.0
                plan_rows(self.part(k, look), behind(costs, k * n), room, k, price, fee, n)
        total: Real = 0.0
        dollars: Real = 0.0
        for row in range(n):
            total += room[BEST_SCORE * WIDTH + row]
            dollars += room[BEST_USD * WIDTH + row]
        self.total, self.dollars = total, dollars


cdef void deviations "wide_deviations"(Floats rewards, Floats found, Index n) noexcept:
    """Write the deviations of n outcomes, given their expected rewards."""
    for row in range(n):
        right: Real = bounded(rewards[row])
        found[row] = sqrt(right * (1.0 - right))


cdef void plan_parts "wide_plan_parts"(
    Floats scores, Floats rewards, Floats spreads, Floats own,
    Real t, Real f, Real alike, Real fee, Index n,
) noexcept:
    """Write the three rows of calls with a look, see `PlannedOptions._prepare`."""
    for row in range(n):
        r: Real = bounded(rewards[row])
        score: Real = scores[row]
        value: Real = score - (1.0 - t) * r - fee
        own[row] = NEVER if score < OPEN else value
        own[WIDTH + row] = 1.0 - t * r - f * (1.0 - r)
        own[2 * WIDTH + row] = alike * spreads[row]


cdef void begin_rows "wide_begin_rows"(Floats room, Floats own, Index n) noexcept:
    """Let each context have no option so far, and no arm be called second."""
    for row in range(n):
        room[BEST_VALUE * WIDTH + row] = NEVER
        room[BEST_SCORE * WIDTH + row] = room[BEST_USD * WIDTH + row] = 0.0
        room[WON * WIDTH + row], room[MULTIPLE * WIDTH + row] = -1.0, own[row]
        room[SCORE * WIDTH + row] = room[VALUE * WIDTH + row] = NEVER
        room[OTHER_SCORE * WIDTH + row] = room[OTHER_VALUE * WIDTH + row] = NEVER
        room[USD * WIDTH + row] = room[SPREAD * WIDTH + row] = 0.0
        room[OTHER_USD * WIDTH + row] = room[OTHER_SPREAD * WIDTH + row] = 0.0


cdef void two_best "wide_second_best"(
    Floats scores, Floats costs, Floats spreads, Floats room, Real k, Real least, Real price, Index n
) noexcept:
    """Let a call of the k-th arm alone be a context's option where it is better than the best so
    far, and the best or second-best to be called second where its score is at least `least`.
    """
    for row in range(n):
        score: Real = scores[row]
        usd: Real = costs[row]
        spread: Real = spreads[row]
        value: Real = score - price * usd
        option: Real = room[BEST_VALUE * WIDTH + row]
        option_score: Real = room[BEST_SCORE * WIDTH + row]
        option_usd: Real = room[BEST_USD * WIDTH + row]
        room[BEST_VALUE * WIDTH + row] = value if value > option else option
        room[BEST_SCORE * WIDTH + row] = score if value > option else option_score
        room[BEST_USD * WIDTH + row] = usd if value > option else option_usd
        value = value if score >= least else NEVER
        best: Real = room[VALUE * WIDTH + row]
        best_score: Real = room[SCORE * WIDTH + row]
        best_usd: Real = room[USD * WIDTH + row]
        best_spread: Real = room[SPREAD * WIDTH + row]
        won: Real = room[WON * WIDTH + row]
        other: Real = room[OTHER_VALUE * WIDTH + row]
        # What does not become the best is compared with the second-best, and so is what was best.
        second: Real = best if value > best else value
        second_score: Real = best_score if value > best else score
        second_usd: Real = best_usd if value > best else usd
        second_spread: Real = best_spread if value > best else spread
        room[VALUE * WIDTH + row] = value if value > best else best
        room[SCORE * WIDTH + row] = score if value > best else best_score
        room[USD * WIDTH + row] = usd if value > best else best_usd
        room[SPREAD * WIDTH + row] = spread if value > best else best_spread
        room[WON * WIDTH + row] = k if value > best else won
        kept_score: Real = room[OTHER_SCORE * WIDTH + row]
        kept_usd: Real = room[OTHER_USD * WIDTH + row]
        kept_spread: Real = room[OTHER_SPREAD * WIDTH + row]
        room[OTHER_VALUE * WIDTH + row] = second if second > other else other
        room[OTHER_SCORE * WIDTH + row] = second_score if second > other else kept_score
        room[OTHER_USD * WIDTH + row] = second_usd if second > other else kept_usd
        room[OTHER_SPREAD * WIDTH + row] = second_spread if second > other else kept_spread


cdef void plan_rows "wide_plan_rows"(
    Floats own, Floats costs, Floats room, Real k, Real price, Real fee, Index n
) noexcept:
    """Let a call of the k-th arm with a look be a context's option where a plan that begins with it
    is better than the best so far; `own` are its three rows, see `PlannedOptions._prepare`.
    """
    for row in range(n):
        first: Real = room[WON * WIDTH + row]
        best_score: Real = room[SCORE * WIDTH + row]
        best_usd: Real = room[USD * WIDTH + row]
        best_spread: Real = room[SPREAD * WIDTH + row]
        other_score: Real = room[OTHER_SCORE * WIDTH + row]
        other_usd: Real = room[OTHER_USD * WIDTH + row]
        other_spread: Real = room[OTHER_SPREAD * WIDTH + row]
        score: Real = other_score if first == k else best_score
        usd: Real = other_usd if first == k else best_usd
        spread: Real = other_spread if first == k else best_spread
        goes_on: Real = own[WIDTH + row]
        score = own[row] - own[2 * WIDTH + row] * spread + goes_on * score
        usd = costs[row] + fee * room[MULTIPLE * WIDTH + row] + goes_on * usd
        value: Real = score - price * usd
        before: Real = room[BEST_VALUE * WIDTH + row]
        kept_score: Real = room[BEST_SCORE * WIDTH + row]
        kept_usd: Real = room[BEST_USD * WIDTH + row]
        room[BEST_VALUE * WIDTH + row] = value if value > before else before
        room[BEST_SCORE * WIDTH + row] = score if value > before else kept_score
        room[BEST_USD * WIDTH + row] = usd if value > before else kept_usd


cdef Real bounded(Real reward) noexcept:
    return LEAST_RIGHT if reward < LEAST_RIGHT else 1.0 - LEAST_RIGHT if reward > 1.0 - LEAST_RIGHT else reward
