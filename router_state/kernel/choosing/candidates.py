"""Candidates of one decision: what is known of every arm, in one block, and whose score is best."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from router_state.errors import NonFiniteInput
from router_state.kernel.choosing.propensity import largest
from router_state.kernel.numbers.linear import EPSILON, room
from router_state.kernel.numbers.words import (
    Array,
    Flag,
    Floats,
    Index,
    Real,
    behind,
    block,
    ccall,
    cclass,
    cfunc,
    of_block,
    uncollected,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW = 10
"""Numbers of an arm; behind those of all arms is what they share of a reward."""
MEAN, BONUS, COST, PENALTY, SPREAD, VARIANCE, EXPONENT, UNSURE = range(8)
"""Places of an arm's numbers: expected reward, what exploration adds, expected dollars, what these
take off, and the variance of its draw. `VARIANCE` is xᵀVx of its rewards' regression, not decayed,
and `EXPONENT` the predicted logarithm of bill ÷ list price.

`UNSURE` is the first of three doubts: the variance of its expected reward, that of a bill's
logarithm, and the probability that a call costs anything.
"""


@uncollected
@cclass
class Candidates:  # noqa: PLW1641  # it changes while a decision is made
    """Every arm that was looked at.

    Attributes:
        models: names of the arms.
        excluded: why an arm could not be chosen, or None. Decisions may share it: it is only read.
        K: how many arms.
    """

    models: tuple[str, ...]
    excluded: list[str | None]
    K: Index
    _block: Array
    _values: Floats
    _drawn: Flag

    def __init__(
        self,
        models: tuple[str, ...],
        terms: Sequence[float],
        penalty: Sequence[float],
        excluded: list[str | None],
    ) -> None:
        """Restore what a record has kept: `terms` and `penalty` as the properties return them."""
        self._start(models, excluded)
        if not (len(terms) == 3 * self.K and len(penalty) == len(excluded) == self.K):
            raise ValueError(f"an entry for each of {self.K} arms is wanted")
        for k in range(self.K):
            for i in range(3):
                self._values[ROW * k + i] = terms[3 * k + i]
            self._values[ROW * k + PENALTY] = penalty[k]

    @cfunc
    def _start(self, models: tuple[str, ...], excluded: list[str | None]) -> None:
        self.models, self.excluded, self.K = models, excluded, len(models)
        self._block = block(ROW * self.K + 1)
        self._values, self._drawn = of_block(self._block), False

    def column(self, which: Index) -> list[float]:
        """Return one number of each arm. Raises IndexError."""
        if not 0 <= which < ROW:
            raise IndexError(f"an arm has {ROW} numbers, not {which}")
        return [self._values[ROW * k + which] for k in range(self.K)]

    @cfunc
    def _set(self, which: Index, numbers: Sequence[float]) -> None:
        if len(numbers) != self.K:
            raise ValueError(f"{len(numbers)} numbers are not of {self.K} arms")
        for k in range(self.K):
            self._values[ROW * k + which] = numbers[k]

    @property
    def mean(self) -> list[float]:
        """The expected rewards."""
        return self.column(MEAN)

    @property
    def bonus(self) -> list[float]:
        """The exploration bonuses."""
        return self.column(BONUS)

    @property
    def expected_cost_usd(self) -> list[float]:
        """The expected costs in dollars."""
        return self.column(COST)

    @expected_cost_usd.setter
    def expected_cost_usd(self, dollars: Sequence[float]) -> None:
        self._set(COST, dollars)

    @property
    def penalty(self) -> list[float]:
        """The part of the scores that costs, and waits, take off."""
        return self.column(PENALTY)

    @penalty.setter
    def penalty(self, penalties: Sequence[float]) -> None:
        self._set(PENALTY, penalties)

    @property
    def terms(self) -> list[float]:
        """Mean, bonus and expected cost of the first arm, of the second, and so on."""
        return [self._values[ROW * k + i] for k in range(self.K) for i in range(3)]

    @property
    def unsure(self) -> list[float] | None:
        """The doubts, if a decision has drawn: what is shared of a reward, then the three of each
        arm."""
        if not self._drawn:
            return None
        values = self._values
        own = [values[ROW * k + UNSURE + i] for k in range(self.K) for i in range(3)]
        return [values[ROW * self.K], *own]

    def __eq__(self, other: object) -> bool:
        """Tell whether a record would keep the same of both."""
        if not isinstance(other, Candidates):
            return False
        same = self.models == other.models and self.excluded == other.excluded
        return same and self.terms == other.terms and self.penalty == other.penalty

    def __repr__(self) -> str:
        """Return what a record keeps."""
        return f"Candidates({self.models}, {self.terms}, {self.penalty}, {self.excluded})"

    @ccall
    def reward(self, k: Index) -> float:
        """Return the expected reward of the k-th arm."""
        return self._values[self.row(k) + MEAN]

    @ccall
    def cost_usd(self, k: Index) -> float:
        """Return the expected dollars of the k-th arm."""
        return self._values[self.row(k) + COST]

    def score(self, k: Index) -> float:
        """Return mean + bonus − penalty of the k-th arm."""
        return self.score_at(self.row(k))

    @cfunc
    def _require_reasons(self) -> None:
        if len(self.excluded) != self.K:
            raise ValueError(f"{len(self.excluded)} reasons are not of {self.K} arms")

    @cfunc
    def row(self, k: Index) -> Index:
        """Return where the k-th arm's numbers begin. Raises IndexError."""
        if not 0 <= k < self.K:
            raise IndexError(f"there is no arm {k} of {self.K}")
        return ROW * k

    @cfunc
    def score_at(self, row: Index) -> Real:
        """See `score`."""
        values: Floats = self._values
        return values[row + MEAN] + values[row + BONUS] - values[row + PENALTY]

    @ccall
    def best(self) -> list[int]:
        """Return the eligible arms whose score is the best, one where there is no tie.

        Raises:
            NonFiniteInput: a score is not finite.
        """
        self._require_reasons()
        most: Real = -float("inf")
        found: list[int] = []
        for k in range(self.K):
            if self.excluded[k] is None:
                score: Real = self.score_at(ROW * k)
                if score - most >= EPSILON:
                    most, found = score, [k]
                elif most - score < EPSILON:
                    found.append(k)
        if not isfinite(most):
            raise NonFiniteInput("a score is not finite")
        return found

    @ccall
    def choose(self) -> tuple[int, float]:
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

    @cfunc
    def leader(self) -> Index:
        """Return the eligible arm whose score is above all others, −1 if none is."""
        self._require_reasons()
        values: Floats = self._values
        most: Real = -float("inf")
        found: Index = -1
        for k in range(self.K):
            if self.excluded[k] is None:
                row: Floats = behind(values, ROW * k)
                score: Real = row[MEAN] + row[BONUS] - row[PENALTY]
                if score - most >= EPSILON:
                    most, found = score, k
                elif not most - score >= EPSILON:
                    found = -1
        return found if isfinite(most) else -1

    @ccall
    def cheapest(self, tied: list[int]) -> list[int]:
        """Return those of a tie that cost least.

        Equal scores at different costs come where λ_t is 0: then a dollar is worth nothing, but not
        less.
        """
        if len(tied) == 1:
            return tied
        lowest = min([self.cost_usd(k) for k in tied])
        return [k for k in tied if self.cost_usd(k) == lowest]

    @ccall
    def chance_of(self, k: Index) -> float:
        """Return the probability that the k-th arm has the best score, over posterior samples."""
        self.row(k)
        self._require_reasons()
        scores: Floats = room(4 * self.K)
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
