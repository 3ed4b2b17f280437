"""Plans of two calls: a model answers, a verifier looks at the answer, another model answers if it
did not pass.

With t and f the shares of right and of wrong answers that pass, a plan (a, look, b) is worth

    t·r_a + (1 − P)·r_b − gap,    P = t·r_a + f·(1 − r_a),    gap = ρ·(t − f)·√(r_a(1 − r_a)·r_b(1 − r_b)),

at a cost of c_a + fee + (1 − P)·c_b. The gap is what b earns less where a has failed, as prompts
are hard for all models alike; a ρ of 1 says that a verdict tells no more than that.

Whatever a and the look are, the best b is taken to be the other model whose call alone is best. So of all
K·L·(K − 1) plans K·L have to be compared.
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.choosing.candidates cimport COST, Candidates, MEAN, PENALTY, ROW
from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, block, known, of_block, view,
)
from router_state.kernel.pacing.dual cimport Options
from router_state.kernel.pacing.dual import FAR as _FAR
from router_state.kernel.pacing.window import CLOSED, PRICES

cdef Real LEAST = 0.02
"""Least probability that an answer is right, and one less the largest: rewards are estimates beyond
0 and 1, too."""
cdef Real OPEN = -0.5 * CLOSED
"""Score below which an arm is closed."""
cdef Real NONE = -float("inf")
cdef Real NEVER = -1e9
"""What a look earns that can't be taken."""
cdef Real FAR = _FAR


cdef class Looks:
    """The looks that can be taken at an answer: each is a verifier and the bin from which it
    passes.

    Attributes:
        L, K: looks and models.
        array: the dollars of each look and its ρ (2L), then by look and model the shares of right answers
            that pass (LK), and those of wrong ones (LK).
    """

    def __init__(self, Index L, Index K):
        self.L, self.K, self.array = L, K, np.zeros(2 * L + 2 * L * K)
        self.values = view(self.array)

    def put(self, Index look, Index k, Real right, Real wrong):
        """Set which shares of the k-th model's right and wrong answers a look passes."""
        if not (0 <= look < self.L and 0 <= k < self.K):
            raise IndexError(f"there is no look {look} at model {k}")
        self.values[2 * self.L + look * self.K + k] = right
        self.values[2 * self.L + (self.L + look) * self.K + k] = wrong

    def charge(self, Index look, Real usd, Real alike):
        """Set what a look costs, and its ρ."""
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
        """Return by how much less a second answer earns for having followed one of the k-th model
        that did not pass, times the probability of that; r, b: what both are expected to earn."""
        tells: Real = self.passes(look, k) - self.slips(look, k)
        return self.alike(look) * max(tells, 0.0) * sqrt(r * (1.0 - r) * b * (1.0 - b))

    cdef Real fee(self, Index look) noexcept:
        return self.values[look]


