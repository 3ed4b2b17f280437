"""What a call of a model will cost: its list price times a ratio that is learned per prompt.

Because ratios are per listed price (per 1k tokens), an announced price needs no relearning. The mean ratio ρ starts too high:
nothing is known of a first burst until its bills arrive.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from router_state.arrays import floats, lower_triangle, packed, symmetric_from, symmetric_inverse
from router_state.config import Matrix, Price, Vector
from router_state.drift import WATCH_SIZE, Shift, Watch
from router_state.journal import Journal
from router_state.stack import Stack

FIRST_GUESS = 3.0
"""Thousands of tokens per request, input and output alike: three times what models billed on the benchmark of the paper."""
MEMORY = 2000.0
"""Bills over which the mean ratio is taken."""
MEMORY_AFTER_SHIFT = 20.0
"""Bills that the mean stands for once it was multiplied: what follows corrects it fast."""
RIDGE = 10.0
"""Ridge of the regression, in bills."""
GAMMA = 0.9995
"""What is left of a bill in the regression after the next one."""
SPAN = 3.0
"""A prompt's ratio is expected between ρ/3 and 3ρ (benchmarks.ablation, "per-prompt costs")."""
MOST_TAUGHT = 10.0
"""A bill teaches as if it were at most this many times what was expected of it."""
KNOWN_AFTER = 5
"""Bills after which an expectation is more than a guess."""
EXPECTED_COUNTS = 20.0
"""Bills that a declared mean cost counts for."""
COST_LIMIT, LEAST_COST_LIMIT = 10.0, 4.0
"""Log-likelihood ratio of an alarm for bills of up to a budget, and for the dearest ones (benchmarks.shocks)."""
DEVIATION_BEFORE, DEVIATION_MEMORY = 3.0, 1000.0
"""Bills that the first deviation counts for, and over how many it is taken at most."""
FIRST_SIGMA = 0.7
"""Deviation of the logarithm of a bill, before there is one: a factor of two either way."""
MIN_PRICE_PER_1K = 1e-9
"""Dollars per 1k tokens that ratios of a free model are taken of."""
LEAST_RESIDUAL = -math.log(MOST_TAUGHT)
"""A bill far below what was expected (a call that was cut off) counts as a tenth of it, as one far above counts as ten times."""
MOST_FACTOR = 7.0
"""Largest logarithm of what one shift multiplies: a factor of 1,100."""
RIDGE_FLOOR = 0.1
"""Share of the ridge below which it is given back."""


