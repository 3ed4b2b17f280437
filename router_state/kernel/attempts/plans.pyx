"""Plans of two calls: a model answers, a verifier looks at the answer, another model answers if it
did not pass.

With t and f the shares of right and of wrong answers that pass, a plan (a, look, b) is worth

    t·r_a + (1 − P)·r_b − gap,    P = t·r_a + f·(1 − r_a),    gap = ρ·(t − f)·√(r_a(1 − r_a)·r_b(1 − r_b)),

at a cost of c_a + fee + (1 − P)·c_b. The gap is the reward that b loses where a has failed: a
prompt that is hard for one model is hard for others, too. With ρ = 1 a failed verdict tells only
that the prompt is hard.

Whatever a and the look are, the best b is taken to be the other model whose call alone is best. So of all
K·L·(K − 1) plans K·L have to be compared.
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.choosing.candidates cimport (
    COST, Candidates, MEAN, PENALTY, ROW, SPREAD,
)
from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.numbers.elementary cimport below
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, block, known, of_block, scratch, view,
)
from router_state.kernel.pacing.dual cimport Options
from router_state.kernel.pacing.dual import FAR as _FAR
from router_state.kernel.pacing.window import CLOSED, PRICES

cdef Real LEAST_RIGHT = 0.02
"""Least probability that an answer is right, and one less the largest: rewards are estimates beyond
0 and 1, too."""
cdef Real OPEN = -0.5 * CLOSED
"""Score below which an arm is closed."""
cdef Real LOWEST = -float("inf")
cdef Real DRAWN = 0.5
"""Share of b's draw that counts where plans are compared with a call of b alone. With all of it good
verifiers gain less on CodeRouterBench; with none plans take b's exploration, worthless verifiers
cost up to 2 points, and a third of the budget is not spent (attempts, in the laboratory)."""
cdef Real INFINITE = float("inf")
cdef Real PLAN_WIDEST = 4.0
cdef enum:
    PLAN_CELLS = 48
"""Deviations either way, and cells, that probabilities are summed over."""
cdef Real NEVER = -1e9
"""Reward of a look that can't be taken."""
cdef Real FAR = _FAR