cdef class PlannedOptions(Options):
    """The options of a window's contexts where each may also choose a plan.

    Args:
        single: scores and costs of the arms alone.
        looks: at their answers.
        shut: by row, the numbers of the looks that its request can't have.
    """

    def __init__(self, Options single, Looks looks, dict shut):
        n, K, L = single.n, single.K, looks.L
        Options.__init__(self, n, K)
        if looks.K != K or n > len(PRICES):
            raise ValueError(f"looks at {looks.K} models are none at {K}")
        self.array, self.values, self.looks = single.array, single.values, looks
        self._prices = PRICES
        self.own = known(PRICES, len(PRICES))
        self._block = block(n * K * (1 + 3 * L))
        self.parts = of_block(self._block)
        self._prepare()
        for row, numbers in shut.items():
            for look in numbers:
                if row < n and 0 <= look < L:
                    for k in range(K):
                        self.parts[n * K + ((row * K + k) * L + look) * 3] = NEVER

    cdef void _prepare(self):
        """Write what no price changes: the deviation of each answer's outcome, and of each call
        with a look what it earns itself, the probability that another follows, and what its
        failing takes off that one's deviation."""
        n, K, L, looks = self.n, self.K, self.looks.L, self.looks
        for row in range(n):
            for k in range(K):
                score: Real = self.values[k * n + row]
                r: Real = bounded(score)
                deviation: Real = sqrt(r * (1.0 - r))
                self.parts[row * K + k] = deviation
                for look in range(L):
                    part: Floats = behind(self.parts, n * K + ((row * K + k) * L + look) * 3)
                    t: Real = looks.passes(look, k)
                    f: Real = looks.slips(look, k)
                    part[0] = NEVER if score < OPEN else score - (1.0 - t) * r
                    part[1] = 1.0 - t * r - f * (1.0 - r)
                    part[2] = looks.alike(look) * max(t - f, 0.0) * deviation

    def spend(self, Real price):
        """Return the mean cost of what contexts choose at a price of a dollar."""
        self.choose(price)
        return self.dollars / self.n

    cdef void choose(self, Real price):
        """See Options."""
        Options.choose(self, price)
        if price >= FAR:
            return
        n, K, L = self.n, self.K, self.looks.L
        looks, own = self.looks, self.own
        scores: Floats = self.values
        costs: Floats = behind(scores, K * n)
        won: Floats = behind(costs, (K + 1) * n)
        for row in range(n):
            b: Index = <Index>won[row]
            top: Real = scores[b * n + row] - price * costs[b * n + row]
            if scores[b * n + row] < OPEN:
                continue
            # The second best, for plans that begin with the best.
            other: Index = -1
            most: Real = NONE
            for k in range(K):
                value: Real = scores[k * n + row] - price * costs[k * n + row]
                if k != b and value > most and scores[k * n + row] >= OPEN:
                    most, other = value, k
            gain: Real = 0.0
            score: Real = 0.0
            dollars: Real = 0.0
            parts: Floats = behind(self.parts, n * K + row * K * L * 3)
            for k in range(K):
                second: Index = other if k == b else b
                if second < 0:
                    continue
                then: Index = second * n + row
                cost: Real = costs[k * n + row]
                following: Real = scores[then] - price * costs[then]
                deviation: Real = self.parts[row * K + second]
                for look in range(L):
                    part: Floats = behind(parts, (k * L + look) * 3)
                    usd: Real = cost + looks.fee(look) * own[row]
                    worth: Real = part[0] - part[2] * deviation
                    more: Real = worth - price * usd + part[1] * following - top
                    if more > gain:
                        gain = more
                        score = worth + part[1] * scores[then]
                        dollars = usd + part[1] * costs[then]
            if gain > 0.0:
                self.total += score - scores[b * n + row]
                self.dollars += dollars - costs[b * n + row]


