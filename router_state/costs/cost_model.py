"""What a call of a model will cost: its list price times a ratio that is learned per prompt.

The logarithm of the ratio is linear in the context, so bills of several kinds, far apart, are
expected as what they are; what all models share of it is learned from all bills (`pool`). The mean
of bill ÷ exp(prediction) makes the expectation right in dollars (smearing, Duan 1983), bills of
nothing included. Because ratios are per listed price (per 1k tokens), an announced price needs no
relearning.

Where requests say how many input tokens they have (`prompt_tokens`), these are counted at their
list price, times the share of it that bills show (discounts and cached prompts make it less); all
of the above is then about what paid calls cost on top, and calls that cost nothing are a share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from router_state.change.bills import surprise, winsorised
from router_state.change.detector import WATCH_SIZE, Shift, Watch
from router_state.change.novelty import Familiar
from router_state.config import Matrix, Price, Vector
from router_state.costs.ratio import (
    LEAST_RATIO,
    MOST_EXPONENT,
    MOST_FACTOR,
    bounded,
    list_price_of,
    of_rest,
    whole,
)
from router_state.errors import CorruptSnapshot
from router_state.journal import Journal
from router_state.learning.linalg import (
    floats,
    lower_triangle,
    packed,
    symmetric_from,
    symmetric_inverse,
)
from router_state.learning.shared_prior import Pool
from router_state.learning.stack import TAILS, WIDE, Stack

MEMORY = 2000.0
"""Bills over which means are taken."""
MEMORY_AFTER_SHIFT = 20.0
"""Bills that a mean stands for once it was multiplied: what follows corrects it fast."""
GAMMA = 0.9995
"""What is left of a bill in the regression after the model's next one."""
SMEARED_FIRST = 3.0
"""Bills that the first mean of bill ÷ exp(prediction), 1, counts for."""
SURE = 16.0
"""Bills from which on that mean is all of a model's own. Before, the rest is of lognormal bills
with the noise that all models' have: one dear bill counts in the coefficients already, and would
else rule a model out by chance."""
MOST_SMEARED = 10.0
"""Times its expectation that a bill counts for in that mean: one of a heavy tail is not the mean of
the next hundred."""
KNOWN_AFTER = 5
"""Bills after which an expectation is more than a guess."""
ABOVE_AFTER, ABOVE_BY, ABOVE_FROM = 50, 3.0, 1.05
"""Bills, and deviations of their mean, that make it sure that a model costs more than a limit, and
how many times as much it then costs at least."""
EXPECTED_COUNTS = 20.0
"""Bills that a declared mean cost counts for."""
FIRST_SIGMA = 0.7
"""Deviation of the logarithm of a bill, before there is one: a factor of two either way."""
KNOWN_VARIANCE = 0.25
"""xᵀ(A + R)⁻¹x below which a bill that is off says something of the model, and not of the
prompt."""
MOST_DOUBT = 1.0
"""Largest logarithm of what doubt about a level, or the noise of few bills, adds to an expectation:
a deviation of a factor of four, more than models differ by."""
LEAST_OWN = 0.02
"""Share of a bill that is not for its input tokens, at least: where a cached prompt cost less than
it was counted, the rest has a logarithm all the same."""
LEAST_LEFT = 0.1
"""The same of an expectation that is split into input and rest."""
LEAST_SMEAR = 0.01
"""Of the mean of rest ÷ exp(prediction), which a discount makes smaller than any prediction."""
SHARE_UP, SHARE_DOWN = 1.01, 0.92
"""What a bill multiplies the share of its list price by that input is taken to cost, all of it at
most: down where it is lower than that alone. In balance one bill in nine is."""
LEAST_SHARE = 0.01
"""Of the list price of input: what is free is nothing that a factor leads back from."""
DECAY_FLOOR = 0.1
"""Decay below which the prior that the inverse contains is to be made whole again."""


