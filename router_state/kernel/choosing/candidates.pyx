"""Candidates of one decision: the predictions for every arm, in one block, and the arm with the
best score.
"""

import cython
from libc.math cimport isfinite

from router_state.kernel.choosing.propensity cimport largest
from ground.refusing import NonFiniteInput
from router_state.kernel.numbers.words cimport (
    Floats, Index, Real, behind, block, of_block, scratch,
)

cdef Real TIED = 1e-12
"""Scores that differ by less count as equal: some thousand units of the last place of a reward."""


@cython.no_gc
cdef class Candidates:
    """The predictions for every arm of one decision.

    Attributes:
        models: names of the arms.
        excluded: why an arm could not be chosen, or None. Decisions may share it: it is only read.
        K: how many arms.
    """

    def __init__(self, tuple models, terms, penalty, list excluded):
        """Restore candidates from a record: `terms` and `penalty` as the properties return
        them.
        """
        self._start(models, excluded)
        if not (len(terms) == 3 * self.K and len(penalty) == len(excluded) == self.K):
            raise ValueError(f"an entry for each of {self.K} arms is wanted")
        for k in range(self.K):
            for i in range(3):
                self._values[ROW * k + i] = terms[3 * k + i]
            self._values[ROW * k + PENALTY] = penalty[k]

    cdef void _start(self, tuple models, list excluded):
        self.models, self.excluded, self.K = models, excluded, len(models)
        self._block = block(ROW * self.K + 1)
        self._values = of_block(self._block)

    def column(self, Index which):
        """Return one number of each arm. Raises IndexError."""
        if not 0 <= which < ROW:
            raise IndexError(f"an arm has {ROW} numbers, not {which}")
        return [self._values[ROW * k + which] for k in range(self.K)]

    cdef void _set(self, Index which, numbers):
        if len(numbers) != self.K:
            raise ValueError(f"{len(numbers)} numbers are not of {self.K} arms")
        for k in range(self.K):
            self._values[ROW * k + which] = numbers[k]

    @property
    def mean(self):
        """The expected rewards."""
        return self.column(MEAN)

    @mean.setter
    def mean(self, rewards):
        self._set(MEAN, rewards)

    @property
    def bonus(self):
        """The exploration bonuses."""
        return self.column(BONUS)

    @property
    def expected_cost_usd(self):
        """The expected costs in dollars."""
        return self.column(COST)

    @expected_cost_usd.setter
    def expected_cost_usd(self, dollars):
        self._set(COST, dollars)

    @property
    def penalty(self):
        """The part of the scores that costs and waits subtract."""
        return self.column(PENALTY)

    @penalty.setter
    def penalty(self, penalties):
        self._set(PENALTY, penalties)

    @property
    def terms(self):
        """Mean, bonus and expected cost of the first arm, of the second, and so on."""
        return [self._values[ROW * k + i] for k in range(self.K) for i in range(3)]

    def rows(self):
        """Return of each arm its name, mean, bonus, penalty, score, expected cost, and why it could
        not be chosen: what a decision publishes, in this order.
        """
        self._require_reasons()
        found: list[tuple] = []
        for k in range(self.K):
            of: Floats = behind(self._values, ROW * k)
            model, why, score = self.models[k], self.excluded[k], self.score_at(ROW * k)
            found.append((model, of[MEAN], of[BONUS], of[PENALTY], score, of[COST], why))
        return found

    @property
    def unsure(self):
        """The doubts, once a decision has drawn: the shared doubt of a reward, then the three
        doubts of each arm.
        """
        values = self._values
        # The doubt of a bill is above 0 as soon as a decision has drawn.
        if not (self.K and values[UNSURE + 1] > 0.0):
            return None
        own = [values[ROW * k + UNSURE + i] for k in range(self.K) for i in range(3)]
        return [values[ROW * self.K], *own]

    def __eq__(self, other):
        """Tell whether a record would store the same numbers for both."""
        if not isinstance(other, Candidates):
            return False
        same = self.models == other.models and self.excluded == other.excluded
        return same and self.terms == other.terms and self.penalty == other.penalty

    def __repr__(self):
        """Return the numbers that a record stores."""
        return f"Candidates({self.models}, {self.terms}, {self.penalty}, {self.excluded})"

    cpdef Real reward(self, Index k):
        """Return the expected reward of the k-th arm."""
        return self._values[self.row(k) + MEAN]

    cpdef tuple expected(self, Index k):
        """Return the expected reward and dollars of the k-th arm."""
        row: Index = self.row(k)
        return self._values[row + MEAN], self._values[row + COST]

    cpdef Real cost_usd(self, Index k):
        """Return the expected dollars of the k-th arm."""
        return self._values[self.row(k) + COST]

    def score(self, Index k):
        """Return mean + bonus − penalty of the k-th arm."""
        return self.score_at(self.row(k))

    cdef void _require_reasons(self):
        if len(self.excluded) != self.K:
            raise ValueError(f"{len(self.excluded)} reasons are not of {self.K} arms")

    cdef Index row(self, Index k):
        """Return where the k-th arm's numbers begin. Raises IndexError."""
        if not 0 <= k < self.K:
            raise IndexError(f"there is no arm {k} of {self.K}")
        return ROW * k

    cdef Real score_at(self, Index row):
        """See `score`."""
        values: Floats = self._values
        return values[row + MEAN] + values[row + BONUS] - values[row + PENALTY]

    cpdef list best(self):
        """Return the eligible arms with the best score: one arm, unless there is a tie.

        Raises:
            NonFiniteInput: a score is not finite.
        """
        self._require_reasons()
        most: Real = -float("inf")
        found: list[int] = []
        for k in range(self.K):
            if self.excluded[k] is None:
                score: Real = self.score_at(ROW * k)
                if score - most >= TIED:
                    most, found = score, [k]
                elif most - score < TIED:
                    found.append(k)
        if not isfinite(most):
            raise NonFiniteInput("a score is not finite")
        return found

    cpdef tuple choose(self):
        """Return the eligible arm with the best score, the cheaper one of a tie, and the
        probability of that choice over posterior samples; −1 and 0 where costs are equal as well.

        Raises:
            NonFiniteInput: a score is not finite.
        """
        k: Index = self.leader()
        if k < 0:
            tied: list[int] = self.cheapest(self.best())
            if len(tied) > 1:
                return -1, 0.0
            k = tied[0]
        return k, self.chance_of(k)

    cpdef Index leader(self):
        """Return the eligible arm whose score is above all others, −1 if none is."""
        self._require_reasons()
        values: Floats = self._values
        most: Real = -float("inf")
        found: Index = -1
        for k in range(self.K):
            if self.excluded[k] is None:
                row: Floats = behind(values, ROW * k)
                score: Real = row[MEAN] + row[BONUS] - row[PENALTY]
                if score - most >= TIED:
                    most, found = score, k
                elif not most - score >= TIED:
                    found = -1
        return found if isfinite(most) else -1

    cpdef list cheapest(self, list tied):
        """Return the cheapest arms of a tie.

        Arms tie at different costs where λ_t is 0: a dollar is then worth nothing, but the cheaper
        arm is still preferred.
        """
        if len(tied) == 1:
            return tied
        lowest = min([self.cost_usd(k) for k in tied])
        return [k for k in tied if self.cost_usd(k) == lowest]

    cpdef Real chance_of(self, Index k):
        """Return the probability that the k-th arm has the best score, over posterior samples."""
        self.row(k)
        self._require_reasons()
        held = scratch(4 * self.K)
        scores: Floats = of_block(held)
        values: Floats = self._values
        own, count = 0, 0
        for j in range(self.K):
            if j == k or self.excluded[j] is None:
                if j == k:
                    own = count
                scores[2 * count] = values[ROW * j + MEAN] - values[ROW * j + PENALTY]
                scores[2 * count + 1] = values[ROW * j + SPREAD]
                count += 1
        return largest(own, scores, count)


# For Python, which does not see numbers of C.
globals().update(VARIANCE=VARIANCE)