cdef class Planning:
    """One request's plans, given what is expected of each arm.

    Args:
        seen: the arms.
        models: their models of costs.
        shut: numbers of looks that can't be taken.
        per_dollar: what a dollar costs in reward.
        left_usd: dollars that both calls may be expected to cost, and the look; most_usd: what they
            stay below in nine of ten cases.
    """

    cdef Candidates seen
    cdef list models
    cdef object shut
    cdef Real per_dollar
    cdef Real left_usd
    cdef Real most_usd

    def __init__(
        self,
        Candidates seen,
        list models,
        shut,
        *,
        Real per_dollar,
        Real left_usd,
        Real most_usd,
    ):
        if not len(models) == len(seen.excluded) == seen.K:
            raise ValueError(f"{len(models)} models are not {seen.K}")
        self.seen, self.models, self.shut = seen, models, shut
        self.per_dollar, self.left_usd, self.most_usd = per_dollar, left_usd, most_usd

    def best(self, Index b, Looks looks):
        """Return the plan that is better than a call of the b-th arm alone by the most, and ends
        with that arm or begins with it: (first, look, second, gain); None if there is none."""
        self._require(looks)
        if not 0 <= b < self.seen.K:
            raise IndexError(f"there is no arm {b} of {self.seen.K}")
        found = self._best(b, looks)
        return None if found[0] < 0 else found

    cdef void _require(self, Looks looks):
        if looks.K != self.seen.K:
            raise ValueError(f"looks at {looks.K} models are none at {self.seen.K}")

    cdef (Index, Index, Index, Real) _best(self, Index b, Looks looks):
        """See `best`; a first arm of −1 where there is no plan."""
        seen: Candidates = self.seen
        K: Index = seen.K
        values: Floats = seen._values
        top: Real = values[ROW * b + MEAN] - values[ROW * b + PENALTY]
        other: Index = -1
        most: Real = NONE
        for k in range(K):
            value: Real = values[ROW * k + MEAN] - values[ROW * k + PENALTY]
            if k != b and value > most and seen.excluded[k] is None:
                most, other = value, k
        gain: Real = 0.0
        first: Index = -1
        taken: Index = -1
        then_called: Index = -1
        for k in range(K):
            second: Index = other if k == b else b
            if second < 0 or seen.excluded[k] is not None:
                continue
            at: Floats = behind(values, ROW * k)
            then: Floats = behind(values, ROW * second)
            r: Real = bounded(at[MEAN])
            other_r: Real = bounded(then[MEAN])
            alone: Real = at[MEAN] - at[PENALTY]
            following: Real = then[MEAN] - then[PENALTY]
            for look in range(looks.L):
                if self.shut and look in self.shut:
                    continue
                right: Real = looks.passes(look, k) * r
                fails: Real = 1.0 - right - looks.slips(look, k) * (1.0 - r)
                less: Real = r - right + looks.gap(look, k, r, other_r)
                fee: Real = looks.fee(look)
                more: Real = alone - less - self.per_dollar * fee + fails * following - top
                if more > gain and self._pays(k, fee, second):
                    gain, first, taken, then_called = more, k, look, second
        return first, taken, then_called, gain

    cdef Flag _pays(self, Index first, Real fee, Index second):
        """Tell whether there is money for two calls and a look."""
        values: Floats = self.seen._values
        a: Real = values[ROW * first + COST]
        b: Real = values[ROW * second + COST]
        if a + fee + b > self.left_usd:
            return False
        one: CostModel = self.models[first]
        dear: Real = one.dear(a) + fee
        one = self.models[second]
        return dear + one.dear(b) <= self.most_usd

    def chance_of_first(self, Index first, Looks sure, Looks hopeful, Real tried):
        """Return the probability that an arm is called first, alone or with a plan.

        Args:
            sure, hopeful: what plans are made by, and what they are tried by otherwise, with the
                probability `tried`.
        """
        self._require(sure)
        self._require(hopeful)
        total: Real = 0.0
        for b in range(self.seen.K):
            if self.seen.excluded[b] is not None:
                continue
            share: Real = 1.0 if b == first else 0.0
            found = self._best(b, sure)
            if found[0] >= 0:
                share = 1.0 if found[0] == first else 0.0
            else:
                found = self._best(b, hopeful)
                if found[0] >= 0:
                    share = (1.0 - tried) * share + (tried if found[0] == first else 0.0)
            if share > 0.0:
                total += share * self.seen.chance_of(b)
        return min(total, 1.0)


def expected_of(Candidates seen, Looks looks, Index first, Index look, Index second):
    """Return of a plan the expected reward, the probability of a second call, and by how much less
    that earns for following an answer that did not pass, for a ρ of 1."""
    if not (0 <= look < looks.L and max(first, second) < min(seen.K, looks.K)):
        raise IndexError(f"there is no look {look} at {first}")
    at: Floats = behind(seen._values, seen.row(first))
    then: Floats = behind(seen._values, seen.row(second))
    r: Real = bounded(at[MEAN])
    right: Real = looks.passes(look, first) * r
    fails: Real = 1.0 - right - looks.slips(look, first) * (1.0 - r)
    lost: Real = looks.gap(look, first, r, bounded(then[MEAN]))
    alike: Real = looks.alike(look)
    reward: Real = at[MEAN] - (r - right) + fails * then[MEAN] - lost
    return reward, fails, lost / (alike * max(fails, LEAST)) if alike > 0.0 else 0.0


cdef inline Real bounded(Real reward) noexcept:
    return LEAST if reward < LEAST else 1.0 - LEAST if reward > 1.0 - LEAST else reward
