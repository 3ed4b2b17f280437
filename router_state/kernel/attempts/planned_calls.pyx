"""The plan of one request, given the draws of its arms, and the probabilities of what may be done.

With b the arm whose draw is best, and z its drawn score, the gain of each plan over a call of b
alone is a line α − β·z: plans count for what is expected of the other arm. So a plan is made where
z lies in an interval, and its propensity is an integral over that. An arm that is drawn far above
what is expected of it is called alone, and so is one of which little is known: plans take nothing
from exploration.
"""

from libc.math cimport sqrt

from router_state.kernel.attempts.plans cimport Looks, bounded
from router_state.kernel.choosing.candidates cimport (
    COST, Candidates, MEAN, PENALTY, ROW, SPREAD,
)
from router_state.kernel.choosing.propensity cimport nearly_below
from router_state.kernel.choosing.propensity import LEAST_PROPENSITY as _LEAST_PROPENSITY
from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, of_block, scratch, whole,
)

cdef Real LEAST_PROPENSITY = _LEAST_PROPENSITY
cdef Real LOWEST = -float("inf")
cdef Real DRAWN = 0.5
"""Share of b's draw that counts where plans are compared with a call of b alone. With all of it good
verifiers gain less on CodeRouterBench; with none plans take b's exploration, worthless verifiers
cost up to 2 points, and a third of the budget is not spent (attempts, in the laboratory)."""
cdef Real INFINITE = float("inf")
cdef Real PLAN_WIDEST = 4.0
cdef enum:
    PLAN_CELLS = 16
    FEW_CELLS = 8
"""Deviations either way, and cells, that probabilities are summed over; and cells for those of plans
that are only tried, beside others."""
cdef Real HARDLY = 3.1
"""Deviations of a difference beyond which a draw is the best in less than one of 1,000 cases."""
cdef enum:
    OPEN_ARM = 0
    WORTH = 1
    DEVIATION = 2
    DEAR = 3
    RIGHT = 4
    ARM = 5
"""Numbers of an arm: whether it may be called, expected reward less penalty, deviation of its draw,
what its call stays below in nine of ten cases, and the probability that its answer is right."""