cdef class Looks:
    """The looks that can be taken at an answer: each is a verifier and the bin from which it
    passes.

    Attributes:
        L, K: numbers of looks and of models.
        array: the dollars and the ρ of each look (2L); then by look and model the share of right
            answers that pass (LK), and the share of wrong answers that pass (LK).
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
        """Write the numbers that do not depend on the price. Of each answer, the deviation of its
        outcome. Of each call with a look, its own reward, the probability that another call
        follows, and the loss of the second answer per unit of that answer's deviation.
        """
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
        """Return the mean cost of the options that the contexts choose at a price of a dollar."""
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
            # The second-best arm, for plans that begin with the best.
            other: Index = -1
            most: Real = LOWEST
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
    """One request's plans, given the draws of its arms.

    With b the arm whose draw is best, and z its drawn score, the gain of each plan over a call of b
    alone is a line α − β·z: plans count for what is expected of the other arm. So a plan is made
    where z lies in an interval, and its propensity is an integral over that. An arm that is drawn
    far above what is expected of it is called alone: plans take nothing from exploration.

    Args:
        seen: predictions for the arms, with their draws.
        models: cost models of the arms.
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
        """Return the plan that is better than a call of the b-th arm alone by the most, as that was
        drawn, and ends with it or begins with it: (first, look, second, gain); None: there is
        none."""
        held = self._lines(b, looks)
        lines: Floats = of_block(held)
        z: Real = self.seen.score_at(ROW * b)
        L: Index = looks.L
        gain: Real = 0.0
        found: Index = -1
        for i in range(self.seen.K * L):
            more: Real = lines[2 * i] - lines[2 * i + 1] * z
            if more > gain:
                gain, found = more, i
        if found < 0:
            return None
        k: Index = found // L
        return k, found % L, (self._other(b) if k == b else b), gain

    cdef Index _other(self, Index b):
        """Return the arm that is expected to be the best of the others; −1: there is none."""
        values: Floats = self.seen._values
        other: Index = -1
        most: Real = LOWEST
        for k in range(self.seen.K):
            value: Real = values[ROW * k + MEAN] - values[ROW * k + PENALTY]
            if k != b and value > most and self.seen.excluded[k] is None:
                most, other = value, k
        return other

    cdef _lines(self, Index b, Looks looks):
        """Return α and β of every first arm and look; of those that can't be, α is `NEVER`."""
        seen: Candidates = self.seen
        K, L = seen.K, looks.L
        if looks.K != K or not 0 <= b < K:
            raise ValueError(f"looks at {looks.K} models are none at {K}")
        held = scratch(2 * K * L)
        lines: Floats = of_block(held)
        values: Floats = seen._values
        other: Index = self._other(b)
        expected: Real = values[ROW * b + MEAN] - values[ROW * b + PENALTY]
        for k in range(K):
            second: Index = other if k == b else b
            possible = second >= 0 and seen.excluded[k] is None
            at: Floats = behind(values, ROW * k)
            then: Floats = behind(values, ROW * max(second, 0))
            r: Real = bounded(at[MEAN])
            other_r: Real = bounded(then[MEAN])
            following: Real = then[MEAN] - then[PENALTY]
            for look in range(L):
                line: Floats = behind(lines, 2 * (k * L + look))
                line[0], line[1] = NEVER, 1.0
                fee: Real = looks.fee(look)
                if not possible or (self.shut and look in self.shut):
                    continue
                if not self._pays(k, fee, second):
                    continue
                t: Real = looks.passes(look, k)
                f: Real = looks.slips(look, k)
                less: Real = looks.gap(look, k, r, other_r) + self.per_dollar * fee
                if k == b:
                    line[1] = 1.0 - t + (t - f) * following
                    line[0] = (1.0 - f) * following - less - line[1] * at[PENALTY]
                else:
                    line[1] = t * r + f * (1.0 - r)
                    line[0] = at[MEAN] - at[PENALTY] - (1.0 - t) * r - less
                line[0] -= (1.0 - DRAWN) * line[1] * expected
                line[1] *= DRAWN
        return held

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

    cdef Real _won(self, Index b, Real low, Real high):
        """Return the probability that the b-th arm's draw is the best, and lies in an interval."""
        values: Floats = self.seen._values
        mean: Real = values[ROW * b + MEAN] - values[ROW * b + PENALTY]
        deviation: Real = sqrt(values[ROW * b + SPREAD])
        if deviation <= 0.0:
            return self._below_all(b, mean) if low <= mean < high else 0.0
        low = max(low, mean - PLAN_WIDEST * deviation)
        high = min(high, mean + PLAN_WIDEST * deviation)
        if low >= high:
            return 0.0
        step: Real = (high - low) / PLAN_CELLS
        total: Real = 0.0
        before: Real = self._below_all(b, low)
        mass: Real = below((low - mean) / deviation)
        for i in range(1, PLAN_CELLS + 1):
            z: Real = low + step * i
            now: Real = self._below_all(b, z)
            upto: Real = below((z - mean) / deviation)
            total += 0.5 * (now + before) * (upto - mass)
            before, mass = now, upto
        return total

    cdef Real _below_all(self, Index b, Real z):
        """Return the probability that all other arms' draws are below z."""
        values: Floats = self.seen._values
        product: Real = 1.0
        for k in range(self.seen.K):
            if k != b and self.seen.excluded[k] is None:
                gap: Real = z - values[ROW * k + MEAN] + values[ROW * k + PENALTY]
                deviation: Real = sqrt(values[ROW * k + SPREAD])
                if gap < -PLAN_WIDEST * deviation:
                    return 0.0
                if gap < PLAN_WIDEST * deviation:
                    product *= below(gap / deviation)
        return product

    def chances(self, Index b, Index first, Looks sure, Looks hopeful, Real tried):
        """Return the probabilities of what may be done with the b-th arm's draw the best: a call of
        it alone, the plan of `sure` and that of `hopeful` that begin with an arm.

        Args:
            sure, hopeful: what plans are made by, and what they are tried by where there is none,
                with the probability `tried`.
        """
        made, hoped = self._lines(b, sure), self._lines(b, hopeful)
        n: Index = self.seen.K * sure.L
        certain: Real = crossing(of_block(made), n)
        hoping: Real = crossing(of_block(hoped), n)
        planned: Real = 0.0
        trial: Real = 0.0
        for look in range(sure.L):
            i: Index = first * sure.L + look
            low, high = interval(of_block(made), n, i)
            if low < high:
                planned += self._won(b, low, high)
            low, high = interval(of_block(hoped), n, i)
            if max(low, certain) < high:
                trial += tried * self._won(b, max(low, certain), high)
        alone: Real = self._won(b, certain, INFINITE)
        if hoping > certain:
            alone -= tried * self._won(b, certain, hoping)
        return alone, planned, trial

    def chance_of_first(self, Index first, Looks sure, Looks hopeful, Real tried):
        """Return the probability that an arm is called first, alone or with a plan; arguments are
        those of `chances`."""
        total: Real = 0.0
        for b in range(self.seen.K):
            if self.seen.excluded[b] is None:
                alone, planned, trial = self.chances(b, first, sure, hopeful, tried)
                total += planned + trial + (alone if b == first else 0.0)
        return min(total, 1.0)


cdef Real crossing(Floats lines, Index n) noexcept:
    """Return the score from which no line is above 0."""
    found: Real = -INFINITE
    for i in range(n):
        if lines[2 * i] > 0.5 * NEVER and lines[2 * i + 1] > 0.0:
            found = max(found, lines[2 * i] / lines[2 * i + 1])
    return found


cdef (Real, Real) interval(Floats lines, Index n, Index i) noexcept:
    """Return between which scores a line is the highest, and above 0."""
    a: Real = lines[2 * i]
    b: Real = lines[2 * i + 1]
    if a <= 0.5 * NEVER or b <= 0.0:
        return 0.0, 0.0
    low: Real = -INFINITE
    high: Real = a / b
    for j in range(n):
        more: Real = a - lines[2 * j]
        steeper: Real = b - lines[2 * j + 1]
        if j == i or lines[2 * j] <= 0.5 * NEVER:
            continue
        if steeper > 0.0:
            high = min(high, more / steeper)
        elif steeper < 0.0:
            low = max(low, more / steeper)
        elif more < 0.0 or (more == 0.0 and j < i):
            return 0.0, 0.0
    return low, high


def expected_of(Candidates seen, Looks looks, Index first, Index look, Index second):
    """Return a plan's expected reward, the probability of its second call, and the reward that the
    second call loses at ρ = 1 because the first answer did not pass.
    """
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
    return reward, fails, lost / (alike * max(fails, LEAST_RIGHT)) if alike > 0.0 else 0.0


cdef inline Real bounded(Real reward) noexcept:
    return LEAST_RIGHT if reward < LEAST_RIGHT else 1.0 - LEAST_RIGHT if reward > 1.0 - LEAST_RIGHT else reward