def cost_piece(model: str) -> str:
    """Return the name of the piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


class Rescaled(NamedTuple):
    """A shift of costs that was found, what it multiplied every expectation by, and by how much it
    moved the mean ratio."""

    shift: Shift
    factor: float
    size: float


class CostModel:
    """The bills of one arm: the regression of ln(bill ÷ list price) on contexts, and means.

    Of a model with a list price of 0 only the mean is learned: there is nothing that its bills are
    a multiple of.

    Attributes:
        name: of its piece.
        ratio, bills: mean ratio of a bill to the list price, and how many it stands for; the first
            guess counts for one.
        smear, smeared: mean of bill ÷ exp(prediction), and how many bills it stands for.
        awaited: calls since the last bill.
        list_price: what ratios are of, in dollars per 1k tokens; free: whether the declared one is
            0.
        mean_usd: what a request costs on average.
        paid: share of bills that were not of nothing.
        input_usd: list price of an input token, in dollars; input_share: of it that is billed.
        block: shape (d + 1, d): in rows 0..d-1 (A + R)⁻¹, not decayed, in row d the coefficients w.
        inverse, w: views of it.
        tails: shape (16, d) from `stack.WIDE` dimensions on, else (0, d): rows v of which vvᵀ is
            still to be taken off the inverse, `pending` of them.
        decay: what is left of what the inverse contains.
        watch: looks out for a silent change of price or of tokens, on the logarithm of ratio ÷
            prediction.
        familiar: whether its prompts of late are of a kind that it knows: where they are not, a
            shift says something of them, and nothing of the price.
    """

    __slots__ = (
        "_journal",
        "_k",
        "_pool",
        "_stack",
        "_work",
        "awaited",
        "bills",
        "block",
        "d",
        "decay",
        "familiar",
        "free",
        "input_share",
        "input_usd",
        "inverse",
        "list_price",
        "mean_usd",
        "name",
        "paid",
        "pending",
        "ratio",
        "smear",
        "smeared",
        "tails",
        "w",
        "watch",
    )

    def __init__(self, model: str, pool: Pool, price: Price, journal: Journal) -> None:
        """Start the model of an arm without a bill, from what the pool knows of the others."""
        self.name, self.d, self._pool, self._journal = cost_piece(model), pool.d, pool, journal
        self._stack: Stack | None = None
        self.block = np.zeros((self.d + 1, self.d))
        self.inverse, self.w = self.block[: self.d], self.block[self.d]
        self.tails = np.zeros((TAILS if self.d >= WIDE else 0, self.d))
        self.awaited = self.pending = 0
        self.start_over(price)

    def start_over(self, price: Price) -> None:
        """Forget all bills, as those of a free model say nothing of its tokens."""
        self._price(price)
        self.input_share = self.paid = 1.0
        self.inverse[:], self.pending = np.diag(1.0 / self._pool.ridges), 0
        self.w[:] = 0.0 if self.free else self._pool.mean
        self.decay, self.watch, self.familiar = 1.0, Watch(sigma=FIRST_SIGMA), Familiar()
        self.ratio, self.bills = (0.0, 0.0) if self.free else (self._guess(), 1.0)
        self.smear, self.smeared = 0.0 if self.free else 1.0, SMEARED_FIRST
        self._show()
        self._moved()

    def _guess(self) -> float:
        return math.exp(bounded(float(self.w.dot(self._pool.center))))

    def bind(self, stack: Stack, k: int) -> None:
        """Show the coefficients in row k of the stack from now on."""
        self._stack, self._k, self._work = stack, k, stack.work
        if self.w.any():
            self._show()

    def reprice(self, price: Price) -> None:
        """Put a list price in force; what bills say of the tokens per request stays."""
        self._price(price)
        self._moved()

    def _price(self, price: Price) -> None:
        self.list_price, self.free = list_price_of(price), price.per_1k <= 0.0
        self.input_usd = price.input_price_per_m / 1e6

    @property
    def per_input_token(self) -> float:
        """Dollars that an input token is expected to cost."""
        return self.input_share * self.input_usd

    def left(self, tokens: float) -> float:
        """Return the logarithm of what is left of a mean bill without so many input tokens."""
        known = tokens * self.per_input_token / self.list_price
        return math.log(max(1.0 - known / max(self.ratio, LEAST_RATIO), LEAST_LEFT))

    def be_split(self) -> None:
        """Let the means move fast: input tokens are counted apart from now on."""
        self.smeared = min(self.smeared, MEMORY_AFTER_SHIFT)
        self._moved()

    def guess(self, ratio: float) -> None:
        """Start from another first guess."""
        if not self.free:
            self.ratio = ratio
            self._moved()

    def expect(
        self, cost_usd: float, *, bills: float = EXPECTED_COUNTS, tokens: float = 0.0
    ) -> None:
        """Start from a known mean cost instead of the first guess; it counts for 20 bills."""
        at = self._pool.center
        mean = math.log(max(cost_usd / self.list_price, LEAST_RATIO))
        A, b = bills * np.outer(at, at), bills * mean * at
        self.believe(A, b, mean_usd=cost_usd, bills=bills, tokens=tokens)

    def believe(
        self, A: Matrix, b: Vector, *, mean_usd: float, bills: float, tokens: float = 0.0
    ) -> None:
        """Start from earlier bills: Σ xxᵀ and Σ ln(bill ÷ list price)·x over them, their mean, and
        how many they are; so many input tokens of each are counted apart."""
        ridges = self._pool.ridges
        inverse = symmetric_inverse(A + np.diag(ridges))
        self.bills, self.ratio, left = bills, mean_usd / self.list_price, 0.0
        if tokens:
            left = self.left(tokens)
            b = b + left * A[-1]
        self.conclude(inverse, inverse @ (b + ridges * self._pool.mean))
        self.ratio = mean_usd / self.list_price
        # The last feature is 1: the last row of A is Σx, and its corner how many there are.
        means = A[-1] / A[-1, -1]
        spread = float(self.w @ (A / A[-1, -1] - np.outer(means, means)) @ self.w)
        # The mean of a lognormal is above the exponential of its logarithm's mean: by half the
        # variance between prompts.
        expected = math.exp(bounded(float(self.w @ means) + max(spread, 0.0) / 2.0 + self.doubt))
        self.smear, self.smeared = (
            min(self.ratio * math.exp(left) / expected, MOST_SMEARED),
            max(bills, SMEARED_FIRST),
        )
        self._moved()

    def predict(self, exponent: float) -> float:
        """Return the expected ratio for a prompt with wᵀx = exponent."""
        return self.factor * math.exp(bounded(exponent + self.doubt))

    @property
    def factor(self) -> float:
        """What a bill is expected to be to exp(prediction): by so much the mean of bills is above
        what the mean of their logarithms says."""
        rest = SURE - self.smeared
        if rest <= 0.0 or self.free or not self._pool.seen:
            return self.smear
        half = 0.5 * self._pool.noise
        lognormal = math.exp(half if half < MOST_DOUBT else MOST_DOUBT)
        return (self.smear * self.smeared + lognormal * rest) / SURE

    @property
    def doubt(self) -> float:
        """Half the variance of the level's logarithm: by so much the logarithm of a mean is above
        the mean of a logarithm. Without it what few bills or none make of a model is too cheap as
        often as too dear, and far more expensive where it is too cheap."""
        if self.free:
            return 0.0
        # The last entry is the bias's: a level is what it multiplies.
        doubt: float = 0.5 * self._pool.noise * self.inverse.item(-1) / self.decay
        return doubt if doubt < MOST_DOUBT else MOST_DOUBT

    def surely_above(
        self, usd: float, scatter: float, *, mean_usd: float | None = None, error: float = 0.0
    ) -> bool:
        """Tell whether bills leave no doubt that a call costs more than `usd` on average.

        Args:
            scatter: deviation of a bill, as a share of its mean.
            mean_usd: on other prompts than those that bills came for; `error`: of that mean, as a
                share of it.
        """
        error = math.hypot(scatter / math.sqrt(max(self.bills, 1.0)), error)
        mean_usd = self.mean_usd if mean_usd is None else mean_usd
        return self.bills > ABOVE_AFTER and mean_usd > (ABOVE_FROM + ABOVE_BY * error) * usd

    def chance_below(self, usd: float, expected_usd: float, scatter: float) -> float:
        """Return how probable it is that a call that is expected to cost so much costs less than
        `usd` on average: by the doubt about the level or, if that is more, the scatter of bills,
        see `surely_above`."""
        if usd <= 0.0:
            return 0.0
        doubt = self.doubt
        above = math.log(max(expected_usd / usd, LEAST_RATIO)) - doubt
        deviation = max(math.sqrt(2.0 * doubt), scatter / math.sqrt(max(self.bills, 1.0)))
        return 0.5 * math.erfc(above / (deviation * math.sqrt(2.0)))

    def follow(self, ratio: float) -> None:
        """Let the mean follow one bill; it is of about the last `MEMORY`."""
        self._step(winsorised(ratio, self.ratio))
        self._journal.pieces.add(self.name)

    def observe(
        self,
        ratio: float,
        x: Vector | None,
        *,
        known: float | None = None,
        budgets: float,
        now: float,
        watched: bool,
    ) -> Rescaled | None:
        """Learn one bill; return what every expectation was multiplied by, if the bill gave a shift
        away.

        Args:
            ratio: bill ÷ list price at the decision.
            x: context, shape (d,); without one only the mean learns.
            known: list price of the input tokens, in the same unit; None where they are not
                counted apart.
            budgets: the bill, in requests' budgets.
            watched: whether to look for shifts.
        """
        if ratio <= 0.0 or self.paid < 1.0:
            self.paid += (float(ratio > 0.0) - self.paid) / (self.bills + SMEARED_FIRST)
        if x is None or self.free:
            self._step(winsorised(ratio, self.ratio))
            self.smear = self.ratio if self.free else self.smear
            self._moved()
            return None
        correction, rescaled = self._work.cost, None
        # One product: inverse·x, which is `correction.u`, and behind it wᵀx.
        exponent = self.block.dot(x, correction.y).item(-1)
        if self.pending:
            V = self.tails[: self.pending]
            correction.u -= V.dot(x).dot(V)
        # Rounding may leave less than nothing in a direction that is well known.
        variance = max(float(x.dot(correction.u)) / self.decay, 0.0)
        own = 1.0
        if known:
            known *= self.input_share
            own = 1.0 - known / (known + self.smear * math.exp(bounded(exponent)))
            if ratio > 0.0:
                self._share(SHARE_UP if ratio >= known else SHARE_DOWN)
        # A bill of nothing (a cached answer, a failed call) is no price: it moves the means only.
        if ratio > 0.0:
            residual = math.log(ratio) - (whole(exponent, known) if known else exponent)
            self.familiar.observe(variance * self.decay / self.inverse.item(-1))
            if watched and self.bills > KNOWN_AFTER and variance < KNOWN_VARIANCE:
                shift = surprise(
                    self.watch,
                    residual / math.sqrt(1.0 + variance * own * own),
                    budgets=budgets * (self.predict(exponent) + (known or 0.0)) / ratio,
                    bills=self.bills,
                    now=now,
                    least=self._pool.deviation * own,
                )
                if shift is not None:
                    if self.familiar.novel:
                        moved = self._redirect(shift, variance, exponent, known)
                    else:
                        rescaled, moved = self._rescale(shift, exponent, known)
                    # The expectation has moved by the shift: what is left of the residual is
                    # learned, not all of it again.
                    residual, exponent = residual - moved, exponent + moved
            if known:
                residual = math.log(max(ratio - known, LEAST_OWN * ratio)) - exponent
            self._regress(residual, variance)
            self._pool.observe(residual, variance)
        self._smear(ratio, exponent, known)
        self._show()
        self._moved()
        return rescaled

    @property
    def faded(self) -> bool:
        """Whether too little is left of the prior that the inverse contains."""
        return self.decay < DECAY_FLOOR

    def _smear(self, ratio: float, exponent: float, known: float | None) -> None:
        """Let the means follow a bill whose logarithm was expected to be the exponent; of which
        `known` was expected for its input, if that is counted apart."""
        expected = math.exp(bounded(exponent))
        self._step(winsorised(ratio, self.smear * expected + (known or 0.0)))
        if known is not None and ratio <= 0.0:
            return
        rest = (ratio - (known or 0.0)) / expected
        self.smeared = count = min(self.smeared + 1.0, MEMORY)
        self.smear += ((rest if rest < MOST_SMEARED else MOST_SMEARED) - self.smear) / count
        if known:
            self.smear = max(self.smear, LEAST_SMEAR)

    def _share(self, factor: float) -> None:
        self.input_share = min(max(self.input_share * factor, LEAST_SHARE), 1.0)

    def _step(self, ratio: float) -> None:
        self.bills = self.bills + 1.0 if self.bills < MEMORY else MEMORY
        self.ratio += (ratio - self.ratio) / self.bills
        self.mean_usd, self.awaited = self.ratio * self.list_price, 0

    def _rescale(
        self, shift: Shift, exponent: float, known: float | None
    ) -> tuple[Rescaled, float]:
        """Multiply every expectation by what a shift says; the means may then move fast. Return by
        what the logarithm of what is not known moved, too."""
        moved = min(max(shift.size, -MOST_FACTOR), MOST_FACTOR)
        factor = math.exp(moved)
        if known:
            self._share(factor)
        moved = of_rest(moved, exponent, known)
        # In list prices, of the mean as it was: what the alert says a call has become dearer or
        # cheaper by.
        size = self.ratio * abs(factor - 1.0)
        self.ratio *= factor
        self.w[-1] += moved
        self.bills, self.smeared = (
            min(self.bills, MEMORY_AFTER_SHIFT),
            min(self.smeared, MEMORY_AFTER_SHIFT),
        )
        self._journal.jumped = True
        return Rescaled(shift, factor, size), moved

    def _redirect(
        self, shift: Shift, variance: float, exponent: float, known: float | None
    ) -> float:
        """Let the expectations of prompts like this one follow a shift, and no others'; return by
        how much.

        Along Vx, the prompts before, to which this one is new, move least.
        """
        moved = min(max(shift.size, -MOST_FACTOR), MOST_FACTOR)
        moved = of_rest(moved, exponent, known)
        # xᵀu is variance·decay: this prompt's own expectation moves by all of it.
        self.w += (moved / (variance * self.decay)) * self._work.cost.u
        self._journal.jumped = True
        return moved

    def _regress(self, residual: float, variance: float) -> None:
        """Learn one residual by Sherman–Morrison, as `Belief.observe` does; the work array holds
        inverse·x."""
        correction = self._work.cost
        # xᵀÂ⁻¹x without decay; in undecayed sums the new bill weighs 1 ÷ decay, that of now.
        spread = variance * self.decay
        self.decay *= GAMMA
        if self.d >= WIDE:
            self.w += correction.u * (residual / (self.decay + spread))
            np.multiply(
                correction.u, 1.0 / math.sqrt(self.decay + spread), self.tails[self.pending]
            )
            self.pending += 1
            if self.pending == TAILS:
                self.flush()
            return
        correction.y[-1] = -residual
        correction.take_off(self.block, self.decay + spread)

    def flush(self) -> None:
        """Take the pending rows off the inverse."""
        if self.pending:
            self._work.take_off(self.inverse, self.tails[: self.pending])
            self.pending = 0
            self._journal.pieces.add(self.name)

    def undecayed(self) -> Matrix:
        """Return what the inverse is once the pending rows are taken off."""
        V = self.tails[: self.pending]
        inverse: Matrix = self.inverse - V.T @ V
        return inverse

    def held(self) -> tuple[Matrix, Vector, float]:
        """See Regression."""
        self.flush()
        return self.inverse, self.w, self.decay

    def conclude(self, inverse: Matrix, theta: Vector) -> None:
        """See Regression; without a bill the mean is what follows from the coefficients."""
        self.inverse[:], self.w[:], self.decay, self.pending = inverse, theta, 1.0, 0
        if self.bills <= 1.0:
            self.ratio = self._guess()
        self._show()
        self._moved()

    def _show(self) -> None:
        if self._stack is not None:
            self._stack.show_costs(self._k, self.w)

    def _moved(self) -> None:
        self.mean_usd = self.ratio * self.list_price
        self._journal.pieces.add(self.name)

    def ignore_prompts(self) -> None:
        """Expect the mean cost for every prompt."""
        self.w[:-1] = 0.0
        self.w[-1] = (
            math.log(max(self.ratio / self.smear, LEAST_RATIO)) if self.smear > 0.0 else 0.0
        )
        self._show()
        self._moved()

    def scalars(self) -> list[float]:
        """Return what the head keeps of it beside the means: smearing, and calls that await
        bills."""
        return [self.smear, self.smeared, self.awaited]

    def restore_scalars(self, scalars: Sequence[float]) -> None:
        """Invert `scalars`."""
        self.smear, self.smeared, awaited = scalars
        self.awaited = int(awaited)

    def pack(self) -> bytes:
        """Return the lower triangle of the inverse, w, the decay, the watch and the pending rows;
        means and counts are the head's."""
        scalars, triangle = [self.decay, *self.watch.pack()], lower_triangle(self.d)
        tails = [self.tails[: self.pending].ravel()] if self.pending else []
        return packed(self.inverse.ravel()[triangle], self.w, scalars, *tails)

    def unpack(self, data: bytes) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        d, triangle = self.d, self.d * (self.d + 1) // 2
        size = triangle + d + 1 + WATCH_SIZE
        inverse, w, scalars, tails = np.split(
            floats(data, least=size, most=size + len(self.tails) * d),
            (triangle, triangle + d, size),
        )
        if len(tails) % d:
            raise CorruptSnapshot(f"{len(tails)} numbers are no rows of {d}")
        decay, *watch = scalars.tolist()
        self.restore(inverse, w, tails.reshape(-1, d), decay=decay, watch=Watch.unpack(watch))

    def restore(
        self, triangle: Vector, w: Vector, tails: Matrix, *, decay: float, watch: Watch
    ) -> None:
        """Fill in what `pack` returned. Raises CorruptSnapshot."""
        if len(tails) > max(len(self.tails) - 1, 0):
            raise CorruptSnapshot(f"{len(tails)} pending rows of a cost model")
        self.inverse[:] = symmetric_from(triangle, self.d)
        self.pending = len(tails)
        self.tails[: self.pending] = tails
        self.w[:] = w
        self._show()
        self.decay, self.watch = decay, watch
        self.mean_usd = self.ratio * self.list_price


def expectations(
    models: Sequence[CostModel], noise: float, exponents: Iterable[float]
) -> list[float]:
    """Return what a call of each model is expected to cost, in dollars, for a prompt with these
    wᵀx, as `CostModel.predict` says; `noise` is the pool's."""
    costs: list[float] = []
    half = 0.5 * noise
    for model, exponent in zip(models, exponents, strict=True):
        # What `doubt`, `factor` and `bounded` return in the usual case is computed here: a call of
        # each takes longer than all of this.
        if not model.free:
            doubt = half * model.inverse.item(-1) / model.decay
            exponent += doubt if doubt < MOST_DOUBT else MOST_DOUBT
        factor = model.smear if model.smeared >= SURE else model.factor
        if not -MOST_EXPONENT <= exponent <= MOST_EXPONENT:
            exponent = bounded(exponent)
        costs.append(factor * math.exp(exponent) * model.list_price)
    return costs