cdef class Planning:
    """One request's plans, given the draws of its arms.

    Args:
        seen: predictions for the arms, with their draws.
        models: cost models of the arms.
        sure, hopeful: what plans are made by, and what they are tried by where there is none.
        per_dollar: what a dollar costs in reward.
        left_usd: dollars that all calls may be expected to cost, and the looks; most_usd: what they
            stay below in nine of ten cases.
        shut: numbers of looks that can't be taken.
    """

    def __init__(
        self,
        Candidates seen,
        list models,
        Looks sure,
        Looks hopeful,
        Real per_dollar,
        Real left_usd,
        Real most_usd,
        shut=(),
    ):
        K: Index = seen.K
        if not len(models) == len(seen.excluded) == sure.K == hopeful.K == K:
            raise ValueError(f"{len(models)} models and looks at {sure.K} are not {K}")
        self.seen, self.shut, self.sure, self.hopeful = seen, shut, sure, hopeful
        self.per_dollar, self.left_usd, self.most_usd = per_dollar, left_usd, most_usd
        self._held = scratch(K * (ARM + 2) + 4 * K * sure.L)
        self._numbers = of_block(self._held)
        self._least, self._top = LOWEST, 0
        self._of[0] = self._of[1] = -1
        for k in range(K):
            row: Floats = behind(seen._values, ROW * k)
            own: Floats = self.arm(k)
            model: CostModel = models[k]
            own[OPEN_ARM] = 1.0 if seen.excluded[k] is None else 0.0
            own[WORTH], own[DEVIATION] = row[MEAN] - row[PENALTY], sqrt(row[SPREAD])
            own[DEAR], own[RIGHT] = model.dear(row[COST]), bounded(row[MEAN])
            if own[OPEN_ARM]:
                self._least = max(self._least, own[WORTH] - PLAN_WIDEST * own[DEVIATION])
                if not self.is_open(self._top) or own[WORTH] > self.arm(self._top)[WORTH]:
                    self._top = k

    cdef Floats arm(self, Index k) noexcept:
        return behind(self._numbers, ARM * k)

    cdef Flag is_open(self, Index k) noexcept:
        return self.arm(k)[OPEN_ARM] > 0.0

    cdef Flag may_win(self, Index k) noexcept:
        """Tell whether an arm's draw is the best with a probability that counts."""
        own: Floats = self.arm(k)
        if own[OPEN_ARM] <= 0.0 or own[WORTH] + PLAN_WIDEST * own[DEVIATION] < self._least:
            return False
        top: Floats = self.arm(self._top)
        spread: Real = sqrt(own[DEVIATION] * own[DEVIATION] + top[DEVIATION] * top[DEVIATION])
        return own[WORTH] + HARDLY * spread >= top[WORTH]

    cdef (Index, Index, Index, Flag, Real, Real) choose(self, Index b, Real tried, Chance chance):
        """Choose among a call of the b-th arm alone, whose draw is best, and its plans: return the
        arm that is called first, a look, the second arm (−1: none), whether a look is worth its
        dollars, the propensity, and that of the first call. Without a plan the look is the first
        one that the request can have.

        Args:
            tried: probability with which a plan is tried that is better only at best; and with
                which a look is taken where no plan is.
            chance: the random generator.
        """
        looks = True
        alone, made, trial = 0, 1, 2
        how: Index = made
        found = self._best(b, False)
        if found[0] < 0:
            how, found = trial, self._best(b, True)
            if found[0] < 0:
                # Once in a while all the same: a verifier may have become better.
                how, looks = alone, chance.next() < tried
            elif not chance.next() < tried:
                how = alone
        k: Index = b if how == alone else found[0]
        each = self._chances(b, k, tried, PLAN_CELLS)
        chosen: Real = each[0] if how == alone else each[1] if how == made else each[2]
        chosen = min(max(chosen, LEAST_PROPENSITY), 1.0)
        first: Real = chosen
        if looks or how != alone:
            first = max(self._first(k, tried, b, each[0] + each[1] + each[2]), chosen)
        return (
            k,
            self.first_look() if found[0] < 0 else found[1],
            -1 if how == alone else found[2],
            looks,
            chosen,
            first,
        )

    cdef Index first_look(self):
        """Return the first look that the request can have; 0 if it can have none."""
        for look in range(self.sure.L):
            if self.allows(look):
                return look
        return 0

    def best(self, Index b, Flag hopeful=False):
        """Return the plan that is better than a call of the b-th arm alone by the most, as that was
        drawn, and ends with it or begins with it: (first, look, second, gain); None: there is
        none."""
        found = self._best(b, hopeful)
        return None if found[0] < 0 else found

    cdef (Index, Index, Index, Real) _best(self, Index b, Flag hopeful):
        """See `best`; the first arm is −1 where there is no plan."""
        lines: Floats = self._lines(b, hopeful)
        z: Real = self.seen.score_at(ROW * b)
        L: Index = self.sure.L
        gain: Real = 0.0
        found: Index = -1
        for i in range(self.seen.K * L):
            more: Real = lines[2 * i] - lines[2 * i + 1] * z
            if more > gain:
                gain, found = more, i
        if found < 0:
            return -1, -1, -1, 0.0
        k: Index = found // L
        return k, found % L, (self._other(b) if k == b else b), gain

    cdef Index _other(self, Index b):
        """Return the arm that is expected to be the best of the others; −1: there is none."""
        other: Index = -1
        most: Real = LOWEST
        for k in range(self.seen.K):
            own: Floats = self.arm(k)
            if k != b and own[OPEN_ARM] > 0.0 and own[WORTH] > most:
                most, other = own[WORTH], k
        return other

    cdef Floats _lines(self, Index b, Flag hopeful) except NULL:
        """Return α and β of every first arm and look; of those that can't be, α is `LOWEST`."""
        looks: Looks = self.hopeful if hopeful else self.sure
        K, L = self.seen.K, looks.L
        if not 0 <= b < K:
            raise IndexError(f"there is no arm {b} of {K}")
        lines: Floats = behind(self._numbers, K * (ARM + 2) + (2 * K * L if hopeful else 0))
        if self._of[hopeful] == b:
            return lines
        self._of[hopeful] = b
        values: Floats = self.seen._values
        other: Index = self._other(b)
        expected: Real = self.arm(b)[WORTH]
        for k in range(K):
            second: Index = other if k == b else b
            own: Floats = self.arm(k)
            possible = second >= 0 and own[OPEN_ARM] > 0.0 and looks.is_known(second)
            then: Floats = self.arm(max(second, 0))
            penalty: Real = values[ROW * k + PENALTY]
            r: Real = own[RIGHT]
            following: Real = then[WORTH]
            for look in range(L):
                line: Floats = behind(lines, 2 * (k * L + look))
                line[0], line[1] = LOWEST, 1.0
                fee: Real = looks.fee(look)
                if not possible or not self.allows(look) or not self._pays(k, fee, second):
                    continue
                t: Real = looks.passes(look, k)
                f: Real = looks.slips(look, k)
                less: Real = looks.gap(look, k, r, then[RIGHT]) + self.per_dollar * fee
                if k == b:
                    line[1] = 1.0 - t + (t - f) * following
                    line[0] = (1.0 - f) * following - less - line[1] * penalty
                else:
                    line[1] = t * r + f * (1.0 - r)
                    line[0] = own[WORTH] - (1.0 - t) * r - less
                line[0] -= (1.0 - DRAWN) * line[1] * expected
                line[1] *= DRAWN
        return lines

    cdef Flag allows(self, Index look):
        """Tell whether the request can have this look."""
        return not (self.shut and look in self.shut)

    cdef Flag _pays(self, Index first, Real fee, Index second) noexcept:
        """Tell whether there is money for two calls and a look."""
        values: Floats = self.seen._values
        if values[ROW * first + COST] + fee + values[ROW * second + COST] > self.left_usd:
            return False
        return self.arm(first)[DEAR] + fee + self.arm(second)[DEAR] <= self.most_usd

    cdef Flag pays_three(
        self, Index first, Index second, Index third, Real fee
    ) noexcept:
        """Tell whether there is money for three calls and their looks."""
        values: Floats = self.seen._values
        usd: Real = values[ROW * first + COST] + values[ROW * second + COST]
        dear: Real = self.arm(first)[DEAR] + self.arm(second)[DEAR] + self.arm(third)[DEAR]
        usd += values[ROW * third + COST] + fee
        return usd <= self.left_usd and dear + fee <= self.most_usd

    cdef Real _won(self, Index b, Real low, Real high, Index cells):
        """Return the probability that the b-th arm's draw is the best, and lies in an interval."""
        own: Floats = self.arm(b)
        mean: Real = own[WORTH]
        deviation: Real = own[DEVIATION]
        if deviation <= 0.0:
            n: Index = self._rivals(b, mean, mean)
            return self._below_all(n, mean) if n >= 0 and low <= mean < high else 0.0
        low = max(max(low, mean - PLAN_WIDEST * deviation), self._least)
        high = min(high, mean + PLAN_WIDEST * deviation)
        if low >= high:
            return 0.0
        n = self._rivals(b, low, high)
        if n < 0:
            return 0.0
        # Above all rivals their draws no longer matter.
        clear: Real = min(max(self._clear(n), low), high)
        total: Real = nearly_below((high - mean) / deviation)
        mass: Real = nearly_below((clear - mean) / deviation)
        total -= mass
        if clear <= low:
            return total
        # A narrow interval has fewer cells, as wide as those of the whole range.
        cells = min(cells, 1 + whole((clear - low) / deviation * (0.5 * cells / PLAN_WIDEST)))
        step: Real = (clear - low) / cells
        before: Real = self._below_all(n, low)
        mass = nearly_below((low - mean) / deviation)
        for i in range(1, cells + 1):
            z: Real = low + step * i
            now: Real = self._below_all(n, z)
            upto: Real = nearly_below((z - mean) / deviation)
            total += 0.5 * (now + before) * (upto - mass)
            before, mass = now, upto
        return total

    cdef Real _clear(self, Index n) noexcept:
        """Return the score that the draws of all n rivals are below."""
        rivals: Floats = behind(self._numbers, self.seen.K * ARM)
        found: Real = LOWEST
        for j in range(n):
            found = max(found, rivals[2 * j] + PLAN_WIDEST * rivals[2 * j + 1])
        return found

    cdef Index _rivals(self, Index b, Real low, Real high) noexcept:
        """Write the arms whose draws may lie on either side of scores in an interval, and return
        their number; −1: one of the others is surely above."""
        found: Floats = behind(self._numbers, self.seen.K * ARM)
        n: Index = 0
        for k in range(self.seen.K):
            own: Floats = self.arm(k)
            if k == b or own[OPEN_ARM] <= 0.0:
                continue
            away: Real = PLAN_WIDEST * own[DEVIATION]
            if own[WORTH] - away > high:
                return -1
            if own[WORTH] + away > low:
                found[2 * n], found[2 * n + 1] = own[WORTH], own[DEVIATION]
                n += 1
        return n

    cdef Real _below_all(self, Index n, Real z) noexcept:
        """Return the probability that the draws of the n rivals are below z."""
        rivals: Floats = behind(self._numbers, self.seen.K * ARM)
        product: Real = 1.0
        for j in range(n):
            gap: Real = z - rivals[2 * j]
            deviation: Real = rivals[2 * j + 1]
            if gap < -PLAN_WIDEST * deviation:
                return 0.0
            if gap < PLAN_WIDEST * deviation:
                product *= nearly_below(gap / deviation)
        return product

    def chances(self, Index b, Index first, Real tried):
        """Return the probabilities of what may be done with the b-th arm's draw the best: a call of
        it alone, the plan of `sure` and that of `hopeful` that begin with an arm.

        Args:
            tried: probability with which a plan of `hopeful` is tried where `sure` has none.
        """
        return self._chances(b, first, tried, PLAN_CELLS)

    cdef (Real, Real, Real) _chances(self, Index b, Index first, Real tried, Index cells):
        made: Floats = self._lines(b, False)
        hoped: Floats = self._lines(b, True)
        L: Index = self.sure.L
        n: Index = self.seen.K * L
        certain: Real = crossing(made, n)
        hoping: Real = crossing(hoped, n)
        planned: Real = 0.0
        trial: Real = 0.0
        alone: Real = 0.0
        for i in range(first * L, (first + 1) * L):
            low, high = interval(made, n, i)
            if low < high:
                planned += self._won(b, low, high, PLAN_CELLS)
            low, high = interval(hoped, n, i)
            if max(low, certain) < high:
                trial += tried * self._won(b, max(low, certain), high, cells)
        if b == first:
            alone = self._won(b, certain, INFINITE, PLAN_CELLS)
            if hoping > certain:
                alone -= tried * self._won(b, certain, hoping, cells)
        return alone, planned, trial

    def chance_of_first(self, Index first, Real tried):
        """Return the probability that an arm is called first, alone or with a plan; arguments are
        those of `chances`."""
        return self._first(first, tried, -1, 0.0)

    cdef Real _first(self, Index first, Real tried, Index known, Real total):
        """See `chance_of_first`; `total` is the probability of all with the draw of the arm `known`
        the best.
        """
        for b in range(self.seen.K):
            if b != known and self.may_win(b):
                alone, planned, trial = self._chances(b, first, tried, FEW_CELLS)
                total += planned + trial + alone
        return min(total, 1.0)


cdef Real crossing(Floats lines, Index n) noexcept:
    """Return the score from which no line is above 0."""
    found: Real = -INFINITE
    for i in range(n):
        if lines[2 * i] > LOWEST and lines[2 * i + 1] > 0.0:
            found = max(found, lines[2 * i] / lines[2 * i + 1])
    return found


cdef (Real, Real) interval(Floats lines, Index n, Index i) noexcept:
    """Return between which scores a line is the highest, and above 0."""
    a: Real = lines[2 * i]
    b: Real = lines[2 * i + 1]
    if a <= LOWEST or b <= 0.0:
        return 0.0, 0.0
    low: Real = -INFINITE
    high: Real = a / b
    for j in range(n):
        more: Real = a - lines[2 * j]
        steeper: Real = b - lines[2 * j + 1]
        if j == i or lines[2 * j] <= LOWEST:
            continue
        if steeper > 0.0:
            high = min(high, more / steeper)
        elif steeper < 0.0:
            low = max(low, more / steeper)
        elif more < 0.0 or (more == 0.0 and j < i):
            return 0.0, 0.0
        if low >= high:
            return 0.0, 0.0
    return low, high