def cost_piece(model: str) -> str:
    """Return the name of the piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


def list_price_of(price: Price) -> float:
    """Return what ratios are of, in dollars per 1k tokens; never 0."""
    return max(price.per_1k, MIN_PRICE_PER_1K)


class Rescaled(NamedTuple):
    """A shift of costs that was found, what it multiplied every expectation by, and by how much it moved the mean ratio."""

    shift: Shift
    factor: float
    size: float


class CostModel:
    """The bills of one arm: their mean ratio ρ to the list price, and how they deviate from it by prompt (least squares).

    Attributes:
        name: of its piece.
        ratio, bills: ρ, and how many bills it stands for; the first guess counts for one.
        list_price: what ratios are of, in dollars per 1k tokens.
        mean_usd: what a request costs on average.
        block: shape (d + 1, d): the inverse of the undecayed design matrix in rows 0..d-1, the coefficients w in row d.
        inverse, w: views of it.
        decay: what is left of the ridge.
        watch: looks out for a silent change of price or of tokens, on the logarithm of ratio ÷ prediction.
    """

    __slots__ = (
        "_journal", "_k", "_stack", "_work", "bills", "block", "d", "decay", "inverse", "list_price", "mean_usd", "name", "ratio",
        "w", "watch",
    )  # fmt: skip

    def __init__(self, model: str, d: int, price: Price, journal: Journal) -> None:
        """Start the model of an arm without a bill."""
        self.name, self.d, self._journal = cost_piece(model), d, journal
        self._forget_all(price)
        self.reprice(price)

    def _forget_all(self, price: Price) -> None:
        self.block = np.eye(self.d + 1, self.d) / RIDGE
        self.inverse, self.w = self.block[: self.d], self.block[self.d]
        self.decay, self.watch = 1.0, Watch(sigma=FIRST_SIGMA)
        self.ratio, self.bills = FIRST_GUESS if price.per_1k > 0.0 else 0.0, 1.0

    def bind(self, stack: Stack, k: int) -> None:
        """Show the coefficients in row k of the stack from now on."""
        self._stack, self._k, self._work = stack, k, stack.work
        if self.w.any():
            self._show()

    def reprice(self, price: Price) -> None:
        """Put a list price in force; what bills say of the tokens per request stays."""
        self.list_price = list_price_of(price)
        self._moved()

    def start_over(self, price: Price) -> None:
        """Forget all bills, as those of a free model say nothing of its tokens."""
        self._forget_all(price)
        self._show()
        self._moved()

    def expect(self, cost_usd: float) -> None:
        """Start from a known mean cost instead of the first guess; it counts for 20 bills."""
        self.ratio, self.bills = cost_usd / self.list_price, EXPECTED_COUNTS
        self._moved()

    def start(self, ratio: float, *, bills: float, A: Matrix, w: Vector) -> None:
        """Start from a mean ratio that counts for so many bills, and a regression: design matrix A (d, d), coefficients w (d,)."""
        self.ratio, self.bills = ratio, bills
        self.inverse[:] = symmetric_inverse(A)
        self.w[:] = w
        self._show()
        self._moved()

    def predict(self, deviation: float) -> float:
        """Return the expected ratio for a prompt: ρ + wᵀx, within a third of ρ and three times ρ."""
        ratio = self.ratio
        predicted, least, most = ratio + deviation, ratio / SPAN, ratio * SPAN
        return least if predicted < least else most if predicted > most else predicted

    def follow(self, ratio: float) -> None:
        """Let the mean follow one bill; it is of about the last `MEMORY`."""
        self._step(_winsorised(ratio, self.ratio))

    def observe(self, ratio: float, x: Vector | None, *, budgets: float, now: float, watched: bool) -> Rescaled | None:
        """Learn one bill; return what every expectation was multiplied by, if the bill gave a shift away.

        What teaches is at most `MOST_TAUGHT` times what was expected.

        Args:
            ratio: bill ÷ list price at the decision.
            x: context, shape (d,); without one only the mean learns.
            budgets: the bill, in requests' budgets.
            watched: whether to look for shifts.
        """
        # The work array keeps inverse·x for the regression below.
        deviation = 0.0 if x is None else self.block.dot(x, self._work.cost.y).item(-1)
        predicted = self.predict(deviation)
        rescaled = None
        if watched and self.bills > KNOWN_AFTER:
            shift = surprise(self.watch, ratio, predicted, budgets=budgets, bills=self.bills, now=now)
            if shift is not None:
                rescaled = self._rescale(shift)
                predicted, deviation = predicted * rescaled.factor, deviation * rescaled.factor
        ratio = _winsorised(ratio, predicted)
        self._step(ratio)
        if x is not None:
            self._regress(x, ratio - self.ratio - deviation)
        self._moved()
        return rescaled

    def _step(self, ratio: float) -> None:
        self.bills = self.bills + 1.0 if self.bills < MEMORY else MEMORY
        self.ratio += (ratio - self.ratio) / self.bills
        self.mean_usd = self.ratio * self.list_price

    def _rescale(self, shift: Shift) -> Rescaled:
        """Multiply every expectation by what a shift says; the mean may then move fast."""
        factor = math.exp(min(max(shift.size, -MOST_FACTOR), MOST_FACTOR))
        size = self.ratio * abs(factor - 1.0)
        self.ratio *= factor
        self.bills = min(self.bills, MEMORY_AFTER_SHIFT)
        self.w *= factor
        self._show()
        self._journal.jumped = True
        return Rescaled(shift, factor, size)

    def _regress(self, x: Vector, error: float) -> None:
        """Learn one deviation from ρ by recursive least squares; the work array holds inverse·x."""
        correction = self._work.cost
        self.decay *= GAMMA
        if self.decay < RIDGE_FLOOR:
            self._restore_ridge()
            self.block.dot(x, correction.y)
        correction.y[-1] = -error
        correction.take_off(self.block, self.decay + x.dot(correction.u).item())
        self._show()

    def _restore_ridge(self) -> None:
        """Fold the decay into the inverse and top its ridge up; the coefficients are what the ridge then holds on to."""
        A = np.asarray(np.linalg.inv(self.inverse) * self.decay, dtype=np.float64)
        A[np.diag_indices(len(A))] += (1.0 - self.decay) * RIDGE
        self.inverse[:] = symmetric_inverse(A)
        self.decay = 1.0

    def _show(self) -> None:
        self._stack.show_costs(self._k, self.w)

    def _moved(self) -> None:
        self.mean_usd = self.ratio * self.list_price
        self._journal.pieces.add(self.name)

    def ignore_prompts(self) -> None:
        """Expect the mean cost for every prompt."""
        self.w[:] = 0.0
        self._show()
        self._moved()

    def pack(self) -> bytes:
        """Return the lower triangle of the inverse, w, the decay and the watch; ρ and its bills are the head's."""
        scalars = np.array([self.decay, *self.watch.pack()])
        return packed(self.inverse.ravel()[lower_triangle(self.d)], self.w, scalars)

    def unpack(self, data: bytes) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        d, triangle = self.d, self.d * (self.d + 1) // 2
        size = triangle + d + 1 + WATCH_SIZE
        inverse, w, scalars = np.split(floats(data, least=size, most=size), (triangle, triangle + d))
        decay, *watch = scalars.tolist()
        self.restore(inverse, w, decay=decay, watch=Watch.unpack(watch))

    def restore(self, triangle: Vector, w: Vector, *, decay: float, watch: Watch) -> None:
        """Fill in what `pack` returned."""
        self.inverse[:] = symmetric_from(triangle, self.d)
        self.w[:] = w
        self._show()
        self.decay, self.watch = decay, watch
        self.mean_usd = self.ratio * self.list_price


def _winsorised(ratio: float, predicted: float) -> float:
    return min(ratio, MOST_TAUGHT * predicted) if predicted > 0.0 else ratio


def surprise(watch: Watch, ratio: float, predicted: float, *, budgets: float, bills: float, now: float) -> Shift | None:
    """Watch the logarithm of ratio ÷ prediction; return the shift that a bill gives away: a silent change of price or tokens.

    The evidence wanted falls by the logarithm of what is at stake, as in a Bayes test, but one bill alone is never enough. A bill
    of nothing (a cached answer, a call that failed) is no price: it moves the mean only.

    Args:
        budgets: the bill, in requests' budgets.
        bills: how many the arm has had.
    """
    if ratio <= 0.0 or predicted <= 0.0:
        return None
    residual = max(math.log(ratio / predicted), LEAST_RESIDUAL)
    memory = min(DEVIATION_BEFORE + bills, DEVIATION_MEMORY)
    limit = COST_LIMIT if budgets <= 1.0 else max(COST_LIMIT - math.log(budgets), LEAST_COST_LIMIT)
    return watch.observe(residual, limit=limit, now=now, adaptive=True, memory=memory)
